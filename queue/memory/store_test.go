package memory

import (
	"context"
	"errors"
	"regexp"
	"testing"

	"example.com/holdfast/queue"
)

// storeCalls makes every call of the contract that may wait or move something, none
// of which is refused by itself.
func storeCalls(s *Store, ctx context.Context, r queue.Receipt) map[string]error {
	out := map[string]error{}
	m := queue.Message{Payload: []byte(`1`)}
	_, out["Enqueue"] = s.Enqueue(ctx, "mail", m)
	_, out["EnqueueBatch"] = s.EnqueueBatch(ctx, "mail", []queue.Message{m})
	_, out["Claim"] = s.Claim(ctx, "mail", queue.ClaimOptions{})
	_, out["Load"] = s.Load(ctx, "mail", "m", queue.LoadOptions{})
	out["Ack"] = s.Ack(ctx, r)
	out["Release"] = s.Release(ctx, r, queue.ReleaseOptions{})
	_, out["Retry"] = s.Retry(ctx, r, queue.RetryOptions{})
	_, out["Extend"] = s.Extend(ctx, r, 0)
	_, out["Fail"] = s.Fail(ctx, r, queue.FailOptions{})
	out["ReplacePayload"] = s.ReplacePayload(ctx, r, m.Payload)
	_, out["Reap"] = s.Reap(ctx, queue.ReapOptions{})
	out["Reprocess"] = s.Reprocess(ctx, "m", queue.ReprocessOptions{})
	_, out["Clear"] = s.Clear(ctx, "mail", queue.ClearOptions{})
	out["Purge"] = s.Purge(ctx, "m", queue.PurgeOptions{})
	out["Pause"] = s.Pause(ctx, "mail")
	out["Resume"] = s.Resume(ctx, "mail")
	out["SetFailedNamespace"] = s.SetFailedNamespace(ctx, "mail", "aside")
	_, out["Update"] = s.Update(ctx)
	_, out["Cursor"] = s.Cursor(ctx, "mail")
	_, out["Peek"] = s.Peek(ctx, "mail", 1)
	_, out["List"] = s.List(ctx, "mail", queue.ListOptions{})
	_, out["Show"] = s.Show(ctx, "mail", "m")
	_, out["ListFailed"] = s.ListFailed(ctx, queue.FailedOptions{}, queue.ListOptions{})
	_, out["ShowFailed"] = s.ShowFailed(ctx, "m", queue.FailedOptions{})
	_, out["Status"] = s.Status(ctx, queue.StatusOptions{})
	_, out["Wait"] = s.Wait(ctx, queue.WaitOptions{Queues: []string{"unknown"}})
	out["WaitDue"] = s.WaitDue(ctx)
	return out
}

func TestCancelledAndClosed(t *testing.T) {
	cancelled, cancel := context.WithCancel(bg)
	cancel()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		close bool
		want  error
	}{
		{"cancelled", cancelled, false, context.Canceled},
		{"closed", bg, true, queue.ErrClosed},
		{"cancelled and closed", cancelled, true, context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			r := leased1(s)
			before := dumpState(&s.state)
			if c.close {
				s.must(s.Close())
				s.must(s.Close())
			}
			for name, err := range storeCalls(s.Store, c.ctx, r) {
				if !errors.Is(err, c.want) {
					t.Errorf("%s: got %v, want %v", name, err, c.want)
				}
			}
			s.is("state", dumpState(&s.state), before)
		})
	}
}

// What is wrong with the arguments is said first.
func TestInvalidBeforeCancelled(t *testing.T) {
	s := newScene(t)
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err := s.Enqueue(ctx, "mail", queue.Message{})
	s.wants(err, queue.ErrInvalidPayload)
	_, err = s.Claim(ctx, "ack", queue.ClaimOptions{})
	s.wants(err, queue.ErrInvalidName)
	s.wants(s.Ack(ctx, queue.Receipt{}), context.Canceled) // a receipt is held against the state
}

func TestNew(t *testing.T) {
	a, b := New(nil), New(&Options{MaxPayloadBytes: 5, MaxPayloadDepth: 7})
	if !regexp.MustCompile(`^[a-z2-7]{26}$`).MatchString(a.ID()) || a.ID() == b.ID() {
		t.Errorf("IDs %q and %q", a.ID(), b.ID())
	}
	if a.opts.MaxPayloadBytes != queue.DefaultMaxPayloadBytes || a.opts.MaxPayloadDepth != queue.DefaultMaxPayloadDepth || a.opts.Now == nil {
		t.Errorf("defaults %+v", a.opts)
	}
	if b.opts.MaxPayloadBytes != 5 || b.opts.MaxPayloadDepth != 7 {
		t.Errorf("options %+v", b.opts)
	}
	s := &scene{t: t, Store: a}
	e := s.put(queue.Message{ID: "m"})
	if !regexp.MustCompile(`^[a-z2-7]{26}\.0$`).MatchString(e.Generation) {
		t.Errorf("generation %q", e.Generation)
	}
	batch, err := a.EnqueueBatch(bg, "mail", []queue.Message{{Payload: []byte(`1`)}, {Payload: []byte(`1`)}})
	s.must(err)
	if x, y := batch[0].Generation, batch[1].Generation; x[:26] != y[:26] || x[26:] != ".0" || y[26:] != ".1" {
		t.Errorf("generations of a batch %q and %q", x, y)
	}
}
