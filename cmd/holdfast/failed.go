//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) failedCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "failed",
		Short: "Look at the failed messages, or remove them",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q for holdfast failed", args[0])
			}
			return usagef("say which: failed ls, failed show or failed purge")
		},
	}
	cmd.AddCommand(a.failedLsCmd(), a.failedShowCmd(), a.failedPurgeCmd())
	return cmd
}

func (a *app) failedLsCmd() *cobra.Command {
	var f pageFlags
	var from queue.FailedOptions
	cmd := &cobra.Command{
		Use:   "ls [QUEUE]",
		Short: "List the failed messages, of all queues or of one",
		Long: `List the failed messages of one namespace: that of --namespace, else the one where
messages of the queue are kept that fail now, else the store's common one. With QUEUE
only those that came from it.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			again := "holdfast failed ls"
			if len(args) == 1 {
				from.Queue, again = args[0], again+" "+args[0]
			}
			ctx := cmd.Context()
			return a.withLook(ctx, func(s store) error {
				if err := a.findSpace(ctx, s, cmd, &from); err != nil {
					return err
				}
				if from.Namespace != "" {
					again += " --namespace " + shellWord(from.Namespace)
				}
				return a.listing(ctx, f, again, failedRow, func(o queue.ListOptions) (queue.Page, error) {
					return s.ListFailed(ctx, from, o)
				})
			})
		},
	}
	f.add(cmd)
	spaceFlag(cmd, &from.Namespace)
	return cmd
}

const failedHead = "NAME\tQUEUE\tATTEMPTS\tBYTES\tFAILED\tCAUSE"

func failedRow(e *queue.Entry) string {
	if e == nil {
		return failedHead
	}
	return fmt.Sprintf("%s\t%s\t%d\t%d\t%s\t%s", e.FailedName, e.Queue, e.Attempts, e.PayloadBytes,
		when(e.FailedAt), cutText(printable(e.LastError), 60))
}

func (a *app) failedShowCmd() *cobra.Command {
	var payload bool
	var space string
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show one failed message",
		Long:  "Show one failed message. The name may be shortened to what it alone begins or ends with.",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if payload && a.json {
				return usagef("--payload prints bytes; with --json the payload is in the line")
			}
			ctx := cmd.Context()
			return a.withLook(ctx, func(s store) error {
				return a.withFailed(ctx, s, forLooks, space, args[0], func(name string) error {
					e, err := s.ShowFailed(ctx, name, queue.FailedOptions{Namespace: space})
					if err != nil {
						return err
					}
					if payload {
						return a.printPayload([]queue.Entry{e})
					}
					return a.printEntries(ctx, s, e.Queue, []queue.Entry{e})
				})
			})
		},
	}
	cmd.Flags().BoolVar(&payload, "payload", false, "print exactly the payload's bytes and nothing else")
	cmd.Flags().BoolVarP(&a.verbose, "verbose", "v", false, "show generation and object too")
	spaceFlag(cmd, &space)
	return cmd
}

func (a *app) failedPurgeCmd() *cobra.Command {
	var space string
	var lost bool
	cmd := &cobra.Command{
		Use:   "purge NAME... | --lost",
		Short: "Remove failed messages for good",
		Long: `Remove failed messages for good. A name must be whole; of a generated ID 8 characters
of its beginning or end are enough, if only one has them.

With --lost those go of which nothing can be read any more: their block of messages is
missing or damaged, as verify tells by the code run and without a queue. Restore a copy
into another directory first, if there is one: their names and payloads may be in it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if lost {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if lost {
				return a.withChange(ctx, func(s store) error { return a.purgeLost(ctx, s, space) })
			}
			return a.withChange(ctx, func(s store) error {
				ops := make([]operand, len(args))
				for i, given := range args {
					ops[i] = operand{key: given, do: func(ctx context.Context) (func(), error) {
						purged := ""
						err := a.withFailed(ctx, s, forChanges, space, given, func(name string) error {
							purged = name
							_, err := certain(ctx, s, s.Purge(ctx, name, queue.PurgeOptions{Namespace: space}))
							return err
						})
						return func() { a.printPurged(purged) }, err
					}}
				}
				return a.eachOperand(ctx, "purged", ops)
			})
		},
	}
	spaceFlag(cmd, &space)
	cmd.Flags().BoolVar(&lost, "lost", false, "purge those that cannot be read any more, because their file is missing or damaged")
	return cmd
}

