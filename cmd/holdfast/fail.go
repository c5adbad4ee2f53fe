//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) failCmd() *cobra.Command {
	var cause, as string
	cmd := &cobra.Command{
		Use:   "fail RECEIPT... --cause TEXT",
		Short: "Move messages to the failed ones",
		Long: `Move messages to the failed ones, where they stay as evidence with their cause. Each
is kept under its ID, or, of one receipt, under the name of --as. If a failed message
has that name, the call is refused and the claim stays as it was.` + shortReceiptHelp,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cause == "" {
				return usagef("--cause is missing: say why the message failed")
			}
			if as != "" {
				if len(args) > 1 {
					return usagef("--as names one failed message; it goes with one receipt")
				}
				if err := queue.CheckFailedName(as); err != nil {
					return err
				}
			}
			return a.eachReceipt(cmd, args, "settled", func(ctx context.Context, s store, r queue.Receipt) (func(), error) {
				name, err := s.Fail(ctx, r, queue.FailOptions{Cause: cause, As: as})
				u, err := certain(ctx, s, err)
				if u != nil {
					name = pick(u.Failed, pick(as, r.ID))
				}
				if errors.Is(err, queue.ErrFailedExists) {
					return nil, about(err, facts{name: pick(as, r.ID), space: spaceOf(ctx, s, r.Queue)})
				}
				return func() { a.printSettled(r, "failed", name, time.Time{}) }, err
			})
		},
	}
	causeFlag(cmd, &cause, "why it failed; kept up to 1 KiB")
	cmd.Flags().StringVar(&as, "as", "", "the failed name (default: the ID)")
	return cmd
}
