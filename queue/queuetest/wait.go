package queuetest

import (
	"time"

	"example.com/holdfast/queue"
)

var waitTrials = []trial{
	{"complete already", waitAlready},
	{"until the last settlement", waitLast},
	{"a lease that is over is not the end", waitOverdue},
	{"several queues, and all", waitQueues},
	{"one message", waitMessage},
	{"scheduled ones left aside", waitIgnoreScheduled},
	{"what waits behind a scheduled one is left aside too", waitBehindScheduled},
	{"many waiters", waitMany},
	{"refused options", waitRefused},
}

func waitAlready(s *scene) {
	for _, o := range []queue.WaitOptions{
		{}, {Queues: []string{"unknown"}}, {Queues: []string{"unknown"}, Message: "a"}, {IgnoreScheduled: true},
	} {
		if st := s.wait(o); !st.Complete() {
			s.Fatalf("%+v: got %+v", o, st)
		}
	}
	s.put(mail, "a")
	s.fail(s.take(mail, "a").Receipt, "no")
	st := s.wait(queue.WaitOptions{Queues: []string{mail, "unknown"}})
	if len(st.Queues) != 2 || st.Queues[mail].Failed != 1 || !st.Settled {
		s.Fatalf("got %+v", st)
	}
	equal(s, "revision", st.Revision, s.statusOf().Revision)
}

func waitLast(s *scene) {
	s.puts(mail, "a", "b", "c")
	p := s.parkWait(queue.WaitOptions{Queues: []string{mail}})
	ds := s.takes(mail, 3, "a b c")
	p.stays() // pending is zero, processing is not
	s.ack(ds[1].Receipt)
	s.fail(ds[2].Receipt, "no")
	s.release(ds[0].Receipt, minute)
	p.stays() // processing is zero, pending is not
	d := s.load(mail, "a")
	st := p.returns(func() { s.ack(d.Receipt) })
	if q := st.Queues[mail]; !st.Complete() || q.Unacked() != 0 || q.Counters.Completed != 2 || q.Failed != 1 {
		s.Fatalf("got %+v", st)
	}
}

func waitOverdue(s *scene) {
	s.put(mail, "a")
	d := s.take(mail, "a")
	p := s.parkWait(queue.WaitOptions{})
	s.Advance(time.Hour)
	p.stays()
	s.reapOne()
	p.stays()
	p.returns(func() { s.ack(d.Receipt) })
}

func waitQueues(s *scene) {
	s.puts("x", "a")
	s.puts("y", "a")
	s.puts("z", "a")
	two := s.parkWait(queue.WaitOptions{Queues: []string{"x", "y"}})
	all := s.parkWait(queue.WaitOptions{})
	s.clear("x", false, 1)
	two.stays()
	st := two.returns(func() { s.clear("y", false, 1) })
	equal(s, "queues of the status", len(st.Queues), 2)
	s.put("later", "a")
	s.clear("z", false, 1)
	all.stays()
	st = all.returns(func() { s.clear("later", false, 1) })
	equal(s, "queues of the status", len(st.Queues), 4)
}

func waitMessage(s *scene) {
	s.puts(mail, "a", "b")
	p := s.parkWait(queue.WaitOptions{Queues: []string{mail}, Message: "a"})
	d := s.take(mail, "a")
	s.put(mail, "a", how(queue.Replace))
	s.ack(d.Receipt)
	p.stays() // its newer generation is live
	d = s.load(mail, "a")
	st := p.returns(func() { s.fail(d.Receipt, "no") })
	equal(s, "ready", st.Queues[mail].Ready, 1)
	s.wait(queue.WaitOptions{Queues: []string{mail}, Message: "a"})
	p = s.parkWait(queue.WaitOptions{Queues: []string{mail}, Message: "b"})
	p.returns(func() { s.clear(mail, false, 1) })
}

func waitIgnoreScheduled(s *scene) {
	o := queue.WaitOptions{Queues: []string{mail}, IgnoreScheduled: true}
	s.put(mail, "later", s.after(time.Hour))
	if st := s.wait(o); st.Complete() || st.Queues[mail].Scheduled != 1 {
		s.Fatalf("got %+v", st)
	}
	s.put(mail, "a")
	p := s.parkWait(o)
	d := s.take(mail, "a")
	p.stays()
	p.returns(func() { s.retry(d.Receipt, queue.RetryOptions{Delay: minute}) })
	all := s.parkWait(queue.WaitOptions{Queues: []string{mail}})
	s.Advance(minute)
	p = s.parkWait(o)
	p.returns(func() { s.ack(s.take(mail, "a").Receipt) })
	all.returns(func() { s.ack(s.load(mail, "later").Receipt) })
}

// waitBehindScheduled: until the snoozed ones are due, nobody can deliver the others.
func waitBehindScheduled(s *scene) {
	s.putKeyed(mail, "k", "a", "b")
	s.put(mail, "c")
	for _, d := range s.takes(mail, 2, "a c") {
		s.release(d.Receipt, minute)
	}
	s.put(mail, "c", how(queue.Replace))
	s.gauged(mail, gauges{scheduled: 2, blocked: 2})
	all := queue.WaitOptions{IgnoreScheduled: true}
	one := queue.WaitOptions{IgnoreScheduled: true, Queues: []string{mail}, Message: "c"}
	s.wait(all)
	s.wait(one)
	s.Advance(minute)
	p := s.parkWait(one)
	p.returns(func() { s.release(s.load(mail, "c").Receipt, minute) })
	p = s.parkWait(all)
	p.returns(func() { s.release(s.take(mail, "a").Receipt, minute) })
}

func waitMany(s *scene) {
	s.put(mail, "a")
	var ps []*parked
	for range 8 {
		ps = append(ps, s.parkWait(queue.WaitOptions{}))
	}
	d := s.take(mail, "a")
	for _, p := range ps {
		p.stays()
		p.allowed.Store(true)
	}
	s.ack(d.Receipt)
	for _, p := range ps {
		p.answers()
	}
}

func waitRefused(s *scene) {
	for _, o := range []queue.WaitOptions{
		{Queues: []string{"a/"}}, {Message: "a"}, {Queues: []string{"x", "y"}, Message: "a"}, {Queues: []string{mail}, Message: "a/b"},
	} {
		_, err := s.Store.Wait(s.ctx, o)
		s.is(err, queue.ErrInvalid)
	}
}