func (a *app) purgeLost(ctx context.Context, s store, space string) error {
	n, err := s.PurgeLost(ctx, queue.PurgeOptions{Namespace: space})
	u, err := certain(ctx, s, err)
	if err != nil {
		return about(err, facts{space: space})
	}
	if u != nil {
		n = u.Cleared
	}
	if n == 0 {
		return about(nothingf("no failed message is lost"), facts{run: "holdfast verify --dir {dir}"})
	}
	a.did("purged", plural(int64(n), "lost message"))
	if a.json {
		a.printJSON(struct {
			Lost   uint64 `json:"lost"`
			Result string `json:"result"`
		}{n, "purged"})
		return nil
	}
	a.printf("purged %s\n", plural(int64(n), "lost message"))
	return nil
}

func (a *app) printPurged(name string) {
	a.did("purged", name)
	if a.json {
		a.printJSON(struct {
			Name   string `json:"failed_name"`
			Result string `json:"result"`
		}{name, "purged"})
		return
	}
	a.printf("purged %s\n", name)
}

// spaceFlag is the flag of the commands that look for failed messages.
func spaceFlag(cmd *cobra.Command, space *string) {
	cmd.Flags().StringVar(space, "namespace", "", "the failed namespace (default: the store's common one)")
}

// findSpace settles which namespace is meant where none was given: that of the queue,
// if there is one, else the common one. Then it says which queues have others.
func (a *app) findSpace(ctx context.Context, s store, cmd *cobra.Command, from *queue.FailedOptions) error {
	if cmd.Flags().Changed("namespace") {
		return queue.CheckNamespace(from.Namespace)
	}
	o := queue.StatusOptions{}
	if from.Queue != "" {
		o.Queues = []string{from.Queue}
	}
	st, err := s.Status(ctx, o)
	if err != nil {
		return err
	}
	if from.Queue != "" {
		from.Namespace = st.Queues[from.Queue].FailedNamespace
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(st.Queues)) {
		if space := st.Queues[name].FailedNamespace; space != "" {
			a.note("namespace", "those of %s are in the namespace %s; run: holdfast failed ls %s --dir %s", name, space, name, shellWord(a.dir))
		}
	}
	return nil
}

// elsewhere adds to the error for a failed name that is not in a namespace that it is
// in another one, which a queue of the store uses. A purge is shown first.
func (a *app) elsewhere(ctx context.Context, s store, space, name string, err error) error {
	st, statusErr := s.Status(ctx, queue.StatusOptions{})
	if statusErr != nil {
		return err
	}
	others := map[string]bool{"": true}
	for _, q := range st.Queues {
		others[q.FailedNamespace] = true
	}
	delete(others, space)
	for _, other := range slices.Sorted(maps.Keys(others)) {
		if _, no := s.ShowFailed(ctx, name, queue.FailedOptions{Namespace: other}); no != nil && !errors.Is(no, queue.ErrDamaged) {
			continue
		}
		where, flag := "the store's common namespace", ""
		if other != "" {
			where, flag = "the namespace "+other, " --namespace "+shellWord(other)
		}
		run := a.command
		if run == "holdfast failed purge" {
			run = "holdfast failed show"
		}
		return about(fmt.Errorf("%w; there is one in %s", err, where), facts{name: name, run: run + " {name}" + flag + " --dir {dir}"})
	}
	return err
}

// spaceOf gives the namespace in which messages of a queue that fail are kept, to
// name it in a hint. Without an answer it is the default one.
func spaceOf(ctx context.Context, s store, q string) string {
	st, err := s.Status(ctx, queue.StatusOptions{Queues: []string{q}})
	if err != nil {
		return ""
	}
	return st.Queues[q].FailedNamespace
}
