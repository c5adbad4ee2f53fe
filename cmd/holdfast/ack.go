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
		Long:  "Settle messages for good: the work is done. Many receipts share commits." + shortReceiptHelp,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.settleEach(cmd, args, "acked", func(ctx context.Context, s store, r queue.Receipt) (string, error) {
				_, err := certain(ctx, s, s.Ack(ctx, r))
				return "", err
			})
		},
	}
}
