//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

// pageFlags are the flags of the listings.
type pageFlags struct {
	limit int
	after string
}

func (f *pageFlags) add(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.limit, "limit", 0, "show at most this many (default: all)")
	cmd.Flags().StringVar(&f.after, "after", "", "go on after a listing that was cut by --limit")
}

func (a *app) lsCmd() *cobra.Command {
	var f pageFlags
	var overdue bool
	cmd := &cobra.Command{
		Use:   "ls QUEUE",
		Short: "List the live messages of a queue in order of enqueue",
		Long: `List the live messages of a queue in order of enqueue. RECEIPT is the short form of
a claim's receipt, which ack, retry, release, fail, extend and reap take; show has the
whole one. ATTEMPTS counts all claims, and apart those that are no failures: excused
(released, snoozed, reprocessed) and lapsed (reaped, taken over). A claim is out until its
lease is over or a reaping finds its process dead: a list does not ask.

With --overdue only leases past their deadline, of the queue or of all queues:
"holdfast reap" returns their messages.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && !overdue {
				return usagef("usage: holdfast ls QUEUE")
			}
			for _, q := range args {
				if err := queue.CheckQueue(q); err != nil {
					return err
				}
			}
			ctx := cmd.Context()
			if overdue {
				if f != (pageFlags{}) {
					return usagef("--overdue shows all of them; it goes without --limit and --after")
				}
				return a.withLook(ctx, func(s store) error { return a.listOverdue(ctx, s, args) })
			}
			return about(a.withLook(ctx, func(s store) error {
				row, err := rowOf(ctx, s, args[0])
				if err != nil {
					return err
				}
				return a.listing(ctx, f, "holdfast ls "+args[0], row, func(o queue.ListOptions) (queue.Page, error) {
					return s.List(ctx, args[0], o)
				})
			}), facts{queue: args[0]})
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&overdue, "overdue", false, "only leases past their deadline; without a queue, of all")
	return cmd
}

const liveHead = "ID\tSTATE\tKEY\tATTEMPTS\tBYTES\tENQUEUED\tRECEIPT"

func liveRow(e *queue.Entry) string {
	if e == nil {
		return liveHead
	}
	receipt := "-"
	if e.Receipt.Store != "" {
		receipt = shortReceipt(e.Receipt)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%s\t%s", e.ID, printable(stateText(*e)), pick(printable(e.Key), "-"),
		attemptsText(*e), e.PayloadBytes, when(e.EnqueuedAt), receipt)
}

// importing stands for ready while an import into the queue is open: nothing of it can
// be claimed yet.
const importing queue.State = "importing"

// rowOf gives the rows of a queue's live messages.
func rowOf(ctx context.Context, s store, name string) (func(*queue.Entry) string, error) {
	st, err := s.Status(ctx, queue.StatusOptions{Queues: []string{name}})
	if err != nil || !st.Queues[name].Importing {
		return liveRow, err
	}
	return func(e *queue.Entry) string {
		if e == nil || e.State != queue.Ready {
			return liveRow(e)
		}
		held := *e
		held.State = importing
		return liveRow(&held)
	}, nil
}

func overdueRow(e *queue.Entry) string {
	if e == nil {
		return "QUEUE\t" + liveHead
	}
	return e.Queue + "\t" + liveRow(e)
}

// listOverdue lists the leases past their deadline, of the queues named or of all
// that have some.
func (a *app) listOverdue(ctx context.Context, s store, queues []string) error {
	st, err := s.Status(ctx, queue.StatusOptions{Queues: queues})
	if err != nil {
		return err
	}
	found := queue.Page{Settled: st.Settled}
	for _, name := range slices.Sorted(maps.Keys(st.Queues)) {
		if st.Queues[name].Overdue == 0 {
			continue
		}
		o := queue.ListOptions{Limit: pageSize}
		err := eachPage(&o, func() (queue.Page, error) { return s.List(ctx, name, o) }, func(p queue.Page) {
			found.Settled = found.Settled && p.Settled
			for _, e := range p.Entries {
				if e.Overdue {
					found.Entries = append(found.Entries, e)
				}
			}
		})
		if err != nil {
			return about(err, facts{queue: name})
		}
	}
	if !found.Settled {
		a.unsettledListing(ctx, len(found.Entries) == 0)
	}
	a.printPage(found, overdueRow, true)
	return nil
}

// listing prints a listing page by page: all of it, or up to --limit, and then how
// to go on. Row gives the row of an entry, and the heading for none.
func (a *app) listing(ctx context.Context, f pageFlags, again string, row func(*queue.Entry) string, get func(queue.ListOptions) (queue.Page, error)) error {
	if f.limit < 0 {
		return usagef("--limit %d: want 0 for all, or more", f.limit)
	}
	left, marked, shown := f.limit, false, 0
	o := queue.ListOptions{After: f.after}
	for {
		o.Limit = pageSize
		if f.limit > 0 {
			o.Limit = min(left, pageSize)
		}
		p, err := get(o)
		if err != nil {
			return err
		}
		if !p.Settled && !marked {
			marked = true
			a.unsettledListing(ctx, len(p.Entries) == 0)
		}
		a.printPage(p, row, shown == 0)
		if a.out.Flush() != nil {
			return nil // run tells it: nobody reads the pages to come
		}
		shown, left, o.After = shown+len(p.Entries), left-len(p.Entries), p.Next
		if p.Next == "" {
			return nil
		}
		if f.limit > 0 && left <= 0 {
			a.note("more", "there are more; run: %s --limit %d --after %s --dir %s", again, f.limit, shellWord(p.Next), shellWord(a.dir))
			return nil
		}
	}
}

// unsettledListing says that a listing is not settled. In JSON every line carries it,
// so that only an empty one needs a word.
func (a *app) unsettledListing(ctx context.Context, empty bool) {
	owner := a.lockOwner(ctx)
	a.markUnsettled(ctx, false, owner)
	switch {
	case !empty || !a.json:
	case owner != nil:
		a.note("unsettled", "%s", a.unfinished(ctx, *owner))
	default:
		a.note("unsettled", notUnderLock)
	}
}

func (a *app) printPage(p queue.Page, row func(*queue.Entry) string, first bool) {
	if a.json {
		for _, e := range p.Entries {
			a.printJSON(lineOf(e, p.Settled))
		}
		return
	}
	if len(p.Entries) == 0 {
		return
	}
	t := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	if first {
		fmt.Fprintln(t, row(nil))
	}
	for i := range p.Entries {
		fmt.Fprintln(t, row(&p.Entries[i]))
	}
	t.Flush()
}
