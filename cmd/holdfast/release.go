//go:build unix

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) releaseCmd() *cobra.Command {
	var delay string
	cmd := &cobra.Command{
		Use:   "release RECEIPT...",
		Short: "Return messages unworked; this does not count as a failure",
		Long: `Return messages unworked; this does not count as a failure. With --delay they are
snoozed: not due before that time has passed.` + shortReceiptHelp,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := parseDelay(delay)
			if err != nil {
				return err
			}
			return a.eachReceipt(cmd, args, "settled", func(ctx context.Context, s store, r queue.Receipt) (func(), error) {
				_, err := certain(ctx, s, s.Release(ctx, r, queue.ReleaseOptions{Delay: d}))
				return func() { a.printSettled(r, "released", "", time.Time{}) }, err
			})
		},
	}
	cmd.Flags().StringVar(&delay, "delay", "0s", "how long until they are due again")
	return cmd
}
