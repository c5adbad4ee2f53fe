//go:build unix

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

// reprocessFlags say which failed messages are meant, where they are not named.
type reprocessFlags struct {
	match string
	all   bool
	from  queue.FailedOptions
}

func (a *app) reprocessCmd() *cobra.Command {
	var f reprocessFlags
	cmd := &cobra.Command{
		Use:   "reprocess NAME... | --match TEXT | --all",
		Short: "Return failed messages to their queues",
		Long: `Return failed messages to the queues that they came from, each at its old place and
ahead of a newer message of its ID that waits. Attempts so far are excused and lapses
forgotten; the last error stays. If a message of the same ID is in the hands of a
worker, or came back itself, the call is refused and the evidence stays.

A name must be whole; of a generated ID 8 characters of its beginning or end are
enough, if only one has them. --match takes every failed message that has this text
in its failed name, its ID or its last error, capitals and small letters being told
apart; --all takes every one. Both are of one namespace: that of --namespace, else
the one where messages of --queue are kept that fail now, else the store's common
one. All that can be returned are, many per commit. Exit code 1: there is none.`,
		Args: func(cmd *cobra.Command, args []string) error { return nil },
		RunE: func(cmd *cobra.Command, args []string) error {
			matching := cmd.Flags().Changed("match")
			switch {
			case len(args) > 0 && (matching || f.all) || matching && f.all:
				return usagef("give names, --match or --all: one of them")
			case len(args) == 0 && !matching && !f.all:
				return usagef("say which: NAME..., --match TEXT or --all")
			case matching && f.match == "":
				return usagef("--match is empty; --all takes every failed message")
			case len(args) > 0 && f.from.Queue != "":
				return usagef("--queue goes with --match or --all")
			}
			if f.from.Queue != "" {
				if err := queue.CheckQueue(f.from.Queue); err != nil {
					return err
				}
			}
			if err := queue.CheckNamespace(f.from.Namespace); err != nil {
				return err
			}
			ctx := cmd.Context()
			return a.withChange(ctx, func(s store) error {
				if len(args) > 0 {
					return a.reprocessNamed(ctx, s, f.from.Namespace, args)
				}
				if err := a.findSpace(ctx, s, cmd, &f.from); err != nil {
					return err
				}
				return a.reprocessMatching(ctx, s, f)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.match, "match", "", "every one with this text in its failed name, its ID or its last error")
	flags.BoolVar(&f.all, "all", false, "every one")
	flags.StringVar(&f.from.Queue, "queue", "", "of those, only the ones that came from this queue")
	spaceFlag(cmd, &f.from.Namespace)
	return cmd
}

func (a *app) reprocessNamed(ctx context.Context, s store, space string, names []string) error {
	ops := make([]operand, len(names))
	for i, given := range names {
		ops[i] = operand{key: given, do: func(ctx context.Context) (say func(), err error) {
			err = a.withFailed(ctx, s, forChanges, space, given, func(name string) error {
				e, err := s.ShowFailed(ctx, name, queue.FailedOptions{Namespace: space}) // where it goes to
				if err != nil {
					return err
				}
				say, err = a.reprocess(ctx, s, e)
				return err
			})
			return say, err
		}}
	}
	return a.eachOperand(ctx, "reprocessed", ops)
}

func (a *app) reprocessMatching(ctx context.Context, s store, f reprocessFlags) error {
	var ops []operand
	err := eachFailed(ctx, s, f.from, func(e queue.Entry) {
		if f.all || strings.Contains(e.FailedName, f.match) || strings.Contains(e.ID, f.match) || strings.Contains(e.LastError, f.match) {
			ops = append(ops, operand{key: e.FailedName, do: func(ctx context.Context) (func(), error) {
				return a.reprocess(ctx, s, e)
			}})
		}
	})
	switch {
	case err != nil:
		return err
	case len(ops) > 0:
		return a.eachOperand(ctx, "reprocessed", ops)
	case f.all:
		err = nothingf("no message has failed")
	default:
		err = nothingf("no failed message has %q in its name, its ID or its last error", f.match)
	}
	return about(err, facts{space: f.from.Namespace, run: "holdfast failed ls{space} --dir {dir}"})
}

// reprocess returns the failed message that e shows.
func (a *app) reprocess(ctx context.Context, s store, e queue.Entry) (say func(), err error) {
	_, err = certain(ctx, s, s.Reprocess(ctx, e.FailedName, queue.ReprocessOptions{Namespace: e.Namespace}))
	return func() { a.printReprocessed(e) }, about(err, facts{queue: e.Queue, id: e.ID, name: e.FailedName, space: e.Namespace})
}

func (a *app) printReprocessed(e queue.Entry) {
	a.did("reprocessed", e.FailedName)
	if a.json {
		a.printJSON(struct {
			Name   string `json:"failed_name"`
			Queue  string `json:"queue"`
			ID     string `json:"id"`
			Result string `json:"result"`
		}{e.FailedName, e.Queue, e.ID, "reprocessed"})
		return
	}
	a.printf("reprocessed %s: %s %s is pending\n", e.FailedName, e.Queue, e.ID)
}
