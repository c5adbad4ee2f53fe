package queuetest

import (
	"context"
	"time"

	"example.com/holdfast/queue"
)

// A call is one call of the store, made with a context that is given.
type call struct {
	name string
	make func(ctx context.Context) error
}

// calls are every call of the store, each of which would succeed.
func (s *scene) calls() []call {
	s.Helper()
	s.puts(mail, "a", "b", "failed", "ready")
	s.fail(s.load(mail, "failed").Receipt, "no")
	r := s.take(mail, "a").Receipt
	none := func(_ any, err error) error { return err }
	return []call{
		{"Enqueue", func(ctx context.Context) error { return none(s.Store.Enqueue(ctx, mail, message("new"))) }},
		{"EnqueueBatch", func(ctx context.Context) error {
			return none(s.Store.EnqueueBatch(ctx, mail, []queue.Message{message("new")}))
		}},
		{"Claim", func(ctx context.Context) error { return none(s.Store.Claim(ctx, mail, queue.ClaimOptions{})) }},
		{"Load", func(ctx context.Context) error { return none(s.Store.Load(ctx, mail, "b", queue.LoadOptions{})) }},
		{"Ack", func(ctx context.Context) error { return s.Store.Ack(ctx, r) }},
		{"Release", func(ctx context.Context) error { return s.Store.Release(ctx, r, queue.ReleaseOptions{}) }},
		{"Retry", func(ctx context.Context) error { return none(s.Store.Retry(ctx, r, queue.RetryOptions{})) }},
		{"Extend", func(ctx context.Context) error { return none(s.Store.Extend(ctx, r, minute)) }},
		{"Fail", func(ctx context.Context) error { return none(s.Store.Fail(ctx, r, queue.FailOptions{})) }},
		{"ReplacePayload", func(ctx context.Context) error { return s.Store.ReplacePayload(ctx, r, []byte("1")) }},
		{"Reap", func(ctx context.Context) error { return none(s.Store.Reap(ctx, queue.ReapOptions{Receipt: &r})) }},
		{"Reprocess", func(ctx context.Context) error { return s.Store.Reprocess(ctx, "failed", queue.ReprocessOptions{}) }},
		{"Clear", func(ctx context.Context) error { return none(s.Store.Clear(ctx, mail, queue.ClearOptions{})) }},
		{"Purge", func(ctx context.Context) error { return s.Store.Purge(ctx, "failed", queue.PurgeOptions{}) }},
		{"Pause", func(ctx context.Context) error { return s.Store.Pause(ctx, mail) }},
		{"Resume", func(ctx context.Context) error { return s.Store.Resume(ctx, mail) }},
		{"SetFailedNamespace", func(ctx context.Context) error {
			return s.Store.SetFailedNamespace(ctx, mail, "bad")
		}},
		{"Update", func(ctx context.Context) error {
			return none(s.Store.Update(ctx, queue.AckChange{Receipt: r}, queue.CursorChange{Queue: mail, Cursor: "1"}))
		}},
		{"Cursor", func(ctx context.Context) error { return none(s.Store.Cursor(ctx, mail)) }},
		{"Peek", func(ctx context.Context) error { return none(s.Store.Peek(ctx, mail, 1)) }},
		{"List", func(ctx context.Context) error { return none(s.Store.List(ctx, mail, queue.ListOptions{})) }},
		{"Show", func(ctx context.Context) error { return none(s.Store.Show(ctx, mail, "a")) }},
		{"ListFailed", func(ctx context.Context) error {
			return none(s.Store.ListFailed(ctx, queue.FailedOptions{}, queue.ListOptions{}))
		}},
		{"ShowFailed", func(ctx context.Context) error {
			return none(s.Store.ShowFailed(ctx, "failed", queue.FailedOptions{}))
		}},
		{"Status", func(ctx context.Context) error { return none(s.Store.Status(ctx, queue.StatusOptions{})) }},
		{"Wait", func(ctx context.Context) error {
			return none(s.Store.Wait(ctx, queue.WaitOptions{Queues: []string{"x"}}))
		}},
		{"WaitDue", func(ctx context.Context) error { return s.Store.WaitDue(ctx, mail) }},
	}
}

var contextTrials = []trial{
	{"cancelled before the call", contextsCancelled},
	{"past its deadline before the call", contextsPast},
	{"cancelled while parked", contextsParked},
	{"cancelled after the call", contextsAfter},
}

func contextsCancelled(s *scene) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	s.refusedBy(ctx, context.Canceled)
}

func contextsPast(s *scene) {
	ctx, cancel := context.WithDeadline(s.ctx, time.Unix(0, 0))
	defer cancel()
	s.refusedBy(ctx, context.DeadlineExceeded)
}

// refusedBy makes every call with a context that has ended, and then for real.
func (s *scene) refusedBy(ctx context.Context, want error) {
	s.Helper()
	for _, c := range s.calls() {
		s.Log(c.name)
		s.refuses(want, func() error { return c.make(ctx) })
	}
}

func contextsParked(s *scene) {
	s.put(mail, "a", s.after(minute))
	for _, p := range []*parked{
		s.parkDue(mail), s.parkDue(), s.parkWait(queue.WaitOptions{}), s.parkWait(queue.WaitOptions{Queues: []string{mail}, Message: "a"}),
	} {
		p.ends(context.Canceled, p.cancel)
	}
	s.Advance(minute)
	s.isDue(mail)
}

func contextsAfter(s *scene) {
	ctx, cancel := context.WithCancel(s.ctx)
	_, err := s.Store.Enqueue(ctx, mail, message("a"))
	s.must(err)
	c, err := s.Store.Claim(ctx, mail, queue.ClaimOptions{})
	s.must(err)
	cancel()
	s.gauged(mail, gauges{processing: 1})
	s.ack(c.Deliveries[0].Receipt)
}
