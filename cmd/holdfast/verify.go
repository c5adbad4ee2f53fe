//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	holdfast "example.com/holdfast/v2"
)

func (a *app) verifyCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check the whole store, every payload included; changes nothing",
		Long: `Check the whole store, every payload included, and change nothing. The runs of a deep
queue are blocks of its pending messages that lie in files of their own, and count as
objects. Where one is damaged its messages are not counted, and neither are the objects
that nothing refers to; in JSON orphans is -1 then. What else is not as it must be is told
in faults, each with a code: state, run, payload, counters, file or lock.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := a.lookOptions()
			var v holdfast.VerifyOptions
			if !a.json && a.tty(a.stderr) {
				v.Progress = func(done, total int64) {
					fmt.Fprintf(a.stderr, "\r%d of %d MiB\x1b[K", done>>20, total>>20)
				}
			}
			r, err := a.engine.verify(cmd.Context(), a.dir, o, v)
			if v.Progress != nil {
				fmt.Fprint(a.stderr, "\r\x1b[K")
			}
			if err != nil {
				return err
			}
			a.printReport(cmd.Context(), r)
			if !r.OK || len(r.Faults) > 0 {
				err := fmt.Errorf("%s: %w", plural(int64(len(r.Faults)), "fault"), errFaults)
				if !counted(r) {
					return about(err, facts{advice: noRepair})
				}
				return err
			}
			return nil
		},
	}
}

func (a *app) printReport(ctx context.Context, r holdfast.Report) {
	if a.json {
		if r.Faults == nil {
			r.Faults = []holdfast.Fault{}
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
	a.printOrphans(r.Orphans, r.OrphanBytes, r.Temps)
}

// counted reports whether the store could be read: one that was has an id.
func counted(r holdfast.Report) bool { return r.OK || r.Store != "" }
