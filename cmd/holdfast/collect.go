//go:build unix

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	holdfast "example.com/holdfast/v2"
)

func (a *app) collectCmd() *cobra.Command {
	var o holdfast.CollectOptions
	cmd := &cobra.Command{
		Use:   "collect",
		Short: "Free the room of what nothing refers to any more",
		Long: `Free the room of what nothing refers to any more: the payloads of messages that were
acked, superseded, cleared or purged, what programs left that were killed, and leftover
temporary files. Nothing does this by itself. It takes no message and no evidence, and
works on a full disk.

Programs that use the store go on: the lock is held for a bounded number of objects at a
time. What is not certain stays, and is counted with its reason. While something reads
objects by their paths, as a backup does, nothing is removed, and the command says so.
It may be interrupted, and called again, at any time.

With --dry-run it only tells what it would free.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			a.bound = lookBytes // it writes no state, and so reads one of any size
			in := a.withChange
			if o.DryRun {
				in = a.withLook
			}
			return in(ctx, func(s store) error { return a.collect(ctx, s, o) })
		},
	}
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "tell what would be freed, and change nothing")
	return cmd
}

func (a *app) collect(ctx context.Context, s store, o holdfast.CollectOptions) error {
	if !a.json && a.tty(a.stderr) {
		o.Progress = func(r holdfast.CollectReport) {
			fmt.Fprintf(a.stderr, "\r%d of %d looked at, %d bytes to free so far\x1b[K", r.Looked, r.Total, r.Bytes+r.TempBytes)
		}
	}
	r, err := s.Collect(ctx, o)
	if o.Progress != nil {
		fmt.Fprint(a.stderr, "\r\x1b[K")
	}
	if r.Objects+r.Temps > 0 && !r.DryRun {
		a.did("freed", plural(r.Objects, "object"))
	}
	if err == nil || r.Holds > 0 {
		a.printCollected(r)
	}
	return err
}

func (a *app) printCollected(r holdfast.CollectReport) {
	if a.json {
		a.printJSON(r)
		return
	}
	verb := "freed"
	if r.DryRun {
		verb = "would free"
	}
	a.printf("%s %s of %d bytes and %s of %d bytes", verb, plural(r.Objects, "object"), r.Bytes, plural(r.Temps, "leftover temp"), r.TempBytes)
	if r.Done {
		a.printf("; %s in use\n", plural(r.Named, "object"))
	} else {
		a.printf("; %d of %d were not looked at\n", r.Total-r.Looked, r.Total)
	}
	for _, k := range r.Kept {
		a.printf("kept %d, %s: %s", k.Count, k.Reason, k.First)
		if k.Error != "" {
			a.printf(": %s", printable(k.Error))
		}
		a.printf("\n")
	}
}

// worthCollecting is from how many bytes, or objects, that nothing refers to people are
// told that they can be freed.
const (
	worthBytes   = 16 << 20
	worthObjects = 10_000
)

// printOrphans tells what nothing refers to, and what to do about it when it is much.
func (a *app) printOrphans(objects, bytes, temps int64) {
	if objects <= 0 && temps <= 0 {
		return
	}
	a.printf("%s that nothing refers to (%d bytes)", plural(max(objects, 0), "object"), max(bytes, 0))
	if temps >= 0 {
		a.printf(", %s", plural(temps, "leftover temp"))
	}
	a.printf("\n")
	if bytes >= worthBytes || objects >= worthObjects {
		a.printf("it is worth freeing them: holdfast collect --dir %s\n", shellWord(a.dir))
	}
}
