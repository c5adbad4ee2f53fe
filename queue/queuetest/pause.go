package queuetest

import (
	"fmt"

	"example.com/holdfast/queue"
)

var pauseTrials = []trial{
	{"claims find nothing until it is resumed", pauseClaims},
	{"enqueue and settling go on", pauseOthers},
	{"twice is no error", pauseTwice},
	{"other queues go on", pauseOneQueue},
	{"a queue without messages", pauseUnknown},
	{"it outlives the messages", pauseOutlives},
	{"pause, cursor and namespace are set apart", pauseApart},
}

func pauseClaims(s *scene) {
	s.puts(mail, "a", "b")
	s.pause(mail)
	equal(s, "paused", s.status(mail).Paused, true)
	s.gauged(mail, gauges{ready: 2})
	before := s.look()
	s.takes(mail, 5, "")
	s.fairly(mail, 5, "")
	equal(s, "claimed", ids(s.update(queue.ClaimChange{Queue: mail})[0].Claimed.Deliveries), "")
	equal(s, "peek", idsOf(s.peek(mail, 5)), "")
	s.unchanged(before)
	s.resume(mail)
	equal(s, "paused", s.status(mail).Paused, false)
	s.takes(mail, 5, "a b")
}

func pauseOthers(s *scene) {
	s.puts(mail, "a", "b", "c", "d")
	ds := s.takes(mail, 4, "a b c d")
	s.pause(mail)
	s.puts(mail, "e")
	s.ack(ds[0].Receipt)
	s.release(ds[1].Receipt, 0)
	s.fail(ds[2].Receipt, "no")
	s.extend(ds[3].Receipt, minute)
	s.Advance(minute)
	equal(s, "reaped", s.reapOne().ID, "d")
	s.reprocess("c")
	s.ack(s.load(mail, "b").Receipt)
	s.takes(mail, 5, "")
	s.gauged(mail, gauges{ready: 3})
	s.resume(mail)
	s.takes(mail, 5, "c d e")
}

func pauseTwice(s *scene) {
	s.put(mail, "a")
	before := s.look()
	s.resume(mail)
	s.unchanged(before)
	s.pause(mail)
	before = s.look()
	s.pause(mail)
	s.unchanged(before)
	s.resume(mail)
	s.resume(mail)
	s.takes(mail, 5, "a")
}

func pauseOneQueue(s *scene) {
	s.puts(mail, "a")
	s.puts(spool, "a")
	s.pause(mail)
	s.takes(spool, 5, "a")
	equal(s, "paused", s.status(spool).Paused, false)
	s.put(spool, "b")
	s.isDue(spool)
}

func pauseUnknown(s *scene) {
	s.pause(mail)
	equal(s, "paused", s.status(mail).Paused, true)
	s.put(mail, "a")
	s.takes(mail, 5, "")
	s.resume(mail)
	s.takes(mail, 5, "a")
	s.refuses(queue.ErrInvalidName, func() error { return s.Store.Pause(s.ctx, "a/") })
	s.refuses(queue.ErrInvalidName, func() error { return s.Store.Resume(s.ctx, "a/") })
}

func pauseOutlives(s *scene) {
	s.put(mail, "a")
	s.pause(mail)
	s.clear(mail, true, 1)
	equal(s, "paused", s.status(mail).Paused, true)
	equal(s, "complete", s.status(mail).Complete(), true)
	s.put(mail, "a")
	s.takes(mail, 5, "")
}

func pauseApart(s *scene) {
	check := func(paused bool, cursor, space string) {
		s.Helper()
		q := s.status(mail)
		equal(s, "paused, namespace", fmt.Sprint(q.Paused, q.FailedNamespace), fmt.Sprint(paused, space))
		s.cursorIs(mail, cursor)
	}
	s.pause(mail)
	s.setCursor(mail, "1")
	check(true, "1", "")
	s.keepFailedIn(mail, "bad")
	check(true, "1", "bad")
	s.setCursor(mail, "2")
	check(true, "2", "bad")
	s.resume(mail)
	check(false, "2", "bad")
	s.keepFailedIn(mail, "")
	s.pause(mail)
	check(true, "2", "")
}
