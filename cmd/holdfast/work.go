//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
	holdfast "example.com/holdfast/v2"
	"example.com/holdfast/worker"
)

// A workOrder is what `work` was told.
type workOrder struct {
	queue         string
	argv          []string
	options       worker.Options
	drain         time.Duration
	collectEvery  time.Duration
	untilComplete bool
	verbose       bool
}

func (a *app) workCmd() *cobra.Command {
	var w workOrder
	var lease string
	o := &w.options
	cmd := &cobra.Command{
		Use:   "work QUEUE [flags] -- COMMAND [ARG...]",
		Short: "Run a command for each message",
		Long: `Run a command for each message of a queue, until SIGINT, SIGTERM or SIGHUP.

The payload is the command's standard input. In its environment: HOLDFAST_QUEUE,
HOLDFAST_ID, HOLDFAST_KEY, HOLDFAST_ATTEMPT, HOLDFAST_FENCE, HOLDFAST_RECEIPT, and
HOLDFAST_DIR. Its exit status settles the message:

  0                done: ack
  65               bad data: to failed at once, under a free name
  75, any other    a failure: tried again after 2s doubling to 1h, drawn at random up
                   to that, and at --max-failures to failed
  ended by signal  a failure likewise

The end of what it writes to stderr is kept as the last error. While the command runs
its lease is renewed. If this process is killed the command goes on, and counts as
alive: nobody else gets its message until it has ended, or until the lease is over.
Leases of processes that died, and those past their deadline, are reaped while this
one runs.

These drain: nothing more is claimed, running commands may end within
--drain. Then they get SIGTERM, and SIGKILL 10 seconds later; when they have ended
their messages go back, excused. A second signal ends this process at once.

With --until-complete it ends when nothing is pending and nothing processing, and says
how many of the queue's messages are in failed. Complete is not success: the exit code
is 0 whatever failed.

Standard output belongs to the commands. What happens is logged on stderr; with -v acks
too, with --json as JSON lines. What the commands write to stderr is passed through
unchanged between the lines of the log, also with --json.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			switch {
			case dash < 0:
				return usagef("give the command to run behind --: holdfast work QUEUE -- COMMAND")
			case dash != 1:
				return usagef("give one queue before --, not %d", dash)
			case len(args) == 1:
				return usagef("no command behind --")
			}
			w.queue, w.argv = args[0], args[1:]
			d, err := parseLease(lease)
			switch {
			case err != nil:
				return err
			case d == queue.NoDeadline:
				return usagef("--lease none: a worker renews its leases, so they need a deadline")
			case o.Concurrency < 1:
				return usagef("-c %d: want at least 1", o.Concurrency)
			case o.Retry.MaxFailures == 0:
				return usagef("--max-failures 0: want at least 1")
			case o.Retry.MaxLapses == 0:
				return usagef("--max-lapses 0: want at least 1")
			case w.collectEvery < 0:
				return usagef("--collect-every %s: from 0s", w.collectEvery)
			case w.drain < 0:
				return usagef("--drain %s: from 0s", w.drain)
			}
			o.Lease = d
			// The commands are ended by ourselves, so that their messages go back when they
			// have ended and not before; the library's own bounds come behind that.
			o.Drain = w.drain + endWithin + behind
			o.Grace = endWithin + behind
			return about(a.work(cmd.Context(), w), facts{queue: w.queue})
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&o.Concurrency, "concurrency", "c", 1, "run up to this many commands at once")
	flags.StringVar(&lease, "lease", worker.DefaultLease.String(), "how long a claim holds unless renewed")
	flags.DurationVar(&o.Timeout, "timeout", 0, "end a command with SIGTERM after so long; a failure (0: no limit)")
	flags.Uint64Var(&o.Retry.MaxFailures, "max-failures", queue.DefaultMaxFailures, "to failed after so many failures")
	flags.Uint64Var(&o.Retry.MaxLapses, "max-lapses", queue.DefaultMaxLapses, "to failed after so many claims that ended by reaping")
	flags.DurationVar(&o.Retry.Base, "base-delay", worker.DefaultBase, "the longest delay after a first failure; it doubles with each")
	flags.DurationVar(&o.Retry.Max, "max-delay", worker.DefaultMaxDelay, "the longest delay")
	flags.DurationVar(&w.drain, "drain", worker.DefaultDrain, "how long running commands may go on after the signal")
	flags.DurationVar(&w.collectEvery, "collect-every", 0, "free what nothing refers to so often (0: never)")
	flags.StringVar(&o.Label, "label", "", "who claims, for people who look")
	flags.BoolVar(&o.Fair, "fair", false, "rotate over the keys in place of the oldest first")
	flags.BoolVar(&w.untilComplete, "until-complete", false, "end when nothing is pending and nothing processing in the queue")
	flags.BoolVarP(&w.verbose, "verbose", "v", false, "log every message")
	return cmd
}

func (a *app) work(ctx context.Context, w workOrder) error {
	path, err := lookPath(w.argv[0], a.env("PATH"))
	if err != nil {
		return usagef("%v", err)
	}
	return a.withStore(ctx, func(s store) error {
		c := &command{path: path, argv: w.argv, dir: a.dir, stdout: &lockedWriter{w: a.stdout}, stderr: a.stderr, within: endWithin}
		if h, ok := s.(interface {
			Holder(context.Context) (*os.File, error)
		}); ok {
			if c.holder, err = h.Holder(ctx); err != nil {
				return err
			}
			defer c.holder.Close()
		}
		c.log = a.workLog(w.verbose)
		if st, err := s.Status(ctx, queue.StatusOptions{Queues: []string{w.queue}}); err == nil && st.Queues[w.queue].Importing {
			a.note("importing", "an import into %s is open: nothing can be claimed until it ends; run the import of your v1 directory again, or take it back: holdfast import-v1 --abandon --queue %s --dir %s",
				w.queue, shellWord(w.queue), shellWord(a.dir))
		}
		w.options.Logger = c.log
		defer c.running.Wait() // none outlives this process by our doing
		w.options.Fatal = holdfast.NeedsOperator
		if w.options.CollectEvery = w.collectEvery; w.collectEvery > 0 {
			w.options.Collect = func(ctx context.Context) error {
				r, err := s.Collect(ctx, holdfast.CollectOptions{})
				if r.Objects+r.Temps > 0 {
					c.log.Info("collected", "objects", r.Objects, "bytes", r.Bytes+r.TempBytes)
				}
				return err
			}
		}
		running, stop := context.WithCancel(ctx)
		defer stop()
		drained := make(chan struct{})
		c.drained = drained
		context.AfterFunc(running, func() { time.AfterFunc(w.drain, func() { close(drained) }) })
		waited := make(chan error, 1)
		complete := false // read when waited has told
		if w.untilComplete {
			go func() {
				_, err := s.Wait(running, queue.WaitOptions{Queues: []string{w.queue}})
				complete = err == nil
				stop()
				waited <- err
			}()
		} else {
			waited <- nil
		}
		err := worker.Run(running, queue.New[json.RawMessage](s, w.queue), c.handle, w.options)
		stop()
		if e := <-waited; err == nil && !errors.Is(e, context.Canceled) {
			err = e
		}
		if err == nil && complete {
			return a.sayComplete(context.WithoutCancel(ctx), s, c.log, w.queue)
		}
		return err
	})
}

// sayComplete ends a work that ran until its queue was complete: that is no success, so
// it says how many have failed.
func (a *app) sayComplete(ctx context.Context, s store, log *slog.Logger, name string) error {
	st, err := s.Status(ctx, queue.StatusOptions{Queues: []string{name}})
	if err != nil {
		return err
	}
	failed := st.Queues[name].Failed
	if a.json {
		log.Info("complete", "queue", name, "failed", failed)
		return nil
	}
	a.note("complete", "complete; %d failed in all", failed)
	return nil
}

func (a *app) workLog(verbose bool) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if verbose {
		o.Level = slog.LevelDebug
	}
	if a.json {
		return slog.New(slog.NewJSONHandler(a.stderr, o))
	}
	return slog.New(slog.NewTextHandler(a.stderr, o))
}

// behind is how much later than the command's own bounds those of the library come.
const behind = 5 * time.Second

// exDataErr is the one exit status beside 0 with a meaning of its own; it has the name
// that sysexits.h gives it. EX_TEMPFAIL, 75, is a failure as every other.
const exDataErr = 65

// notStarted is the delay after which a message is tried again whose command could
// not be started: that is the system's fault and no failure of the message.
const notStarted = 5 * time.Second

// handle runs the command for one message and makes an answer of how it ended.
func (c *command) handle(ctx context.Context, m *queue.Received[json.RawMessage]) error {
	r := m.Receipt
	end, err := c.run(ctx, m.Payload, []string{
		"HOLDFAST_DIR=" + c.dir, "HOLDFAST_QUEUE=" + r.Queue, "HOLDFAST_ID=" + r.ID, "HOLDFAST_KEY=" + m.Key,
		fmt.Sprintf("HOLDFAST_ATTEMPT=%d", r.Attempt), fmt.Sprintf("HOLDFAST_FENCE=%d", m.Fence), "HOLDFAST_RECEIPT=" + r.String(),
	})
	switch {
	case err != nil:
		c.log.Error("the command was not started", "queue", r.Queue, "id", r.ID, "error", err, "delay", notStarted)
		return fmt.Errorf("%w: %w", worker.Snooze(notStarted), err)
	case end.status.ExitStatus() == 0:
		return nil
	case ctx.Err() != nil: // the time limit, or a lost lease
		return fmt.Errorf("%s: %w", end, ctx.Err())
	case end.told: // by the end of the drain: no failure of its own
		return worker.Snooze(0)
	case end.status.ExitStatus() == exDataErr:
		return worker.Fail(errors.New(end.String()))
	}
	return errors.New(end.String())
}
