//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

func (a *app) waitCmd() *cobra.Command {
	var o queue.WaitOptions
	var timeout string
	cmd := &cobra.Command{
		Use:   "wait [QUEUE...]",
		Short: "Wait until queues are complete",
		Long: `Wait until one snapshot shows that in the queues named, or in all, nothing is pending
and nothing processing, and print that status. It says nothing about success, nor
that no more will come. An unknown queue is empty. With --message wait for one message
of one queue: until no generation of that ID is live; give the whole ID. It then says
whether a message of that ID is in failed.

Changes of other processes wake it. Exit code 1: --timeout passed first; the status
that is printed is then the one at that time. With --timeout 0s it looks once, and what
is not settled is not complete.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			within, err := parseTimeout(timeout)
			if err != nil {
				return err
			}
			o.Queues = args
			switch {
			case !cmd.Flags().Changed("message"):
			case o.Message == "":
				return usagef("--message is empty: leave it out to wait for whole queues")
			case len(args) != 1:
				return usagef("--message is an ID of one queue: holdfast wait QUEUE --message ID")
			}
			if err := o.Check(); err != nil {
				return err
			}
			return a.wait(cmd.Context(), o, within)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&timeout, "timeout", "none", "how long to wait; none is for ever, 0s looks once")
	flags.StringVar(&o.Message, "message", "", "wait for the message of this ID only")
	flags.BoolVar(&o.IgnoreScheduled, "ignore-scheduled", false, "do not wait for messages that are not due yet")
	return cmd
}

// wait waits and prints the final status; within may be forEver.
func (a *app) wait(ctx context.Context, o queue.WaitOptions, within time.Duration) error {
	if within == 0 {
		return a.lookOnce(ctx, o, 0)
	}
	var st queue.Status
	var m *messageLine
	waiting, cancel := ctx, context.CancelFunc(func() {})
	if within != forEver {
		waiting, cancel = context.WithTimeoutCause(ctx, within, errTimedOut)
	}
	defer cancel()
	err := use(waiting, a.openToWait, a.dir, a.lookOptions(), func(s store) (err error) {
		if st, err = s.Wait(waiting, o); err == nil {
			m, err = messageOf(ctx, s, o)
		}
		return err
	})
	switch {
	case err == nil:
		a.printWaited(ctx, st, m)
		return nil
	case errors.Is(err, context.DeadlineExceeded) && context.Cause(waiting) == errTimedOut:
		return a.lookOnce(ctx, o, within) // it may be complete by now
	case interrupted(err):
		return &stoppedError{"stopped waiting"}
	}
	return err
}

// openToWait opens the store as one who may recover it, where the operator consented,
// or where that is not permitted, for looking. It waits for the lock: what is
// complete is never decided without it.
func (a *app) openToWait(ctx context.Context, dir string, o *holdfast.Options) (store, error) {
	o.LookAfter = 0
	s, err := a.engine.open(ctx, dir, o)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return a.engine.look(ctx, dir, o)
	}
	return s, err
}

// notComplete prints the status, and gives the error that says what is not complete.
func (a *app) notComplete(ctx context.Context, o queue.WaitOptions, st queue.Status, within time.Duration) error {
	a.printStatus(ctx, st)
	f := facts{run: otherwise}
	what := "the store is"
	if len(o.Queues) > 0 {
		what = strings.Join(o.Queues, ", ") + " is"
	}
	if len(o.Queues) == 1 {
		f.queue, f.run = o.Queues[0], ""
	}
	if o.Message != "" {
		f.id, what = o.Message, o.Queues[0]+" "+o.Message+" is"
	}
	err := fmt.Errorf("%s not complete after %s: %w", what, within, errTimedOut)
	var processing uint64
	for _, q := range st.Queues {
		processing += q.Processing
	}
	if processing > 0 {
		err = fmt.Errorf("%w; %d processing; %s", err, processing, reapReturns)
		f.run = strings.Join(append([]string{"holdfast reap"}, o.Queues...), " ") + " --dir {dir}"
	}
	return about(err, f)
}
