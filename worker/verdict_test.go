package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/queue"
)

// mute is an error without a text; broke is one whose text cannot be had.
type (
	mute  struct{}
	broke struct{ why *string }
)

func (mute) Error() string    { return "" }
func (b broke) Error() string { return *b.why }

// followUp enqueues a message into "next".
func followUp(id string) queue.Change {
	return queue.EnqueueChange{Queue: "next", Message: queue.Message{ID: id, Payload: []byte(`"from ` + id + `"`)}}
}

var errFlaky = errors.New("no answer from the server")

// answers has each kind of answer, what Try says of it, and what the loop makes of it.
// Base is 2 s and MaxFailures 20.
var answers = []struct {
	name   string
	h      func() error
	before uint64 // failures before
	want   Result // Err aside
	event  EventKind
	cause  string // a part of it; empty: want.Cause is all of it
}{
	{name: "nil", h: func() error { return nil }, want: Result{Action: ActionAck}, event: EventAcked},
	{name: "any error", h: func() error { return errFlaky },
		want: Result{Action: ActionRetry, DelayMax: 2 * time.Second, Cause: "no answer from the server"}, event: EventRetried},
	{name: "a third failure", h: func() error { return errFlaky }, before: 2,
		want: Result{Action: ActionRetry, DelayMax: 8 * time.Second, Cause: "no answer from the server"}, event: EventRetried},
	{name: "the last failure", h: func() error { return errFlaky }, before: 19,
		want: Result{Action: ActionFail, Cause: "no answer from the server"}, event: EventFailed},
	{name: "an error without a text", h: func() error { return mute{} },
		want: Result{Action: ActionRetry, DelayMax: 2 * time.Second, Cause: "an error of type worker.mute without a text"}, event: EventRetried},
	{name: "a long error", h: func() error { return errors.New(strings.Repeat("ä", 600)) },
		want: Result{Action: ActionRetry, DelayMax: 2 * time.Second, Cause: strings.Repeat("ä", 512)}, event: EventRetried},
	{name: "RetryAfter", h: func() error { return RetryAfter(90*time.Second, errFlaky) },
		want: Result{Action: ActionRetry, DelayMin: 90 * time.Second, DelayMax: 90 * time.Second, Cause: "no answer from the server"}, event: EventRetried},
	{name: "RetryAfter at the cap", h: func() error { return RetryAfter(90*time.Second, errFlaky) }, before: 19,
		want: Result{Action: ActionFail, Cause: "no answer from the server"}, event: EventFailed},
	{name: "RetryAfter a negative time, without a reason", h: func() error { return RetryAfter(-time.Second, nil) },
		want: Result{Action: ActionRetry, Cause: "no reason given"}, event: EventRetried},
	{name: "Snooze", h: func() error { return Snooze(time.Hour) },
		want: Result{Action: ActionSnooze, DelayMin: time.Hour, DelayMax: time.Hour, Cause: "snoozed for 1h0m0s"}, event: EventSnoozed},
	{name: "Snooze at the cap of failures", h: func() error { return Snooze(time.Hour) }, before: 19,
		want: Result{Action: ActionSnooze, DelayMin: time.Hour, DelayMax: time.Hour, Cause: "snoozed for 1h0m0s"}, event: EventSnoozed},
	{name: "Snooze for longer than any store keeps", h: func() error { return Snooze(1<<63 - 1) },
		want: Result{Action: ActionSnooze, DelayMin: queue.MaxLease, DelayMax: queue.MaxLease, Cause: "snoozed for 876000h0m0s"}, event: EventSnoozed},
	{name: "Fail", h: func() error { return Fail(errFlaky) },
		want: Result{Action: ActionFail, Cause: "no answer from the server"}, event: EventFailed},
	{name: "Fail without a reason", h: func() error { return Fail(nil) },
		want: Result{Action: ActionFail, Cause: "no reason given"}, event: EventFailed},
	{name: "AckWith nothing", h: func() error { return AckWith() }, want: Result{Action: ActionAck}, event: EventAcked},
	{name: "AckWith", h: func() error { return AckWith(followUp("b")) },
		want: Result{Action: ActionAck, Changes: []queue.Change{followUp("b")}}, event: EventAcked},
	{name: "AckWith inside of an error", h: func() error { return fmt.Errorf("send: %w", AckWith(followUp("b"))) },
		want: Result{Action: ActionAck, Changes: []queue.Change{followUp("b")}}, event: EventAcked},
	{name: "AckWith a settlement", h: func() error { return AckWith(followUp("b"), queue.ReleaseChange{}) },
		want: Result{Action: ActionRetry, DelayMax: 2 * time.Second, Cause: "acked with changes, number 1 is a queue.ReleaseChange: only queue.EnqueueChange and queue.CursorChange are for handlers: invalid argument"}, event: EventRetried},
	{name: "AckWith no change", h: func() error { return AckWith(nil) }, before: 19,
		want: Result{Action: ActionFail, Cause: "acked with changes, number 0 is a <nil>: only queue.EnqueueChange and queue.CursorChange are for handlers: invalid argument"}, event: EventFailed},
	{name: "AckWith too many", h: func() error { return AckWith(make([]queue.Change, MaxAckWith+1)...) },
		want: Result{Action: ActionRetry, DelayMax: 2 * time.Second, Cause: "acked with 9000 changes: at most 8999: invalid argument"}, event: EventRetried},
	{name: "Discard", h: func() error { return Discard("too old") },
		want: Result{Action: ActionDiscard, Cause: "discarded: too old"}, event: EventDiscarded},
	{name: "a wrapped answer", h: func() error { return fmt.Errorf("send: %w", Fail(errFlaky)) },
		want: Result{Action: ActionFail, Cause: "send: no answer from the server"}, event: EventFailed},
	{name: "an answer in a join", h: func() error { return errors.Join(errFlaky, Snooze(time.Minute)) },
		want: Result{Action: ActionSnooze, DelayMin: time.Minute, DelayMax: time.Minute, Cause: "no answer from the server\nsnoozed for 1m0s"}, event: EventSnoozed},
	{name: "an answer in an answer", h: func() error { return RetryAfter(time.Second, Fail(errFlaky)) },
		want: Result{Action: ActionRetry, DelayMin: time.Second, DelayMax: time.Second, Cause: "no answer from the server"}, event: EventRetried},
	{name: "its context's error without being cancelled", h: func() error { return context.Canceled },
		want: Result{Action: ActionRetry, DelayMax: 2 * time.Second, Cause: "context canceled"}, event: EventRetried},
	{name: "panic", h: func() error { panic("out of luck") },
		want: Result{Action: ActionRetry, DelayMax: 2 * time.Second, Panicked: true}, event: EventRetried, cause: "the handler panicked: out of luck\nexample.com/holdfast/worker."},
	{name: "panic at the cap", h: func() error { panic("out of luck") }, before: 19,
		want: Result{Action: ActionFail, Panicked: true}, event: EventFailed, cause: "the handler panicked: out of luck\n"},
	{name: "panic with nil", h: func() error { panic(nil) },
		want: Result{Action: ActionRetry, DelayMax: 2 * time.Second, Panicked: true}, event: EventRetried, cause: "the handler panicked: panic called with nil argument"},
	{name: "panic with an answer", h: func() error { panic(Discard("no")) },
		want: Result{Action: ActionRetry, DelayMax: 2 * time.Second, Panicked: true}, event: EventRetried, cause: "the handler panicked: discarded: no"},
	{name: "panic with a long text", h: func() error { panic(strings.Repeat("ä", 5000)) },
		want: Result{Action: ActionRetry, DelayMax: 2 * time.Second, Panicked: true}, event: EventRetried, cause: "verdict_test.go:"},
	{name: "Goexit", h: func() error { runtime.Goexit(); return nil },
		want: Result{Action: ActionRetry, DelayMax: 2 * time.Second, Panicked: true}, event: EventRetried, cause: "the handler called runtime.Goexit\nexample.com/holdfast/worker."},
	{name: "an error that panics when it is read", h: func() error { return broke{} },
		want: Result{Action: ActionRetry, DelayMax: 2 * time.Second, Panicked: true}, event: EventRetried, cause: "nil pointer dereference"},
}

