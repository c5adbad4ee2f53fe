//go:build unix

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) failCmd() *cobra.Command {
	var cause, as string
	cmd := &cobra.Command{
		Use:   "fail RECEIPT --cause TEXT",
		Short: "Move a message to the failed ones",
		Long: `Move a message to the failed ones, where it stays as evidence with its cause. It
is kept under its ID, or under the name of --as. If a failed message has that name,
the call is refused and the claim stays as it was.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cause == "" {
				return usagef("--cause is missing: say why the message failed")
			}
			if as != "" {
				if err := queue.CheckFailedName(as); err != nil {
					return err
				}
			}
			ctx := cmd.Context()
			return a.withStore(ctx, func(s store) error {
				r, err := (&leaseFinder{s: s}).find(ctx, args[0])
				if err != nil {
					return about(err, facts{receipt: args[0]})
				}
				name, err := s.Fail(ctx, r, queue.FailOptions{Cause: cause, As: as})
				u, err := certain(ctx, s, err)
				if u != nil || errors.Is(err, queue.ErrFailedExists) {
					name = pick(as, r.ID)
				}
				if err != nil {
					return about(err, facts{queue: r.Queue, id: r.ID, receipt: args[0], name: name})
				}
				a.printSettled(r, "failed", name)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&cause, "cause", "", "why it failed; kept up to 1 KiB")
	cmd.Flags().StringVar(&as, "as", "", "the failed name (default: the ID)")
	return cmd
}
