//go:build unix

package main

import (
	"context"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) ackCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "ack RECEIPT...",
		Short: "Settle messages for good: the work is done",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.settleEach(cmd, args, "acked", func(ctx context.Context, s store, r queue.Receipt) error {
				return s.Ack(ctx, r)
			})
		},
	}
}
