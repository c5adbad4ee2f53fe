//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	holdfast "example.com/holdfast/v2"
)

func (a *app) verifyCmd() *cobra.Command {
	var v holdfast.VerifyOptions
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check the whole store, every payload included; changes nothing",
		Long: `Check the whole store, every payload included, and change nothing. The runs of a deep
queue are blocks of its pending messages that lie in files of their own, and count as
objects. Where one is damaged its messages are not counted, and neither are the objects
that nothing refers to; in JSON orphans is -1 then. What else is not as it must be is told
in faults, each with a code: state, run, payload, counters, file or lock.

Work goes on meanwhile: what is told is true of one revision, the one that is named.

Exit codes: 0, no fault; 3, faults, or no store to look at; 4, the looking failed, which
says nothing about the store; 2, usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := a.lookOptions()
			var over func()
			v.Progress, over = a.progress()
			r, err := a.engine.verify(cmd.Context(), a.dir, o, v)
			over()
			if err != nil {
				return err
			}
			a.printReport(cmd.Context(), r)
			if !r.OK || len(r.Faults) > 0 {
				err := fmt.Errorf("%s: %w", plural(int64(len(r.Faults)), "fault"), errFaults)
				switch {
				case !counted(r):
					return about(err, facts{advice: noRepair})
				case slices.ContainsFunc(r.Faults, func(f holdfast.Fault) bool { return strings.HasSuffix(f.File, "/run.json") }):
					return about(err, facts{advice: noRepairOfRuns})
				}
				return err
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&v.Workers, "workers", 0, "read payloads in so many places at once, from 1 to 64 (default: one for each CPU, at most 8)")
	return cmd
}

// progress gives what tells people on a terminal how many bytes are done, and what wipes
// that out again; nil and a no-op for others.
func (a *app) progress() (tell func(done, total int64), over func()) {
	if a.json || !a.tty(a.stderr) {
		return nil, func() {}
	}
	last := int64(-1)
	tell = func(done, total int64) {
		if done>>20 != last {
			last = done >> 20
			fmt.Fprintf(a.stderr, "\r%d of %d MiB\x1b[K", last, total>>20)
		}
	}
	return tell, func() { fmt.Fprint(a.stderr, "\r\x1b[K") }
}

func (a *app) printReport(ctx context.Context, r holdfast.Report) {
	if a.json {
		if r.Faults == nil {
			r.Faults = []holdfast.Fault{}
		}
		if r.Orphaned == nil {
			r.Orphaned = []holdfast.Orphan{}
		}
		a.printJSON(r)
		return
	}
	if r.OK || r.Owner != nil { // of a store that cannot be read nobody asks whether it is settled
		a.markUnsettled(ctx, r.Settled, r.Owner)
	}
	for _, f := range r.Faults {
		a.printf("fault %s: %s", f.Code, f.File)
		if f.Queue != "" {
			a.printf(" (%s)", strings.TrimSpace(f.Queue+" "+f.ID))
		}
		a.printf(": %s\n", printable(strings.TrimPrefix(f.Reason, f.File+": ")))
	}
	if !counted(r) {
		a.printf("nothing was counted: the store cannot be read\n")
		return
	}
	if r.OK {
		a.printf("ok: ")
	}
	a.printf("%s, %d failed, in %s of %d bytes", plural(r.Messages, "message"), r.Failed, plural(r.Objects, "object"), r.PayloadBytes)
	if r.Runs > 0 {
		a.printf(", %s among them", plural(r.Runs, "run"))
	}
	a.printf("; revision %d\n", r.Revision)
	if r.Processing > 0 {
		a.printf("%s claimed, %d of them overdue\n", plural(r.Processing, "message"), r.Overdue)
	}
	if r.OldestFailed != nil {
		a.printf("the oldest failed message failed at %s\n", when(*r.OldestFailed))
	}
	if r.OpenImports > 0 {
		a.printf("%s open\n", plural(r.OpenImports, "import"))
	}
	a.printOrphans(r.Orphans, r.OrphanBytes, r.Temps)
	if len(r.Orphaned) > 0 {
		a.printf("the oldest of these objects is of %s\n", when(r.Orphaned[0].Modified))
	}
}

// counted reports whether the store could be read: one that was has an id.
func counted(r holdfast.Report) bool { return r.OK || r.Store != "" }
