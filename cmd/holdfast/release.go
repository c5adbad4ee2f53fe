//go:build unix

package main

import (
	"context"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) releaseCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "release RECEIPT...",
		Short: "Return messages unworked; this does not count as a failure",
		Long:  "Return messages unworked; this does not count as a failure." + shortReceiptHelp,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.settleEach(cmd, args, "released", func(ctx context.Context, s store, r queue.Receipt) (string, error) {
				_, err := certain(ctx, s, s.Release(ctx, r, queue.ReleaseOptions{}))
				return "", err
			})
		},
	}
}
