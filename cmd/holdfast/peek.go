//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) peekCmd() *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use:   "peek QUEUE",
		Short: "Show the next messages that a claim would take",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if n < 1 {
				return usagef("-n %d: want at least 1", n)
			}
			if err := queue.CheckQueue(args[0]); err != nil {
				return err
			}
			ctx := cmd.Context()
			return about(a.withLook(ctx, func(s store) error {
				entries, err := s.Peek(ctx, args[0], n)
				if err != nil {
					return err
				}
				if err := a.printEntries(ctx, s, args[0], entries); err != nil {
					return err
				}
				if len(entries) == 0 {
					return nothingDue(ctx, s, args[0])
				}
				return nil
			}), facts{queue: args[0]})
		},
	}
	cmd.Flags().IntVarP(&n, "number", "n", 1, "show up to this many messages")
	cmd.Flags().BoolVarP(&a.verbose, "verbose", "v", false, "show generation, object and fence too")
	return cmd
}
