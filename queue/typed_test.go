package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
	"example.com/holdfast/queue/memory"
)

// A typedMail is what the typed tests enqueue.
type typedMail struct {
	To   string  `json:"to"`
	Size float64 `json:"size,omitempty"`
}

func typedStore(t *testing.T) *memory.Store {
	t.Helper()
	s := memory.New(nil)
	t.Cleanup(func() { s.Close() })
	return s
}

// typedPayload is what lies in the store.
func typedPayload(t *testing.T, s queue.Store, id string) string {
	t.Helper()
	es, err := s.Show(t.Context(), "mail", id)
	if err != nil || len(es) != 1 {
		t.Fatalf("show %s: %v, %v", id, es, err)
	}
	return string(es[0].Payload)
}

func TestTypedValues(t *testing.T) {
	ctx := t.Context()
	q := queue.New[typedMail](typedStore(t), "mail")
	if q.Name() != "mail" || q.Store() == nil {
		t.Fatalf("a handle on %q of %v", q.Name(), q.Store())
	}
	want := typedMail{To: "<a&b>@example.org\u2028", Size: 1.5}
	due := time.Now().Add(-time.Hour)
	e, err := q.Enqueue(ctx, want, queue.EnqueueOptions{ID: "a", Key: "k", NotBefore: due})
	if err != nil || e.ID != "a" || e.Queue != "mail" {
		t.Fatalf("enqueued %+v, %v", e, err)
	}
	// encoding/json escapes U+2028 whatever it is told; the rest stands for itself.
	if got := typedPayload(t, q.Store(), "a"); got != `{"to":"<a&b>@example.org\u2028","size":1.5}` {
		t.Errorf("the payload is %s", got)
	}
	if _, err := q.Enqueue(ctx, want, queue.EnqueueOptions{ID: "a"}); !errors.Is(err, queue.ErrDuplicate) {
		t.Errorf("enqueued again: %v", err)
	}
	if e, err := q.Enqueue(ctx, want, queue.EnqueueOptions{ID: "a", IfExists: queue.Keep}); err != nil || !e.Kept {
		t.Errorf("enqueued with keep: %+v, %v", e, err)
	}
	b, err := q.Claim(ctx, queue.ClaimOptions{Max: 5, Label: "w"})
	if err != nil || len(b.Received) != 1 || len(b.Undecodable)+len(b.Damaged) != 0 {
		t.Fatalf("claimed %+v, %v", b, err)
	}
	if r := b.Received[0]; r.Value != want || r.Key != "k" || r.Receipt.Generation != e.Generation || r.Attempt() != 1 {
		t.Errorf("received %+v", r)
	}
	if err := q.Store().Ack(ctx, b.Received[0].Receipt); err != nil {
		t.Error(err)
	}
	if b, err := q.Claim(ctx, queue.ClaimOptions{}); err != nil || len(b.Received)+len(b.Undecodable)+len(b.Damaged) != 0 {
		t.Errorf("claimed %+v, %v of an empty queue", b, err)
	}
}

func TestTypedBatch(t *testing.T) {
	ctx := t.Context()
	q := queue.New[float64](typedStore(t), "mail")
	es, err := q.EnqueueBatch(ctx, []float64{3, 1, 2})
	if err != nil || len(es) != 3 || es[0].Revision != es[2].Revision {
		t.Fatalf("enqueued %+v, %v", es, err)
	}
	_, err = q.EnqueueBatch(ctx, []float64{4, math.NaN(), 5, math.Inf(1)})
	var refused *queue.BatchError
	if !errors.As(err, &refused) || len(refused.Refused) != 2 || refused.Refused[0].Index != 1 || refused.Refused[1].Index != 3 ||
		!errors.Is(err, queue.ErrInvalidPayload) {
		t.Errorf("a batch that does not encode: %v", err)
	}
	b, err := q.Claim(ctx, queue.ClaimOptions{Max: 10})
	if err != nil || len(b.Received) != 3 {
		t.Fatalf("claimed %+v, %v", b, err)
	}
	for i, want := range []float64{3, 1, 2} {
		if got := b.Received[i].Value; got != want {
			t.Errorf("value %d is %v, want %v", i, got, want)
		}
	}
}

