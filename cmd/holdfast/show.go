//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) showCmd() *cobra.Command {
	var payload bool
	var generation string
	cmd := &cobra.Command{
		Use:   "show QUEUE ID",
		Short: "Show one message",
		Long: `Show one message. An ID may have two live generations: one that was claimed, and a
newer one that waits behind it. Both are shown, the older first. With --payload
exactly the bytes of one payload are printed and nothing else: the older one's, or
that of --generation. The ID may be shortened to what it alone begins or ends with.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if payload && a.json {
				return usagef("--payload prints bytes; with --json the payload is in the line")
			}
			if err := queue.CheckQueue(args[0]); err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.withLook(ctx, func(s store) error {
				return a.withID(ctx, s, forLooks, args[0], args[1], func(id string) error {
					entries, err := s.Show(ctx, args[0], id)
					if err != nil {
						return err
					}
					if generation != "" {
						if entries = ofGeneration(entries, generation); len(entries) == 0 {
							return fmt.Errorf("%s has no live generation %q: %w", id, generation, queue.ErrNotFound)
						}
					}
					if payload {
						return a.printPayload(entries)
					}
					return a.printEntries(ctx, s, args[0], entries)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&payload, "payload", false, "print exactly the payload's bytes and nothing else")
	cmd.Flags().StringVar(&generation, "generation", "", "only this generation")
	cmd.Flags().BoolVarP(&a.verbose, "verbose", "v", false, "show generation, object and fence too")
	return cmd
}

func ofGeneration(entries []queue.Entry, generation string) []queue.Entry {
	var fit []queue.Entry
	for _, e := range entries {
		if strings.HasPrefix(e.Generation, generation) || strings.HasSuffix(e.Generation, generation) {
			fit = append(fit, e)
		}
	}
	return fit
}

func (a *app) printPayload(entries []queue.Entry) error {
	if e := entries[0]; len(e.Payload) == 0 { // a whole one has at least one byte
		reason := strings.TrimPrefix(e.LastError, "damaged payload: ")
		return about(fmt.Errorf("%s/%s: %w: %s", e.Queue, e.ID, queue.ErrDamaged, reason), facts{queue: e.Queue, id: e.ID, name: e.FailedName})
	}
	a.out.Write(entries[0].Payload)
	if len(entries) > 1 {
		a.note("generations", "%s has a newer generation too; for its payload add --generation %s", entries[0].ID, entries[1].Generation)
	}
	return nil
}

// printEntries writes entries with their payloads. The calls that give them do not
// say whether the look was settled, so the store is asked in the same breath.
func (a *app) printEntries(ctx context.Context, s store, q string, entries []queue.Entry) error {
	st, err := s.Status(ctx, queue.StatusOptions{Queues: []string{q}})
	if err != nil {
		return err
	}
	a.markUnsettled(ctx, st.Settled, st.Owner)
	for _, e := range entries {
		if !a.json && e.State == queue.Ready && st.Queues[q].Importing {
			e.State = importing
		}
		a.printEntry(e, st.Settled)
	}
	return nil
}
