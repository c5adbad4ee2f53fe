//go:build unix

package main

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// A cliUncertain is a store whose every commit is uncertain, and proves to have
// happened or not.
type cliUncertain struct {
	store
	happened bool
	refused  error
}

func (f *cliUncertain) ID() string   { return "s" }
func (f *cliUncertain) Close() error { return nil }

func (f *cliUncertain) Resolve(context.Context, *queue.UncertainError) (bool, error) {
	return f.happened, nil
}

func (f *cliUncertain) err(u queue.UncertainError) error {
	u.Err, u.Refused = syscall.EIO, f.refused
	return &u
}

func (f *cliUncertain) Ack(context.Context, queue.Receipt) error {
	return f.err(queue.UncertainError{})
}

func (f *cliUncertain) Release(context.Context, queue.Receipt, queue.ReleaseOptions) error {
	return f.err(queue.UncertainError{})
}

func (f *cliUncertain) Retry(_ context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
	back := queue.Returned{Queue: r.Queue, ID: r.ID, Attempt: 1, FailedName: "m~g"}
	return queue.Returned{}, f.err(queue.UncertainError{Returned: []queue.Returned{back}})
}

func (f *cliUncertain) Extend(context.Context, queue.Receipt, time.Duration) (time.Time, error) {
	return time.Time{}, f.err(queue.UncertainError{Deadline: time.Unix(4e9, 0)})
}

func (f *cliUncertain) Fail(_ context.Context, r queue.Receipt, o queue.FailOptions) (string, error) {
	return "", f.err(queue.UncertainError{Failed: "kept"})
}

func (f *cliUncertain) Reap(_ context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
	back := []queue.Returned{{Queue: "chat", ID: "m", Attempt: 2, Cause: queue.ByProof, Lapses: 2}}
	if o.Receipt != nil {
		back = []queue.Returned{{Queue: "chat", ID: "m", Attempt: 1, Cause: queue.ByOperator, Lapses: 10, FailedName: "m"}}
	}
	return nil, f.err(queue.UncertainError{Returned: back})
}

func (f *cliUncertain) ShowFailed(_ context.Context, name string, o queue.FailedOptions) (queue.Entry, error) {
	return queue.Entry{FailedName: name, Queue: "chat", ID: "m", Namespace: o.Namespace}, nil
}

func (f *cliUncertain) Reprocess(context.Context, string, queue.ReprocessOptions) error {
	return f.err(queue.UncertainError{})
}

func (f *cliUncertain) Pause(context.Context, string) error { return f.err(queue.UncertainError{}) }

func (f *cliUncertain) SetFailedNamespace(context.Context, string, string) error {
	return f.err(queue.UncertainError{})
}

func (f *cliUncertain) Update(context.Context, ...queue.Change) ([]queue.Outcome, error) {
	return nil, f.err(queue.UncertainError{})
}

// What an uncertain commit came to is asked, and told as if it had been certain.
func TestAnUncertainChangeIsResolved(t *testing.T) {
	const r = "s:chat:m:g.0:1"
	until := when(time.Unix(4e9, 0))
	for _, try := range []struct{ args, want string }{
		{"ack " + r, "acked chat m\n"},
		{"release " + r, "released chat m\n"},
		{"retry " + r, "failed chat m, kept as failed m~g\n"},
		{"extend " + r, "extended chat m until " + until + "\n"},
		{"fail " + r + " --cause x", "failed chat m, kept as failed kept\n"},
		{"reap", "reaped chat m: its holder is dead; attempt 2, reaped 2 times so far\n"},
		{"reap --receipt " + r, "failed chat m, kept as failed m: it was named; attempt 1, reaped 10 times so far\n"},
		{"reprocess m", "reprocessed m: chat m is pending\n"},
		{"pause chat", "paused chat\n"},
		{"set --queue chat failed_namespace=x", "failed_namespace=x\n"},
		{"cursor chat --set 7", "set the cursor of chat to 7\n"},
	} {
		args := strings.Fields(try.args)
		t.Run(args[0], func(t *testing.T) {
			f := &cliUncertain{happened: true}
			s := &session{t: t, dir: "/fake", engine: with(f)}
			if got := s.must(args...); got != try.want {
				t.Errorf("it happened: got %q, want %q", got, try.want)
			}
			f.refused = &queue.LostError{Queue: "chat", ID: "m", Attempt: 1, Err: queue.ErrStale}
			if got := s.refused(exitRefused, "stale", args...); got.out != "" {
				t.Errorf("it was refused: %q", got.out)
			}
			f.happened, f.refused = false, nil
			got := s.refused(exitIO, "io", args...)
			if l := decode[errorLine](t, got.err); got.out != "" || !strings.Contains(l.Error, "nothing happened: the commit failed") {
				t.Errorf("it did not happen: %+v", got)
			}
		})
	}
}

// One change of a command is no numbered one of many.
func TestARefusedCursorIsToldPlainly(t *testing.T) {
	f := &cliRefusing{}
	s := &session{t: t, dir: "/fake", engine: with(f)}
	got := s.refused(exitRefused, "full", "cursor", "chat", "--set", "7")
	if l := decode[errorLine](t, got.err); l.Error != queue.ErrFull.Error() || l.Queue != "chat" {
		t.Errorf("%+v", l)
	}
}

// A cliRefusing store refuses every Update.
type cliRefusing struct{ store }

func (f *cliRefusing) Close() error { return nil }

func (f *cliRefusing) Update(context.Context, ...queue.Change) ([]queue.Outcome, error) {
	return nil, &queue.UpdateError{Err: queue.ErrFull}
}

// Status is what pause asks for before it: nothing that it could rely on.
func (*cliUncertain) Status(context.Context, queue.StatusOptions) (queue.Status, error) {
	return queue.Status{}, nil
}
