package queuetest

import "example.com/holdfast/queue"

var statusTrials = []trial{
	{"an unknown queue is empty and complete", statusUnknown},
	{"the queues that were asked for", statusQueues},
	{"complete exactly when nothing is unacked", statusComplete},
	{"the revision grows with each change", statusRevision},
	{"orphans when asked", statusOrphans},
	{"refused names", statusRefused},
}

func (s *scene) statusOf(names ...string) queue.Status {
	s.Helper()
	st, err := s.Store.Status(s.ctx, queue.StatusOptions{Queues: names})
	s.must(err)
	return st
}

func statusUnknown(s *scene) {
	st := s.statusOf("unknown")
	if q, ok := st.Queues["unknown"]; !ok || q != (queue.QueueStatus{}) || len(st.Queues) != 1 || !st.Complete() || !st.Settled || st.Owner != nil {
		s.Fatalf("got %+v", st)
	}
	if st = s.statusOf(); len(st.Queues) != 0 || !st.Complete() {
		s.Fatalf("got %+v of an empty store", st)
	}
}

func statusQueues(s *scene) {
	s.puts(mail, "a", "b")
	s.puts(spool, "a")
	if st := s.statusOf(); len(st.Queues) != 2 || st.Queues[mail].Ready != 2 || st.Queues[spool].Ready != 1 {
		s.Fatalf("got %+v", st)
	}
	if st := s.statusOf(spool, "unknown"); len(st.Queues) != 2 || st.Queues[spool].Ready != 1 || st.Queues["unknown"].Ready != 0 {
		s.Fatalf("got %+v", st)
	}
}

func statusComplete(s *scene) {
	complete := func(want bool) {
		s.Helper()
		st := s.statusOf(mail)
		equal(s, "complete", st.Complete(), want)
		equal(s, "unacked", st.Queues[mail].Unacked() == 0, want)
	}
	complete(true)
	s.put(mail, "a", s.after(minute))
	complete(false)
	s.put(spool, "x")
	d := s.load(mail, "a")
	complete(false)
	s.Advance(minute)
	complete(false)
	s.reapOne()
	complete(false)
	s.retry(d.Receipt, queue.RetryOptions{Delay: minute})
	complete(false)
	s.ack(s.load(mail, "a").Receipt)
	complete(true)
	equal(s, "the whole store complete", s.statusOf().Complete(), false)
	s.fail(s.take(spool, "x").Receipt, "no")
	equal(s, "the whole store complete", s.statusOf().Complete(), true)
	s.reprocess("x")
	equal(s, "the whole store complete", s.statusOf().Complete(), false)
}

func statusRevision(s *scene) {
	last := s.statusOf().Revision
	grows := func() {
		s.Helper()
		now := s.statusOf().Revision
		if now <= last {
			s.Fatalf("revision %d after %d", now, last)
		}
		last = now
	}
	s.put(mail, "a")
	grows()
	d := s.take(mail, "a")
	grows()
	s.extend(d.Receipt, minute)
	grows()
	s.retry(d.Receipt, queue.RetryOptions{})
	grows()
	s.pause(mail)
	grows()
	s.keepFailedIn(mail, "bad")
	grows()
	s.setCursor(mail, "1")
	grows()
	s.clear(mail, false, 1)
	grows()
}

func statusOrphans(s *scene) {
	s.put(mail, "a")
	st, err := s.Store.Status(s.ctx, queue.StatusOptions{Orphans: true})
	s.must(err)
	if st.Orphans < 0 || st.OrphanBytes < 0 {
		s.Fatalf("orphans %d of %d bytes, which were asked for", st.Orphans, st.OrphanBytes)
	}
}

func statusRefused(s *scene) {
	_, err := s.Store.Status(s.ctx, queue.StatusOptions{Queues: []string{mail, "a//b"}})
	s.is(err, queue.ErrInvalidName)
}
