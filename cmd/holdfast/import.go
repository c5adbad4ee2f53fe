//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"example.com/holdfast/migrate"
	v1 "example.com/holdfast/v1"
	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// An importCall is the flags of import-v1.
type importCall struct {
	from, failed, queue string
	fenced, dryRun      bool
	skip, abandon       bool
	remove, yes         bool
	locks               []string
	claimBy             string

	spent []string // of locks: they do not stand, or not any more
}

func (a *app) importCmd() *cobra.Command {
	var c importCall
	cmd := &cobra.Command{
		Use:   "import-v1 --from DIR --queue QUEUE --i-have-stopped-old-programs",
		Short: "Take a v1 queue directory over into a queue of this store",
		Long: `Take a queue directory of the npm package @openclaw/fs-safe, or of holdfast's v1
store, over into a queue: once, whole, and for good. Pending entries arrive pending,
claimed ones are delivered again, and those of the failed directory arrive among the
failed messages. The old files stay until --remove-source.

First stop every program that works on the directory, and make sure that none can
come back: its service, its cron entry, the app that starts it. No lock, process
number, quiet interval or comparison of files can prove that; so you say it, with
--i-have-stopped-old-programs. What an old program still writes during the import
is found if it can be, and stops it; what it writes afterwards is lost to the queue.

It may be interrupted at any point: run the same command again, and it goes on.
Until it has ended the queue takes no other change, and --abandon takes all of it
back. docs/migrating.md has the steps, and the way back.`,
		Example: `  holdfast import-v1 --from outbox --failed outbox-failed --queue mail --dir store --dry-run
  holdfast import-v1 --from outbox --failed outbox-failed --queue mail --dir store --i-have-stopped-old-programs
  holdfast import-v1 --from outbox --queue mail --dir store --remove-source`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unexpected argument %q: the directories come with --from and --failed", args[0])
			}
			if err := a.checkImport(&c, cmd.Flags().Changed); err != nil {
				return err
			}
			return a.aboutImport(&c, a.runImport(cmd.Context(), &c))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.from, "from", "", "the v1 queue directory")
	flags.StringVar(&c.failed, "failed", "", "its failed directory; without it what failed stays where it is")
	flags.StringVar(&c.queue, "queue", "", "the queue that takes the entries")
	flags.BoolVar(&c.fenced, "i-have-stopped-old-programs", false, "no program of old works on the directory, and none can come back")
	flags.StringArrayVar(&c.locks, "remove-lock", nil, "remove this transfer lock, whose owner you know to be gone; may be repeated")
	flags.BoolVar(&c.dryRun, "dry-run", false, "look and check; change nothing")
	flags.BoolVar(&c.skip, "skip-invalid", false, "leave entries that cannot be imported where they are")
	flags.BoolVar(&c.abandon, "abandon", false, "take back an import that has not ended; without --from by the store's own record")
	flags.BoolVar(&c.remove, "remove-source", false, "the last step: remove the old files that were imported and are unchanged")
	flags.BoolVar(&c.yes, "yes", false, "with --remove-source: do not ask; without a terminal it is needed")
	flags.StringVar(&c.claimBy, "claim-by", "rename", `how interrupted transitions are finished: rename, which needs no hard link and
so also works on a phone, or link`)
	return cmd
}

// checkImport says what is wrong with the flags.
func (a *app) checkImport(c *importCall, given func(string) bool) error {
	modes := 0
	for _, on := range []bool{c.dryRun, c.abandon, c.remove} {
		if on {
			modes++
		}
	}
	switch {
	case modes > 1:
		return usagef("--dry-run, --abandon and --remove-source are three things; give one")
	case c.from == "" && !c.abandon:
		return usagef("say from where: --from DIR")
	case c.queue == "" && !c.remove:
		return usagef("say into which queue: --queue QUEUE")
	case given("failed") && c.failed == "":
		return usagef("--failed is empty: leave it out for none")
	case c.claimBy != "rename" && c.claimBy != "link":
		return usagef("--claim-by %s: want rename or link", c.claimBy)
	case (c.abandon || c.remove) && (c.skip || c.locks != nil):
		return usagef("--skip-invalid and --remove-lock go with an import")
	case c.yes && !c.remove:
		return usagef("--yes goes with --remove-source")
	case c.remove && !c.yes && !a.tty(a.in):
		return usagef("--remove-source asks first, and this is no terminal: give --yes to mean it")
	}
	if c.queue != "" {
		if err := queue.CheckQueue(c.queue); err != nil {
			return err
		}
	}
	for _, dir := range []*string{&c.from, &c.failed} {
		if *dir == "" {
			continue
		}
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return err
		}
		*dir = abs
	}
	for i, lock := range c.locks {
		if filepath.Base(lock) == lock {
			continue
		}
		abs, err := filepath.Abs(lock)
		if err != nil {
			return err
		}
		if filepath.Dir(abs) != c.from {
			return usagef("--remove-lock %s: it is not in %s", lock, c.from)
		}
		c.locks[i] = filepath.Base(lock)
	}
	for _, lock := range c.locks {
		if !v1.IsLockFile(lock) {
			return usagef("--remove-lock %s: that is not the name of a transfer lock", lock)
		}
	}
	if !c.fenced && modes == 0 {
		look := *c
		look.dryRun = true
		return about(fmt.Errorf("%w with --i-have-stopped-old-programs; a dry run needs no fence", migrate.ErrNotFenced),
			facts{queue: c.queue, run: a.importCommand(&look, look.again()...)})
	}
	return nil
}

