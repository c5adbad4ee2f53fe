//go:build unix

package main

import (
	"context"
	"time"

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
			return a.eachReceipt(cmd, args, "settled", func(ctx context.Context, s store, r queue.Receipt) (func(), error) {
				_, err := certain(ctx, s, s.Ack(ctx, r))
				return func() { a.printSettled(r, "acked", "", time.Time{}) }, err
			})
		},
	}
}