// What Try says is what the loop does, answer by answer.
func TestAnswers(t *testing.T) {
	for _, c := range answers {
		t.Run(c.name, func(t *testing.T) {
			got := Try(t.Context(), func(context.Context, *queue.Received[string]) error { return c.h() }, "a",
				TryOptions{Delivery: queue.Delivery{Failures: c.before}})
			tried := got
			if c.cause != "" {
				if !strings.Contains(got.Cause, c.cause) || len(got.Cause) > queue.MaxErrorBytes {
					t.Errorf("cause %q, want it to have %q", got.Cause, c.cause)
				}
				got.Cause = ""
			}
			if got.Panicked {
				var p *PanicError
				if !errors.As(got.Err, &p) || p.Stack == "" {
					t.Errorf("error %v, want a PanicError with a stack", got.Err)
				}
			}
			got.Err = nil
			want(t, "Try", got, c.want)

			inScene(t, func(s *scene) { loopEquals(s, c.h, c.before, c.event, tried) })
		})
	}
}

// loopEquals has a worker meet the answer on a message that failed that often before,
// and compares what it does with what Try said.
func loopEquals(s *scene, h func() error, before uint64, kind EventKind, tried Result) {
	t := s.t
	s.enqueue("a")
	q := queue.New[string](s.store, "mail")
	for range before {
		b, err := q.Claim(t.Context(), queue.ClaimOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.store.Retry(t.Context(), b.Received[0].Receipt, queue.RetryOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	w := s.start(Options{}, func(context.Context, *queue.Received[string]) error {
		if calls++; calls > 1 {
			return Discard("seen")
		}
		return h()
	})
	synctest.Wait()
	if calls != 1 && (tried.DelayMax > 0 || tried.Action == ActionFail) {
		t.Errorf("%d calls at once, want one", calls)
	}
	w.wantStop()
	e := s.events[1]
	if tried.Panicked {
		want(t, "event before", e.Kind, EventPanicked)
		e = s.events[2]
	}
	want(t, "event", e.Kind, kind)
	want(t, "action told", e.Action, tried.Action)
	if kind == EventRetried || kind == EventSnoozed {
		want(t, "delay", e.Delay, tried.DelayMax) // the scene draws the longest
	}
	text := ""
	switch kind {
	case EventFailed:
		text = s.failed("a").LastError
	case EventRetried:
		if tried.DelayMax == 0 {
			return
		}
		entries, err := s.store.Show(t.Context(), "mail", "a")
		if err != nil {
			t.Fatal(err)
		}
		text = entries[0].LastError
		want(t, "due", entries[0].NotBefore.Sub(s.began), tried.DelayMax)
	default:
		return
	}
	// The stacks differ in the call that led here, not in what they begin with.
	if tried.Panicked {
		text, _, _ = strings.Cut(text, "\n")
		tried.Cause, _, _ = strings.Cut(tried.Cause, "\n")
	}
	want(t, "last error kept", text, tried.Cause)
}

func TestTryPassesTheValueThroughItsPayload(t *testing.T) {
	type value struct {
		N      int
		hidden string
	}
	var got value
	d := queue.Delivery{Key: "chat-42", Fence: 7, Receipt: queue.Receipt{ID: "a", Attempt: 3}}
	r := Try(t.Context(), func(_ context.Context, m *queue.Received[value]) error {
		got = m.Value
		want(t, "delivery", fmt.Sprint(m.Key, m.Fence, m.Receipt.ID, m.Attempt(), string(m.Payload)), `chat-427a3{"N":1}`)
		return nil
	}, value{1, "x"}, TryOptions{Delivery: d})
	want(t, "result", r, Result{Action: ActionAck})
	want(t, "value", got, value{1, ""})
}

// A handler that is tried with nothing but a value sees a whole delivery: that of a
// first attempt, or of the one after the failures and lapses that it is given.
func TestTryMakesUpADelivery(t *testing.T) {
	before := time.Now()
	for _, c := range []struct {
		name           string
		d              queue.Delivery
		receipt        string
		attempt, fence uint64
	}{
		{"nothing given", queue.Delivery{}, "try:try:try:try:1", 1, 1},
		{"after failures and lapses", queue.Delivery{Failures: 2, Lapses: 1}, "try:try:try:try:4", 4, 4},
		{"a part given", queue.Delivery{Fence: 9, Receipt: queue.Receipt{Queue: "mail", ID: "a", Attempt: 3}}, "try:mail:a:try:3", 3, 9},
	} {
		t.Run(c.name, func(t *testing.T) {
			Try(t.Context(), func(_ context.Context, m *queue.Received[string]) error {
				want(t, "receipt", m.Receipt.String(), c.receipt)
				if r, err := queue.ParseReceipt(m.Receipt.String()); err != nil || r != m.Receipt {
					t.Errorf("ParseReceipt: %v, %v", r, err)
				}
				want(t, "attempt and fence", [2]uint64{m.Attempt(), m.Fence}, [2]uint64{c.attempt, c.fence})
				if lease := m.Deadline.Sub(before); lease < DefaultLease || m.EnqueuedAt.IsZero() || m.EnqueuedAt.After(m.Deadline) {
					t.Errorf("lease %s, enqueued at %s", lease, m.EnqueuedAt)
				}
				return nil
			}, "a", TryOptions{Delivery: c.d})
		})
	}
}

func TestTryRefusals(t *testing.T) {
	never := func(context.Context, *queue.Received[json.RawMessage]) error { panic("called") }
	for _, c := range []struct {
		name string
		got  Result
	}{
		{"no handler", Try(t.Context(), nil, 1, TryOptions{})},
		{"a time limit below 0", Try(t.Context(), never, nil, TryOptions{Timeout: -1})},
		{"a policy that contradicts itself", Try(t.Context(), never, nil, TryOptions{Retry: RetryPolicy{Base: time.Minute, Max: time.Second}})},
		{"a value that does not encode", Try(t.Context(), func(context.Context, *queue.Received[any]) error { panic("called") }, any(func() {}), TryOptions{})},
	} {
		if c.got.Action != ActionFail || !errors.Is(c.got.Err, queue.ErrInvalid) || c.got.Cause == "" || c.got.Panicked {
			t.Errorf("%s: got %+v, want a failure that is ErrInvalid", c.name, c.got)
		}
	}
}

func TestTryContexts(t *testing.T) {
	wait := func(ctx context.Context, _ *queue.Received[string]) error {
		<-ctx.Done()
		return fmt.Errorf("send: %w", ctx.Err())
	}
	drained, cancel := context.WithCancelCause(t.Context())
	cancel(ErrDraining)
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		name string
		ctx  context.Context
		h    Handler[string]
		want Result
	}{
		{"drained", drained, wait, Result{Action: ActionRelease, Cause: "send: context canceled"}},
		{"drained, inside of a Fail", drained, func(ctx context.Context, m *queue.Received[string]) error { return Fail(wait(ctx, m)) },
			Result{Action: ActionRelease, Cause: "send: context canceled"}},
		{"drained, the cause returned", drained, func(ctx context.Context, m *queue.Received[string]) error { return context.Cause(ctx) },
			Result{Action: ActionRelease, Cause: "the worker is ending"}},
		{"drained, another error", drained, func(context.Context, *queue.Received[string]) error { return errFlaky },
			Result{Action: ActionRetry, DelayMax: 2 * time.Second, Cause: "no answer from the server"}},
		{"drained, done all the same", drained, func(context.Context, *queue.Received[string]) error { return nil }, Result{Action: ActionAck}},
		{"cancelled by somebody else", gone, wait, Result{Action: ActionRetry, DelayMax: 2 * time.Second, Cause: "send: context canceled"}},
		{"time limit", t.Context(), wait,
			Result{Action: ActionRetry, DelayMax: 2 * time.Second, Cause: "the handler's time limit is over: send: context deadline exceeded"}},
	} {
		got := Try(c.ctx, c.h, "a", TryOptions{Timeout: time.Millisecond})
		got.Err = nil
		want(t, c.name, got, c.want)
	}
}
