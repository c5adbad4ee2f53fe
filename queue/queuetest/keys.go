package queuetest

import (
	"time"

	"example.com/holdfast/queue"
)

var keyTrials = []trial{
	{"in order, one at a time", keysInOrder},
	{"others go on", keysOthersGoOn},
	{"one claim takes one of a key", keysOneEach},
	{"a returned one holds its key, whatever its delay", keysReturnedHolds},
	{"a reaped one holds its key", keysReapedHolds},
	{"however its message leaves, the next one follows", keysNextFollows},
	{"queues have keys of their own", keysPerQueue},
	{"a key is bytes", keysAreBytes},
	{"behind many of one key", keysDeep},
}

func (s *scene) putKeyed(name, k string, ids ...string) {
	s.Helper()
	for _, id := range ids {
		s.put(name, id, key(k))
	}
}

func keysInOrder(s *scene) {
	s.putKeyed(mail, "k", "c", "a", "b")
	for i, want := range []string{"c", "a", "b"} {
		s.gauged(mail, gauges{ready: 1, blocked: uint64(2 - i)})
		d := s.takes(mail, 5, want)[0]
		s.gauged(mail, gauges{blocked: uint64(2 - i), processing: 1})
		s.takes(mail, 5, "")
		s.ack(d.Receipt)
	}
}

func keysOthersGoOn(s *scene) {
	s.putKeyed(mail, "k", "k1", "k2")
	s.putKeyed(mail, "l", "l1", "l2")
	s.puts(mail, "x", "y")
	s.take(mail, "k1")
	equal(s, "peek", idsOf(s.peek(mail, 10)), "l1 x y")
	ds := s.takes(mail, 10, "l1 x y")
	s.takes(mail, 10, "")
	s.ack(ds[0].Receipt)
	s.takes(mail, 10, "l2")
}

func keysOneEach(s *scene) {
	s.putKeyed(mail, "k", "k1", "k2")
	s.puts(mail, "x")
	s.putKeyed(mail, "l", "l1")
	s.putKeyed(mail, "k", "k3")
	s.takes(mail, 10, "k1 x l1")
	s.gauged(mail, gauges{blocked: 2, processing: 3})
}

func keysReturnedHolds(s *scene) {
	s.putKeyed(mail, "k", "a", "b")
	s.retry(s.take(mail, "a").Receipt, queue.RetryOptions{Delay: minute})
	s.gauged(mail, gauges{scheduled: 1, blocked: 1})
	s.takes(mail, 5, "")
	s.Advance(minute - time.Millisecond)
	s.takes(mail, 5, "")
	s.Advance(time.Millisecond)
	s.gauged(mail, gauges{ready: 1, blocked: 1})
	d := s.takes(mail, 5, "a")[0]
	s.release(d.Receipt, minute)
	s.takes(mail, 5, "")
	s.ack(s.load(mail, "a").Receipt)
	s.take(mail, "b")
}

func keysReapedHolds(s *scene) {
	s.putKeyed(mail, "k", "a", "b")
	d := s.take(mail, "a")
	s.Advance(minute)
	s.gauged(mail, gauges{blocked: 1, processing: 1, overdue: 1})
	s.reapOne()
	s.gauged(mail, gauges{ready: 1, blocked: 1})
	s.takes(mail, 5, "a")
	s.lost(s.Store.Ack(s.ctx, d.Receipt), d.Receipt, queue.ErrStale, 2)
}

func keysNextFollows(s *scene) {
	for _, c := range []struct {
		name  string
		leave func(d queue.Delivery)
	}{
		{"acked", func(d queue.Delivery) { s.ack(d.Receipt) }},
		{"failed", func(d queue.Delivery) { s.fail(d.Receipt, "no") }},
		{"capped", func(d queue.Delivery) { s.retry(d.Receipt, queue.RetryOptions{MaxFailures: 1}) }},
		{"lapsed", func(d queue.Delivery) {
			s.Advance(minute)
			s.reap(queue.ReapOptions{MaxLapses: 1})
		}},
		{"late", func(d queue.Delivery) {
			s.Advance(minute)
			s.reapOne()
			s.ack(d.Receipt)
		}},
		{"updated", func(d queue.Delivery) { s.update(queue.AckChange{Receipt: d.Receipt}) }},
	} {
		s.Log(c.name)
		s.putKeyed(c.name, "k", "a", "b")
		c.leave(s.take(c.name, "a"))
		s.gauged(c.name, gauges{ready: 1, failed: s.status(c.name).Failed})
		s.ack(s.take(c.name, "b").Receipt)
	}
	s.putKeyed(mail, "k", "a")
	s.take(mail, "a")
	s.clear(mail, true, 1)
	s.putKeyed(mail, "k", "b")
	s.take(mail, "b")
}

func keysPerQueue(s *scene) {
	s.putKeyed(mail, "k", "a")
	s.putKeyed(spool, "k", "a")
	s.take(mail, "a")
	s.take(spool, "a")
}

func keysAreBytes(s *scene) {
	s.putKeyed(mail, "k", "a")
	s.putKeyed(mail, "K", "b")
	s.putKeyed(mail, "k ", "c")
	s.putKeyed(mail, "e\u0301", "d")
	s.putKeyed(mail, "\u00e9", "e")
	s.putKeyed(mail, "<&\u2028\"\\>", "f", "g")
	ds := s.takes(mail, 10, "a b c d e f")
	equal(s, "key", ds[5].Key, "<&\u2028\"\\>")
}

func keysDeep(s *scene) {
	var ms []queue.Message
	for range 2000 {
		ms = append(ms, message("", key("k")))
	}
	ms = append(ms, message("last"))
	s.enqueueBatch(mail, ms...)
	s.gauged(mail, gauges{ready: 2, blocked: 1999})
	first := s.claim(mail, queue.ClaimOptions{})[0]
	s.take(mail, "last")
	s.gauged(mail, gauges{blocked: 1999, processing: 2})
	s.ack(first.Receipt)
	s.gauged(mail, gauges{ready: 1, blocked: 1998, processing: 1})
}
