package queuetest

import (
	"time"

	"example.com/holdfast/queue"
)

// put enqueues one message.
func (s *scene) put(name, id string, withs ...with) queue.Enqueued {
	s.Helper()
	e, err := s.Store.Enqueue(s.ctx, name, message(id, withs...))
	s.must(err)
	return e
}

// puts enqueues several plain messages, one by one.
func (s *scene) puts(name string, ids ...string) {
	s.Helper()
	for _, id := range ids {
		s.put(name, id)
	}
}

// claim claims, and nothing may be damaged.
func (s *scene) claim(name string, o queue.ClaimOptions) []queue.Delivery {
	s.Helper()
	c, err := s.Store.Claim(s.ctx, name, o)
	s.must(err)
	if len(c.Damaged) > 0 {
		s.Fatalf("damaged: %v", c.Damaged[0])
	}
	return c.Deliveries
}

// takes claims up to max messages for a minute and checks which come, in order.
func (s *scene) takes(name string, max int, want string) []queue.Delivery {
	s.Helper()
	ds := s.claim(name, queue.ClaimOptions{Max: max, Lease: minute})
	equal(s, "claimed", ids(ds), want)
	return ds
}

// take claims one message for a minute, which must be id.
func (s *scene) take(name, id string) queue.Delivery {
	s.Helper()
	return s.takes(name, 1, id)[0]
}

// load loads one message for a minute.
func (s *scene) load(name, id string) queue.Delivery {
	s.Helper()
	d, err := s.Store.Load(s.ctx, name, id, queue.LoadOptions{Lease: minute})
	s.must(err)
	return d
}

func (s *scene) ack(r queue.Receipt) {
	s.Helper()
	s.must(s.Store.Ack(s.ctx, r))
}

func (s *scene) release(r queue.Receipt, delay time.Duration) {
	s.Helper()
	s.must(s.Store.Release(s.ctx, r, queue.ReleaseOptions{Delay: delay}))
}

func (s *scene) retry(r queue.Receipt, o queue.RetryOptions) queue.Returned {
	s.Helper()
	returned, err := s.Store.Retry(s.ctx, r, o)
	s.must(err)
	return returned
}

func (s *scene) extend(r queue.Receipt, lease time.Duration) time.Time {
	s.Helper()
	deadline, err := s.Store.Extend(s.ctx, r, lease)
	s.must(err)
	return deadline
}

func (s *scene) fail(r queue.Receipt, cause string) string {
	s.Helper()
	name, err := s.Store.Fail(s.ctx, r, queue.FailOptions{Cause: cause})
	s.must(err)
	return name
}

func (s *scene) replacePayload(r queue.Receipt, payload string) {
	s.Helper()
	s.must(s.Store.ReplacePayload(s.ctx, r, []byte(payload)))
}

func (s *scene) reap(o queue.ReapOptions) []queue.Returned {
	s.Helper()
	rs, err := s.Store.Reap(s.ctx, o)
	s.must(err)
	return rs
}

// reapOne reaps, and exactly one lease must be over.
func (s *scene) reapOne() queue.Returned {
	s.Helper()
	rs := s.reap(queue.ReapOptions{})
	if len(rs) != 1 {
		s.Fatalf("reaped %+v, want one", rs)
	}
	return rs[0]
}

func (s *scene) reprocess(name string) {
	s.Helper()
	s.must(s.Store.Reprocess(s.ctx, name, queue.ReprocessOptions{}))
}

func (s *scene) clear(name string, leased bool, want uint64) {
	s.Helper()
	n, err := s.Store.Clear(s.ctx, name, queue.ClearOptions{Leased: leased})
	s.must(err)
	equal(s, "cleared", n, want)
}

func (s *scene) pause(name string) {
	s.Helper()
	s.must(s.Store.Pause(s.ctx, name))
}

func (s *scene) resume(name string) {
	s.Helper()
	s.must(s.Store.Resume(s.ctx, name))
}

// keepFailedIn sets the failed namespace of a queue.
func (s *scene) keepFailedIn(name, space string) {
	s.Helper()
	s.must(s.Store.SetFailedNamespace(s.ctx, name, space))
	s.spaces[space] = true
}

func (s *scene) update(changes ...queue.Change) []queue.Outcome {
	s.Helper()
	out, err := s.Store.Update(s.ctx, changes...)
	s.must(err)
	if len(out) != len(changes) {
		s.Fatalf("%d outcomes for %d changes", len(out), len(changes))
	}
	return out
}

// show gives the live generations of an ID, which must be so many.
func (s *scene) show(name, id string, generations int) []queue.Entry {
	s.Helper()
	es, err := s.Store.Show(s.ctx, name, id)
	s.must(err)
	if len(es) != generations {
		s.Fatalf("%s/%s has %d live generations, want %d", name, id, len(es), generations)
	}
	return es
}

// entry gives the one live generation of an ID.
func (s *scene) entry(name, id string) queue.Entry {
	s.Helper()
	return s.show(name, id, 1)[0]
}

// evidence gives a failed message of the default namespace.
func (s *scene) evidence(name string) queue.Entry {
	s.Helper()
	e, err := s.Store.ShowFailed(s.ctx, name, queue.FailedOptions{})
	s.must(err)
	return e
}

// status gives the gauges and counters of one queue.
func (s *scene) status(name string) queue.QueueStatus {
	s.Helper()
	st, err := s.Store.Status(s.ctx, queue.StatusOptions{Queues: []string{name}})
	s.must(err)
	return st.Queues[name]
}

// gauges are the gauges of a queue that tests name.
type gauges struct{ ready, scheduled, blocked, processing, overdue, failed uint64 }

func (s *scene) gauged(name string, want gauges) {
	s.Helper()
	g := s.status(name)
	equal(s, "gauges of "+name, gauges{g.Ready, g.Scheduled, g.Blocked, g.Processing, g.Overdue, g.Failed}, want)
	equal(s, "pending", g.Pending, want.ready+want.scheduled+want.blocked)
}

// counted checks the counters of a queue.
func (s *scene) counted(name string, want queue.Counters) {
	s.Helper()
	if got := s.status(name).Counters; got != want {
		s.Fatalf("counters of %s: got %+v, want %+v", name, got, want)
	}
}
