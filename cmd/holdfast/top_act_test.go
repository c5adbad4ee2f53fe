//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// topOn is a view of the store in dir, without a terminal.
func topOn(t *testing.T, a *app) *topBench {
	t.Helper()
	l := &liveStore{app: a}
	b := &topBench{t: t}
	b.m = newTop(t.Context(), l, a.dir, style{plain: true}, func() tea.Msg { return topAsleep{} })
	b.run(b.m.Init())
	return b
}

func topApp(dir string, e *engine) *app {
	a := newApp(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	if a.dir = dir; e != nil {
		a.engine = *e
	}
	return a
}

// Every deed on a real store, by its keys.
func TestTopDeeds(t *testing.T) {
	s := newStore(t)
	for _, id := range []string{"back", "gone"} {
		s.must("fail", s.claimed("mail", id, "none").Receipt, "--cause", "bad "+evil)
	}
	s.must("enqueue", "chat", "1", "--id", "held")
	s.must("claim", "chat", "--lease", "none", "--label", "w1")
	s.must("enqueue", "chat", "1", "--id", "free")
	b := topOn(t, topApp(s.dir, nil))
	b.has("1 ready, 1 processing, 2 failed")
	b.press("p y")
	b.has("paused chat")
	if st := decode[statusLine](t, s.must("status", "--json")); !st.Queues["chat"].Paused {
		t.Error("not paused")
	}
	b.press("p y")
	b.has("resumed chat")
	b.press("2")
	b.has("> chat   held  w1")
	b.press("x y")
	b.has("returned chat held")
	b.has("no claims")
	b.press("3")
	b.has("bad \\u001b")
	b.press("/ b a c enter r y")
	b.has("reprocessed back: mail back is pending")
	b.press("esc d y")
	b.has("purged gone")
	b.has("no failed messages")
	st := decode[statusLine](t, s.must("status", "--json"))
	if q := st.Queues["chat"]; q.Ready != 2 || q.Paused || q.Counters.Reaped != 1 {
		t.Errorf("chat: %+v", q)
	}
	if q := st.Queues["mail"]; q.Ready != 1 || q.Failed != 0 || q.Counters.Reprocessed != 1 || q.Counters.Purged != 1 {
		t.Errorf("mail: %+v", q)
	}
}

// What is no longer as it was shown stays as it is.
func TestTopDeedsOnWhatHasChanged(t *testing.T) {
	s := newStore(t)
	first := s.claimed("chat", "m", "none")
	b := topOn(t, topApp(s.dir, nil))
	b.press("2 x")
	b.has("end the claim of chat m")
	s.must("release", first.Receipt)
	second := decode[claimLine](t, s.must("claim", "chat", "--json", "--lease", "none"))
	b.press("y")
	b.has("stale")
	s.must("fail", second.Receipt, "--cause", "one")
	b.send(tickMsg{})
	b.press("3 d")
	b.has("remove failed m of chat for good?")
	s.must("failed", "purge", "m")
	s.must("fail", s.claimed("chat", "m", "none").Receipt, "--cause", "two")
	b.press("y")
	b.has("failed m is another message by now")
	b.has("two")
	if st := decode[statusLine](t, s.must("status", "--json")); st.Queues["chat"].Failed != 1 {
		t.Errorf("%+v", st.Queues["chat"])
	}
}

// A refusingStore shows one of everything, and refuses every change.
type refusingStore struct {
	store
	err error
}

func (*refusingStore) Close() error { return nil }

func (*refusingStore) Status(context.Context, queue.StatusOptions) (queue.Status, error) {
	return topSurvey().status, nil
}

func (*refusingStore) List(_ context.Context, q string, _ queue.ListOptions) (queue.Page, error) {
	var p queue.Page
	for _, e := range topSurvey().claims {
		if e.Queue == q {
			p.Entries = append(p.Entries, e)
		}
	}
	return p, nil
}

func (*refusingStore) ListFailed(_ context.Context, f queue.FailedOptions, _ queue.ListOptions) (queue.Page, error) {
	return queue.Page{Entries: topSurvey().failed}, nil
}

func (*refusingStore) ShowFailed(_ context.Context, name string, _ queue.FailedOptions) (queue.Entry, error) {
	for _, e := range topSurvey().failed {
		if e.FailedName == name {
			return e, nil
		}
	}
	return queue.Entry{}, queue.ErrNotFailed
}

func (r *refusingStore) Pause(context.Context, string) error  { return r.err }
func (r *refusingStore) Resume(context.Context, string) error { return r.err }
func (r *refusingStore) Purge(context.Context, string, queue.PurgeOptions) error {
	return r.err
}
func (r *refusingStore) Reprocess(context.Context, string, queue.ReprocessOptions) error {
	return r.err
}
func (r *refusingStore) Reap(context.Context, queue.ReapOptions) ([]queue.Returned, error) {
	return nil, r.err
}

func TestTopDeedsThatFail(t *testing.T) {
	for _, keys := range []string{"p y", "down p y", "2 x y", "3 r y", "3 down d y"} {
		b := topOn(t, topApp("/fake", with(&refusingStore{err: errors.New("state.json: input/output error")})))
		b.press(keys)
		b.has("state.json: input/output error")
		b.has("1234572 ready")
	}
}

// A change that waits for the lock is given up, and says who has it. Looks go on.
func TestTopSaysThatTheStoreIsBusy(t *testing.T) {
	fake := &refusingStore{err: context.DeadlineExceeded}
	a := topApp("/fake", with(fake))
	a.engine.look = func(context.Context, string, *holdfast.Options) (store, error) {
		return &busyStore{refusingStore: fake}, nil
	}
	b := topOn(t, a)
	b.send(tea.WindowSizeMsg{Width: 200, Height: 24})
	b.has("store busy: pid 42 on phone is inside a change since " + when(time.Unix(1, 0)))
	b.press("p y")
	b.has("store busy for 10s, held by pid 42 on phone since " + when(time.Unix(1, 0)) + "; nothing was changed")
	fake.err = context.Canceled
	b.press("p y")
	b.has("stopped while waiting for the store's lock; nothing was changed")
}

type busyStore struct{ *refusingStore }

func (*busyStore) Status(context.Context, queue.StatusOptions) (queue.Status, error) {
	st := topSurvey().status
	st.Settled, st.Owner = false, &queue.Owner{Token: "t", PID: 42, Host: "phone", Since: time.Unix(1, 0)}
	return st, nil
}

// A survey of a store whose lock is held for long answers all the same.
func TestSurveyDoesNotWaitForALock(t *testing.T) {
	s := newStore(t)
	s.claimed("chat", "m", "none")
	s.must("fail", s.claimed("chat", "n", "none").Receipt, "--cause", "x")
	cliLocked(t, s.dir)
	v, err := topApp(s.dir, nil).survey(t.Context(), nil, true)
	if err != nil {
		t.Fatal(err)
	}
	if v.status.Settled || len(v.claims) != 1 || len(v.failed) != 1 || !strings.HasPrefix(v.busy(s.dir), "store busy") {
		t.Errorf("%+v, %q", v, v.busy(s.dir))
	}
}

// cliLocked holds the store's lock until the test ends, as a process does that is stopped
// inside a change.
func cliLocked(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, ".fs-safe-queue-v2", ".state-transfer.lock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Fatal(err)
	}
}

