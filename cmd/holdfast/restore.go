//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	holdfast "example.com/holdfast/v2"
)

func (a *app) restoreCmd() *cobra.Command {
	var r holdfast.RestoreOptions
	cmd := &cobra.Command{
		Use:   "restore FROM|-",
		Short: "Make a store of a copy that backup has made",
		Long: `Make a store of a copy that backup has made: a directory, a file with its tar stream, or
with - such a stream on standard input. The store is made in the directory of --dir, which
is made if it is missing and else must be empty: nothing is overwritten.

It is the copied store, but has an id of its own, so that no receipt of before settles
anything in it, and what was claimed has come back, to be delivered again. Open imports
stay open. It is verified before it is called restored. Until then there is no store in
the directory; where a restore was interrupted, remove it and restore again.

What was done since the copy was taken is done again: messages that were settled since are
delivered again, those that were enqueued since are gone.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := a.options()
			o.MaxStateBytes = lookBytes
			var over func()
			r.Progress, over = a.progress()
			out, err := a.restoreFrom(cmd.Context(), args[0], o, r)
			over()
			switch {
			case errors.Is(err, holdfast.ErrNotEmpty), errors.Is(err, holdfast.ErrExists):
				return about(err, facts{advice: "give another directory with --dir"})
			case errors.Is(err, holdfast.ErrBackup) && args[0] != "-":
				return about(err, facts{place: args[0], advice: aboutNoCopy(args[0])})
			case err != nil:
				return a.aboutParent(err)
			}
			a.did("restored", "a store in "+a.dir)
			a.printRestored(out)
			return nil
		},
	}
	cmd.Flags().IntVar(&r.Workers, "workers", 0, "verify payloads in so many places at once, from 1 to 64 (default: one for each CPU, at most 8)")
	return cmd
}

// aboutNoCopy is the advice where somebody would restore a store itself.
func aboutNoCopy(from string) string {
	if s, err := os.Stat(filepath.Join(from, ".fs-safe-queue-v2")); err == nil && s.IsDir() {
		return "this is a store: holdfast backup makes a copy of it"
	}
	return ""
}

func (a *app) restoreFrom(ctx context.Context, from string, o *holdfast.Options, r holdfast.RestoreOptions) (holdfast.Restored, error) {
	if from == "-" {
		return holdfast.RestoreTar(ctx, a.in, a.dir, o, r)
	}
	info, err := os.Stat(from)
	if err != nil {
		return holdfast.Restored{}, about(err, facts{place: from, advice: "give a copy that holdfast backup has made"})
	}
	if info.IsDir() {
		return holdfast.Restore(ctx, from, a.dir, o, r)
	}
	f, err := os.Open(from)
	if err != nil {
		return holdfast.Restored{}, err
	}
	defer f.Close() // only read
	return holdfast.RestoreTar(ctx, io.Reader(f), a.dir, o, r)
}

func (a *app) printRestored(r holdfast.Restored) {
	if a.json {
		a.printJSON(struct {
			Dir string `json:"dir"`
			holdfast.Restored
		}{a.dir, r})
		return
	}
	a.printf("restored a store in %s: %s, %d failed, in %s, of revision %d\n",
		printable(a.dir), plural(r.Messages, "message"), r.Failed, plural(r.Objects, "object"), r.CopyRevision)
	if r.Returned > 0 {
		a.printf("%s had been claimed and will be delivered again\n", plural(r.Returned, "message"))
	}
	if r.OpenImports > 0 {
		a.printf("%s open: go on with it, or abandon it, by holdfast import-v1\n", plural(r.OpenImports, "import"))
	}
}
