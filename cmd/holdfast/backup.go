//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

func (a *app) backupCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "backup DIR|-",
		Short: "Copy the store, as it is at one revision, while work goes on",
		Long: `Copy the store, as it is at one revision, while work goes on. DIR is made if it is
missing and else must be empty; it must not lie in the store's own directory. With - a
tar stream is written to standard output, and the report, if --json asks for one, to
standard error.

Every payload is checked on the way: a damaged one stops the backup, and verify names all
of them. The manifest, with the SHA-256 of each file, is written last: without it a copy
is not whole, and cannot be restored. A copy is no store. Nothing is changed in the
store; until the copy is done, nothing is collected.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, to := cmd.Context(), args[0]
			if to == "-" && a.tty(a.stdout) {
				return usagef("a tar stream is not for a terminal: give a directory, or redirect standard output")
			}
			o := a.lookOptions()
			o.LookAfter = 0 // a copy is of what is settled
			return use(ctx, a.engine.look, a.dir, o, func(s store) error {
				var b holdfast.BackupOptions
				var over func()
				b.Progress, over = a.progress()
				var r holdfast.BackupReport
				var err error
				if to == "-" {
					r, err = a.backupStream(ctx, s, b)
				} else {
					r, err = s.Backup(ctx, to, b)
				}
				over()
				if err != nil {
					return aboutCopy(err, to)
				}
				return a.printBackup(r, to)
			})
		},
	}
}

// backupStream writes the copy to standard output. Where that fails it is no matter of the
// store, and what was written is told to be no copy.
func (a *app) backupStream(ctx context.Context, s store, o holdfast.BackupOptions) (holdfast.BackupReport, error) {
	out := &failing{w: a.stdout}
	w := bufio.NewWriterSize(out, 64<<10)
	r, err := s.BackupTar(ctx, w, o)
	if err == nil {
		err = w.Flush()
	}
	what, advice := "standard output could not be written", "back up again, to where there is room"
	switch {
	case out.err == nil:
		return r, err
	case errors.Is(out.err, syscall.EPIPE):
		what, advice = "the program that reads the stream has ended before it", "back up again, to one that reads to the end"
	}
	return r, about(fmt.Errorf("%s: what it was given is not a whole copy, and restore refuses it: %w", what, out.err), facts{outside: true, advice: advice})
}

// A failing remembers the error of a stream.
type failing struct {
	w   io.Writer
	err error
}

func (f *failing) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err != nil {
		f.err = err
	}
	return n, err
}

// aboutCopy says what to do about a backup that did not come to its end.
func aboutCopy(err error, to string) error {
	switch {
	case errors.Is(err, queue.ErrDamaged):
		return about(err, facts{run: "holdfast verify --dir {dir}"})
	case errors.Is(err, fs.ErrNotExist) && to != "-":
		return about(err, facts{advice: "make the directory that it is to lie in first", place: to})
	case to != "-" && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)):
		return about(err, facts{advice: "what was written there is no copy: remove it, and give a directory where there is room", place: to}) // the store is only read
	case to != "-" && errors.Is(err, syscall.EROFS):
		return about(err, facts{advice: "give a directory that can be written", place: to})
	case errors.Is(err, holdfast.ErrNotEmpty), errors.Is(err, holdfast.ErrUnsafe) && to != "-":
		return about(err, facts{advice: "give another directory", place: to})
	}
	return err
}

func (a *app) printBackup(r holdfast.BackupReport, to string) error {
	if to == "-" {
		if a.json {
			a.errJSON(r)
		}
		return nil
	}
	if a.json {
		a.printJSON(r)
		return nil
	}
	where, err := filepath.Abs(to)
	if err != nil {
		where = to // for people only
	}
	a.printf("copied revision %d to %s: %s, %d failed, in %s of %d bytes\n",
		r.Revision, printable(where), plural(r.Messages, "message"), r.Failed, plural(r.Files, "file"), r.Bytes)
	return nil
}
