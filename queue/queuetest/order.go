package queuetest

import (
	"time"

	"example.com/holdfast/queue"
)

var orderTrials = []trial{
	{"first in, first out", orderFIFO},
	{"by place, not by the time of being due", orderByPlace},
	{"a returned one keeps its place", orderReturned},
	{"the older generation before the newer", orderGenerations},
	{"an older generation that waits holds back only its ID", orderOlderWaits},
}

func orderFIFO(s *scene) {
	s.puts(mail, "b", "a", "Z", "10", "9")
	for _, want := range []string{"b", "a", "Z", "10", "9"} {
		s.Advance(time.Second)
		s.take(mail, want)
	}
}

func orderByPlace(s *scene) {
	s.put(mail, "late", s.after(3*time.Second))
	s.put(mail, "soon", s.after(time.Second))
	s.put(mail, "now")
	s.put(mail, "later", s.after(4*time.Second))
	s.Advance(time.Second)
	equal(s, "peek", idsOf(s.peek(mail, 10)), "soon now")
	s.Advance(2 * time.Second)
	s.takes(mail, 10, "late soon now")
	s.Advance(time.Second)
	s.takes(mail, 10, "later")
}

func orderReturned(s *scene) {
	s.puts(mail, "a", "b", "c", "d", "e")
	ds := s.takes(mail, 5, "a b c d e")
	s.release(ds[3].Receipt, 0)
	s.retry(ds[1].Receipt, queue.RetryOptions{})
	s.puts(mail, "f")
	s.takes(mail, 10, "b d f")
	s.Advance(minute)
	equal(s, "reaped", len(s.reap(queue.ReapOptions{})), 6)
	s.takes(mail, 10, "a b c d e f")
}

func orderGenerations(s *scene) {
	s.put(mail, "a", holding("1"))
	s.put(mail, "b")
	d := s.take(mail, "a")
	s.put(mail, "a", holding("2"), how(queue.Replace))
	s.release(d.Receipt, 0)
	ds := s.takes(mail, 10, "a b")
	equal(s, "payload", string(ds[0].Payload), "1")
	s.ack(ds[0].Receipt)
	d = s.take(mail, "a")
	equal(s, "payload", string(d.Payload), "2")
	equal(s, "attempt", d.Attempt(), 1)
}

func orderOlderWaits(s *scene) {
	s.put(mail, "a")
	d := s.take(mail, "a")
	s.put(mail, "a", how(queue.Replace))
	s.put(mail, "b")
	s.release(d.Receipt, time.Hour)
	s.takes(mail, 10, "b")
	es := s.show(mail, "a", 2)
	equal(s, "states", [2]queue.State{es[0].State, es[1].State}, [2]queue.State{queue.Scheduled, queue.Blocked})
}
