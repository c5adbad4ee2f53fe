//go:build unix

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) loadCmd() *cobra.Command {
	var lease, label string
	var payload bool
	cmd := &cobra.Command{
		Use:   "load QUEUE ID",
		Short: "Claim one named message",
		Long: `Claim one named message, whatever its schedule and its place among the messages of its
key; also of a paused queue. A lease that is past its deadline is taken over, which
counts as a lapse, and so is one without deadline that names no holder, or one that
is proven dead: the old receipt is then refused. The claim outlives this command, as
that of "holdfast claim" does. The ID must be whole; of a generated one 8 characters of
its beginning or end are enough, if only one has them.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := parseLease(lease)
			if err != nil {
				return err
			}
			if payload && a.json {
				return usagef("--payload prints bytes; with --json the payload is in the line")
			}
			if err := queue.CheckQueue(args[0]); err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.withChange(ctx, func(s store) error {
				o := queue.LoadOptions{Lease: d, Label: label, WithoutHolder: true}
				return a.withID(ctx, s, forChanges, args[0], args[1], func(id string) error {
					loaded, err := s.Load(ctx, args[0], id, o)
					u, err := certain(ctx, s, err)
					if err != nil {
						if errors.Is(err, queue.ErrDamaged) {
							err = about(err, facts{space: spaceOf(ctx, s, args[0])})
						}
						return err
					}
					if u != nil && len(u.Deliveries) > 0 {
						loaded = u.Deliveries[0]
					}
					a.printDelivery(loaded, payload)
					return nil
				})
			})
		},
	}
	leaseFlags(cmd, &lease, &label, &payload)
	return cmd
}
