//go:build unix

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
)

func (a *app) statusCmd() *cobra.Command {
	var watch, orphans bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "status [QUEUE...]",
		Short: "Show where the queues stand, in one snapshot",
		Long: `Show the gauges of the queues named, or of all, in one snapshot. Complete means
that nothing is pending and nothing processing; it says nothing about success. A
look that could not be taken under the store's lock, or that found a dead owner's
unfinished work, is marked as unsettled and is never complete.

With --watch it looks again and again until it is interrupted. On a terminal it shows a
table in one place; elsewhere a line for each queue, and with --json one line in all, each
time that something is new. IN/S and OUT/S are how many messages a second came into a
queue and left it, settled, failed or removed, between the last two looks; - means not
known: at the first look, and where a counter went back. OLDEST is how long ago the oldest
live message was enqueued, BLOCK what waits behind a key or an older message of its ID.
A lock that another process holds is not waited for long: the last committed state is
shown, and who holds it.

With --orphans it counts the objects that nothing refers to, and their bytes, for which it
reads the runs of deep queues and looks at each such object; collect frees them. In JSON
orphans is their number and orphan_bytes their size; -1 means not counted.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, q := range args {
				if err := queue.CheckQueue(q); err != nil {
					return err
				}
			}
			switch {
			case cmd.Flags().Changed("interval") && !watch:
				return usagef("--interval goes with --watch")
			case interval < minInterval:
				return usagef("--interval %s: want at least %s", interval, minInterval)
			case orphans && watch:
				return usagef("--orphans does not go with --watch")
			case watch:
				return a.watchStatus(cmd.Context(), args, interval)
			}
			return a.withLook(cmd.Context(), func(s store) error {
				st, err := s.Status(cmd.Context(), queue.StatusOptions{Queues: args, Orphans: orphans})
				if err != nil {
					return err
				}
				a.printStatus(cmd.Context(), st)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&orphans, "orphans", false, "count the objects that nothing refers to")
	cmd.Flags().BoolVar(&watch, "watch", false, "look again and again, and show what is new")
	cmd.Flags().DurationVar(&interval, "interval", defaultInterval, "how often --watch looks")
	return cmd
}

// statusLine is the fixed machine form.
type statusLine struct {
	Revision uint64                 `json:"revision"` // a number, as in enqueue
	Settled  bool                   `json:"settled"`
	Queues   map[string]forms.Queue `json:"queues"`
	Orphans  int64                  `json:"orphans"`      // -1: not counted
	Bytes    int64                  `json:"orphan_bytes"` // of these
	Owner    *queue.Owner           `json:"owner"`
	Message  *messageLine           `json:"message,omitempty"` // of wait --message
}

func statusLineOf(st queue.Status) statusLine {
	l := statusLine{Revision: st.Revision, Settled: st.Settled, Queues: map[string]forms.Queue{}, Orphans: st.Orphans, Bytes: st.OrphanBytes, Owner: st.Owner}
	for name, q := range st.Queues {
		l.Queues[name] = forms.QueueOf(q, st.Settled)
	}
	return l
}

func (a *app) printStatus(ctx context.Context, st queue.Status) {
	if a.json {
		a.printJSON(statusLineOf(st))
		return
	}
	a.markUnsettled(ctx, st.Settled, st.Owner)
	if len(st.Queues) == 0 {
		a.printf("no queues\n")
	} else {
		t := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "QUEUE\tPENDING\tREADY\tSCHEDULED\tBLOCKED\tPROCESSING\tOVERDUE\tFAILED\tCOMPLETE")
		for _, name := range slices.Sorted(maps.Keys(st.Queues)) {
			q := st.Queues[name]
			complete := "no"
			switch {
			case st.Settled && q == queue.QueueStatus{}:
				complete = "unknown (empty)" // one that the store knew has counted something
			case st.Settled && q.Complete():
				complete = "yes"
			case !st.Settled:
				complete = "unsettled"
			}
			fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", name, q.Pending, q.Ready, q.Scheduled,
				q.Blocked, q.Processing, q.Overdue, q.Failed, complete)
		}
		t.Flush()
		for _, name := range slices.Sorted(maps.Keys(st.Queues)) {
			if st.Queues[name].Paused {
				a.printf("%s is paused\n", name)
			}
			if st.Queues[name].Importing {
				a.printf("%s takes nothing else while the import of your v1 directory is open: run that import again; to take it back: holdfast import-v1 --abandon --queue %s --dir %s\n",
					name, shellWord(name), shellWord(a.dir))
			}
			if space := st.Queues[name].FailedNamespace; space != "" {
				a.printf("%s keeps what fails in the namespace %s\n", name, space)
			}
		}
	}
	if st.Orphans == 0 {
		a.printf("0 objects that nothing refers to\n") // --orphans asked
	}
	a.printOrphans(st.Orphans, st.OrphanBytes, -1)
}