// importOptions are the library's. Recovery by rename is the default: it must work where the
// directory came to stand still because links were refused, and it understands what
// either route left.
func (a *app) importOptions(c *importCall) migrate.Options {
	route := v1.RenameNoReplace
	if c.claimBy == "link" {
		route = v1.HardLink
	}
	o := migrate.Options{
		From: c.from, Failed: c.failed, Queue: c.queue, Fenced: c.fenced, RemoveLocks: c.locks, DryRun: c.dryRun, SkipInvalid: c.skip,
		V1: &v1.Options{ClaimBy: route},
	}
	if !a.json && a.tty(a.stderr) {
		o.Progress = func(p migrate.Progress) { fmt.Fprintf(a.stderr, "\r%s: %d of %d\x1b[K", p.Phase, p.Done, p.Total) }
	}
	return o
}

func (a *app) runImport(ctx context.Context, c *importCall) error {
	o := a.importOptions(c)
	wipe := func() {
		if o.Progress != nil {
			fmt.Fprint(a.stderr, "\r\x1b[K")
		}
	}
	with := a.withStore
	if c.dryRun {
		with = a.withLook
	}
	return with(ctx, func(s store) error {
		st, ok := s.(*holdfast.Store)
		if !ok {
			return fmt.Errorf("import into this engine: %w", errors.ErrUnsupported)
		}
		switch {
		case c.abandon:
			rep, err := migrate.Abandon(ctx, st, o)
			if err == nil {
				a.did("abandoned", "import "+rep.Token)
				a.printAbandoned(c, rep)
			}
			return err
		case c.remove:
			if !c.yes && !a.confirm(fmt.Sprintf("remove the imported files from %s?", c.from)) {
				return fmt.Errorf("%s is as it was: %w", c.from, errDeclined)
			}
			r, err := migrate.RemoveSource(ctx, st, o)
			wipe()
			if r.Removed > 0 {
				a.did("removed", plural(int64(r.Removed), "file")+" from "+c.from)
			}
			if err == nil || r.Removed > 0 {
				a.printRemoval(c, r)
			}
			return err
		}
		rep, err := migrate.Import(ctx, st, o)
		wipe()
		c.spent = rep.LocksMissing
		if !c.dryRun {
			for _, l := range rep.LocksRemoved {
				c.spent = append(c.spent, l.File)
			}
		}
		if err != nil {
			a.printUnfinished(rep)
			a.printProblems(err)
			return stoppedImport(rep, err)
		}
		if !c.dryRun {
			a.did("imported", plural(int64(messages(rep)), "message")+" into "+c.queue)
		}
		a.printImport(c, rep)
		return nil
	})
}

// messages counts what an import is of.
func messages(r migrate.Report) int { return r.Claimed + r.Pending + r.Failed }

// stoppedImport says how far an import came that was interrupted, or found no room.
func stoppedImport(rep migrate.Report, err error) error {
	switch {
	case rep.Token == "" && interrupted(err):
		return &stoppedError{"stopped while checking; nothing was begun"}
	case rep.Token == "":
		return err
	case errors.Is(err, queue.ErrFull):
		return fmt.Errorf("%w; the import is open: make room, and the same command goes on", err)
	case !interrupted(err):
		return err
	}
	return &stoppedError{fmt.Sprintf("stopped: %d of %d brought now; the import is open: nothing of it can be claimed yet, and the same command goes on", rep.Added, messages(rep))}
}
