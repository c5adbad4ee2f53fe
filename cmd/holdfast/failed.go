//go:build unix

package main

import (
	"context"
	"fmt"

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
	cmd := &cobra.Command{
		Use:   "ls [QUEUE]",
		Short: "List the failed messages, of all queues or of one",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var from queue.FailedOptions
			again := "holdfast failed ls"
			if len(args) == 1 {
				if err := queue.CheckQueue(args[0]); err != nil {
					return err
				}
				from.Queue, again = args[0], again+" "+args[0]
			}
			ctx := cmd.Context()
			return a.withLook(ctx, func(s store) error {
				return a.listing(ctx, f, again, failedRow, func(o queue.ListOptions) (queue.Page, error) {
					return s.ListFailed(ctx, from, o)
				})
			})
		},
	}
	f.add(cmd)
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
				return a.withFailed(ctx, s, forLooks, args[0], func(name string) error {
					e, err := s.ShowFailed(ctx, name, queue.FailedOptions{})
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
	return cmd
}

func (a *app) failedPurgeCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "purge NAME...",
		Short: "Remove failed messages for good",
		Long: `Remove failed messages for good. A name must be whole; of a generated ID 8 characters
of its beginning or end are enough, if only one has them.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return a.withChange(ctx, func(s store) error {
				ops := make([]operand, len(args))
				for i, given := range args {
					ops[i] = operand{key: given, do: func(ctx context.Context) (func(), error) {
						purged := ""
						err := a.withFailed(ctx, s, forChanges, given, func(name string) error {
							purged = name
							_, err := certain(ctx, s, s.Purge(ctx, name, queue.PurgeOptions{}))
							return err
						})
						return func() { a.printPurged(purged) }, err
					}}
				}
				return a.eachOperand(ctx, "purged", ops)
			})
		},
	}
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