func TestTypedRefusals(t *testing.T) {
	ctx := t.Context()
	s := typedStore(t)
	_, err := queue.New[func()](s, "mail").Enqueue(ctx, func() {}, queue.EnqueueOptions{})
	var unsupported *json.UnsupportedTypeError
	if !errors.Is(err, queue.ErrInvalidPayload) || !errors.As(err, &unsupported) {
		t.Errorf("a func: %v", err)
	}
	if _, err := queue.New[int](s, "mail/ack").Enqueue(ctx, 1, queue.EnqueueOptions{}); !errors.Is(err, queue.ErrInvalidName) {
		t.Errorf("a reserved name: %v", err)
	}
	if _, err := queue.New[int](s, "mail/ack").Claim(ctx, queue.ClaimOptions{}); !errors.Is(err, queue.ErrInvalidName) {
		t.Errorf("a reserved name: %v", err)
	}
}

func TestTypedRawMessage(t *testing.T) {
	ctx := t.Context()
	q := queue.New[json.RawMessage](typedStore(t), "mail")
	for _, raw := range []string{
		`{ "b":9007199254740993, "a":1.0, "z":-0, "e":1e400, "s":"<a&b>` + "\u2028" + `" }`, " [1 , 2]\n", `"\ud800"`, `null`,
	} {
		if _, err := q.Enqueue(ctx, json.RawMessage(raw), queue.EnqueueOptions{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		if got := typedPayload(t, q.Store(), "a"); got != raw {
			t.Errorf("the payload is %q, want %q", got, raw)
		}
		b, err := q.Claim(ctx, queue.ClaimOptions{})
		if err != nil || len(b.Received) != 1 {
			t.Fatalf("claimed %+v, %v", b, err)
		}
		if got := string(b.Received[0].Value); got != raw {
			t.Errorf("received %q, want %q", got, raw)
		}
		if err := q.Store().Ack(ctx, b.Received[0].Receipt); err != nil {
			t.Fatal(err)
		}
	}
	for _, raw := range []string{"", "{", "1 2"} {
		if _, err := q.Enqueue(ctx, json.RawMessage(raw), queue.EnqueueOptions{}); !errors.Is(err, queue.ErrInvalidPayload) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// What does not decode fails at once, its bytes kept; the others of the claim go on.
func TestTypedUndecodable(t *testing.T) {
	ctx := t.Context()
	s := typedStore(t)
	bad := ` {"to": 42} `
	put := func(id, payload string) queue.Enqueued {
		t.Helper()
		e, err := s.Enqueue(ctx, "mail", queue.Message{ID: id, Payload: []byte(payload)})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	put("bad", bad)
	taken, err := s.Load(ctx, "mail", "bad", queue.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fail(ctx, taken.Receipt, queue.FailOptions{Cause: "before"}); err != nil {
		t.Fatal(err)
	}
	e := put("bad", bad) // whose name is taken among the failed
	put("good", `{"to":"x"}`)
	put("worse", `{"to":1e400}`)

	q := queue.New[typedMail](s, "mail")
	b, err := q.Claim(ctx, queue.ClaimOptions{Max: 5})
	if err != nil || len(b.Received) != 1 || b.Received[0].Value.To != "x" || len(b.Undecodable) != 2 {
		t.Fatalf("claimed %+v, %v", b, err)
	}
	fault := b.Undecodable[0]
	var mismatch *json.UnmarshalTypeError
	if fault.FailedName != "bad~"+e.Generation || fault.Unfailed != nil || fault.Receipt.ID != "bad" ||
		!strings.HasSuffix(fault.Type, "typedMail") || !errors.As(fault, &mismatch) || mismatch.Field != "to" {
		t.Errorf("the fault is %+v", fault)
	}
	if b.Undecodable[1].FailedName != "worse" {
		t.Errorf("the second fault is %+v", b.Undecodable[1])
	}
	kept, err := s.ShowFailed(ctx, fault.FailedName, queue.FailedOptions{})
	if err != nil || string(kept.Payload) != bad || kept.LastError != fault.Error() || kept.Attempts != 1 {
		t.Errorf("the evidence is %+v, %v", kept, err)
	}
	st, err := s.Status(ctx, queue.StatusOptions{Queues: []string{"mail"}})
	if g := st.Queues["mail"]; err != nil || g.Processing != 1 || g.Pending != 0 || g.Failed != 3 || g.Counters.Retried != 0 {
		t.Errorf("the status is %+v, %v", g, err)
	}
}

// A typedBusy store loses what it claims at once, or its caller's patience.
type typedBusy struct {
	queue.Store
	claimed func(c queue.Claimed)
}

func (s typedBusy) Claim(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
	c, err := s.Store.Claim(ctx, name, o)
	s.claimed(c)
	return c, err
}

func TestTypedUndecodableLost(t *testing.T) {
	s := typedStore(t)
	if _, err := s.Enqueue(t.Context(), "mail", queue.Message{ID: "a", Payload: []byte("[]")}); err != nil {
		t.Fatal(err)
	}
	busy := typedBusy{s, func(c queue.Claimed) {
		if err := s.Release(t.Context(), c.Deliveries[0].Receipt, queue.ReleaseOptions{}); err != nil {
			t.Error(err)
		}
	}}
	b, err := queue.New[int](busy, "mail").Claim(t.Context(), queue.ClaimOptions{})
	if err != nil || len(b.Undecodable) != 1 {
		t.Fatalf("claimed %+v, %v", b, err)
	}
	if fault := b.Undecodable[0]; fault.FailedName != "" || !errors.Is(fault.Unfailed, queue.ErrStale) {
		t.Errorf("the fault is %+v", fault)
	}
}

// A context that ends after the claim does not keep what is undecodable from failing.
func TestTypedUndecodableCancelled(t *testing.T) {
	s := typedStore(t)
	if _, err := s.Enqueue(t.Context(), "mail", queue.Message{ID: "a", Payload: []byte("[]")}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	busy := typedBusy{s, func(queue.Claimed) { cancel() }}
	b, err := queue.New[int](busy, "mail").Claim(ctx, queue.ClaimOptions{})
	if err != nil || len(b.Undecodable) != 1 || b.Undecodable[0].FailedName != "a" || b.Undecodable[0].Unfailed != nil {
		t.Errorf("claimed %+v, %v", b, err)
	}
}

// A message of a typed queue goes into an Update, and its delivery out of one.
func TestTypedInUpdate(t *testing.T) {
	ctx := t.Context()
	q := queue.New[typedMail](typedStore(t), "mail")
	m, err := q.Message(typedMail{To: "x"}, queue.EnqueueOptions{ID: "a", Key: "k", IfExists: queue.Replace})
	if err != nil || m.ID != "a" || m.Key != "k" || m.IfExists != queue.Replace || string(m.Payload) != `{"to":"x"}` {
		t.Fatalf("message %+v, %v", m, err)
	}
	out, err := q.Store().Update(ctx, queue.EnqueueChange{Queue: q.Name(), Message: m}, queue.ClaimChange{Queue: q.Name()})
	if err != nil {
		t.Fatal(err)
	}
	v, err := q.Decode(out[1].Claimed.Deliveries[0])
	if err != nil || v.To != "x" {
		t.Errorf("decoded %+v, %v", v, err)
	}
	_, err = queue.New[[]int](q.Store(), "mail").Decode(out[1].Claimed.Deliveries[0])
	var fault *queue.DecodeError
	if !errors.As(err, &fault) || fault.Receipt != out[1].Claimed.Deliveries[0].Receipt || fault.Type != "[]int" || fault.FailedName != "" ||
		!strings.Contains(err.Error(), "mail/a: the payload does not decode as []int") {
		t.Errorf("decoded as []int: %v", err)
	}
}
