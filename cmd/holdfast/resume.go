//go:build unix

package main

import (
	"context"

	"github.com/spf13/cobra"
)

func (a *app) resumeCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "resume QUEUE...",
		Short: "Let claims of paused queues find messages again",
		Long: `Let claims of paused queues find messages again. Schedules and deadlines went on
meanwhile. A queue that is not paused stays as it is.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachQueue(cmd, args, "resumed", store.Resume, func(context.Context, store, string) bool { return false })
		},
	}
}