func TestSurveyIsBounded(t *testing.T) {
	s := newStore(t)
	s.mustFeed(strings.Repeat("1\n", mostListed+3), "enqueue", "chat", "--ndjson")
	s.must("claim", "chat", "-n", itoa(mostListed+1), "--lease", "none")
	v, err := topApp(s.dir, nil).survey(t.Context(), nil, true)
	if err != nil || len(v.claims) != mostListed || !v.more {
		t.Errorf("%d claims, more: %v, %v", len(v.claims), v.more, err)
	}
	v, err = topApp(s.dir, nil).survey(t.Context(), []string{"chat"}, false)
	if err != nil || len(v.claims) != 0 || v.more || v.age("chat") == "-" {
		t.Errorf("without claims: %d, more: %v, oldest %s, %v", len(v.claims), v.more, v.age("chat"), err)
	}
}

func TestTopIsRefused(t *testing.T) {
	s := newStore(t)
	if got := s.run("top"); got.code != exitUsage || !strings.HasSuffix(got.err, "top needs a terminal for what it shows and for its keys; run: holdfast status --watch --dir "+s.dir+"\n") {
		t.Errorf("%+v", got)
	}
	got := s.refused(exitUsage, "usage", "top")
	if !strings.Contains(got.err, "status --watch --json") {
		t.Errorf("%+v", got)
	}
	dumb := &session{t: t, dir: s.dir, tty: true, env: map[string]string{"TERM": "dumb"}}
	if got := dumb.run("top"); got.code != exitUsage {
		t.Errorf("%+v", got)
	}
	if got := dumb.run("top", "--interval", "1ms"); got.code != exitUsage || !strings.Contains(got.err, "want at least") {
		t.Errorf("%+v", got)
	}
	none := &session{t: t, dir: t.TempDir(), tty: true}
	if got := none.run("top"); got.code != exitOperator || !strings.Contains(got.err, "no store here") {
		t.Errorf("%+v", got)
	}
}

// What asks a terminal for newer keys does not reach it; all else does.
func TestPlainKeys(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[?2026$p\x1b[?2027$p": "", "\x1b[>4;2m\x1b[>1u\x1b[?u": "", "\x1b[>4m\x1b[<1u\x1b[=0;1u": "",
		"\x1b[?1049h\x1b[?25l\x1b[1mup\x1b[0m\x1b[4;2H": "\x1b[?1049h\x1b[?25l\x1b[1mup\x1b[0m\x1b[4;2H",
	} {
		f := &cliTerm{}
		if n, err := (plainKeys{f}).Write([]byte(in)); n != len(in) || err != nil || f.String() != want {
			t.Errorf("%q: wrote %q, %d, %v", in, f.String(), n, err)
		}
	}
}

type cliTerm struct{ bytes.Buffer }

func (*cliTerm) Close() error { return nil }
func (*cliTerm) Fd() uintptr  { return ^uintptr(0) }
