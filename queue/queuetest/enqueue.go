package queuetest

import (
	"bytes"
	"strings"
	"time"

	"example.com/holdfast/queue"
)

var enqueueTrials = []trial{
	{"accepted", enqueueAccepted},
	{"made IDs", enqueueMadeIDs},
	{"equal bytes are two generations", enqueueEqualBytes},
	{"not before is rounded up to the millisecond", enqueueRoundedUp},
	{"queues are apart", enqueueQueuesApart},
	{"T22 refused while live", enqueueRefusedWhileLive},
	{"T22 an ID is free once its message has left", enqueueFreeAgain},
	{"T22 sixteen at once", enqueueSixteen},
	{"refused arguments", enqueueRefusedArguments},
	{"the payload's slice is the caller's again", enqueueOwnSlice},
}

func enqueueAccepted(s *scene) {
	e := s.put(mail, "a", key("k"))
	equal(s, "queue", e.Queue, mail)
	equal(s, "ID", e.ID, "a")
	equal(s, "kept", e.Kept, false)
	if e.Generation == "" || e.Revision == 0 {
		s.Fatalf("got %+v, want a generation and a revision", e)
	}
	later := s.put(mail, "b")
	if later.Revision <= e.Revision || later.Generation == e.Generation {
		s.Fatalf("the second, %+v, does not come after the first, %+v", later, e)
	}
	equal(s, "the store's revision", s.statusOf().Revision, later.Revision)
	got := s.entry(mail, "a")
	equal(s, "generation", got.Generation, e.Generation)
	equal(s, "state", got.State, queue.Ready)
	equal(s, "key", got.Key, "k")
	equal(s, "attempts", got.Attempts, 0)
	equal(s, "returned", got.Returned, "")
	equal(s, "last error", got.LastError, "")
	equal(s, "payload", string(got.Payload), string(payloadOf("a")))
	s.sameTime("enqueued at", got.EnqueuedAt, s.Now())
	s.sameTime("not before", got.NotBefore, time.Time{})
	s.gauged(mail, gauges{ready: 2})
	s.counted(mail, queue.Counters{Enqueued: 2})
}

func enqueueMadeIDs(s *scene) {
	seen := map[string]bool{}
	for range 10 {
		e := s.put(mail, "")
		s.must(queue.CheckID(e.ID))
		if len(e.ID) != 36 || e.ID[14] != '7' || seen[e.ID] {
			s.Fatalf("made the ID %q: want a new UUIDv7", e.ID)
		}
		seen[e.ID] = true
		equal(s, "generation", s.entry(mail, e.ID).Generation, e.Generation)
	}
}

func enqueueEqualBytes(s *scene) {
	a, b := s.put(mail, "a", holding("1")), s.put(mail, "b", holding("1"))
	if a.Generation == b.Generation {
		s.Fatalf("both are generation %s", a.Generation)
	}
	first := s.take(mail, "a")
	s.ack(first.Receipt)
	if again := s.put(mail, "a", holding("1")); again.Generation == a.Generation {
		s.Fatalf("an ID enqueued again has its old generation %s", a.Generation)
	}
	s.loses(first.Receipt, queue.ErrGone, 0, func() error { return s.Store.Ack(s.ctx, first.Receipt) })
}

func enqueueRoundedUp(s *scene) {
	asked := s.Now().Add(time.Second)
	s.put(mail, "a", at(asked.Add(time.Nanosecond)))
	s.put(mail, "b", at(asked))
	s.sameTime("not before of a", s.entry(mail, "a").NotBefore, asked.Add(time.Millisecond))
	s.sameTime("not before of b", s.entry(mail, "b").NotBefore, asked)
	s.Advance(time.Second)
	s.takes(mail, 2, "b")
	s.Advance(time.Millisecond)
	s.takes(mail, 2, "a")
}

func enqueueQueuesApart(s *scene) {
	s.put(mail, "a", holding("1"))
	s.put(spool, "a", holding("2"))
	s.put("Mail", "a", holding("3"))
	equal(s, "payload", string(s.take(spool, "a").Payload), "2")
	s.gauged(mail, gauges{ready: 1})
	s.gauged("Mail", gauges{ready: 1})
	s.gauged(spool, gauges{processing: 1})
	s.gauged("other", gauges{})
}

func enqueueRefusedWhileLive(s *scene) {
	again := func() error {
		_, err := s.Store.Enqueue(s.ctx, mail, message("a"))
		return err
	}
	s.put(mail, "a", s.after(minute))
	s.refuses(queue.ErrDuplicate, again) // scheduled
	s.Advance(minute)
	s.refuses(queue.ErrDuplicate, again) // ready
	d := s.take(mail, "a")
	s.refuses(queue.ErrDuplicate, again) // leased
	s.Advance(minute)
	s.refuses(queue.ErrDuplicate, again) // overdue
	s.reapOne()
	s.refuses(queue.ErrDuplicate, again) // returned
	s.retry(d.Receipt, queue.RetryOptions{Delay: minute})
	s.refuses(queue.ErrDuplicate, again) // returned with a delay
}

func enqueueFreeAgain(s *scene) {
	s.put(mail, "a")
	s.ack(s.take(mail, "a").Receipt)
	s.put(mail, "a")
	s.fail(s.take(mail, "a").Receipt, "no")
	s.put(mail, "a") // a failed message of the ID is no obstacle
	s.clear(mail, false, 1)
	s.put(mail, "a")
	s.gauged(mail, gauges{ready: 1, failed: 1})
	s.counted(mail, queue.Counters{Enqueued: 4, Claimed: 2, Completed: 1, Failed: 1, Cleared: 1})
}

func enqueueSixteen(s *scene) {
	for _, x := range []queue.IfExists{queue.Refuse, queue.Keep, queue.Replace} {
		id := x.String()
		answers := make([]queue.Enqueued, 16)
		errs := s.together(16, func(i int) (err error) {
			answers[i], err = s.Store.Enqueue(s.ctx, mail, message(id, how(x)))
			return err
		})
		accepted := map[string]int{}
		for i, err := range errs {
			switch {
			case err == nil && !answers[i].Kept:
				accepted[answers[i].Generation]++
			case err != nil && x == queue.Refuse:
				s.is(err, queue.ErrDuplicate)
			case err != nil || x != queue.Keep:
				s.Fatalf("%s: got %+v, %v", x, answers[i], err)
			}
		}
		live := s.entry(mail, id)
		for i, err := range errs {
			if err == nil && answers[i].Kept && answers[i].Generation != live.Generation {
				s.Fatalf("%s: kept %s, live is %s", x, answers[i].Generation, live.Generation)
			}
		}
		if want := map[bool]int{false: 1, true: 16}[x == queue.Replace]; len(accepted) != want || accepted[live.Generation] != 1 {
			s.Fatalf("%s: accepted %v, want %d; live is %s", x, accepted, want, live.Generation)
		}
	}
	s.counted(mail, queue.Counters{Enqueued: 18, Superseded: 15})
}

func enqueueRefusedArguments(s *scene) {
	for _, c := range []struct {
		why   string
		queue string
		m     queue.Message
		want  error
	}{
		{"no queue", "", message("a"), queue.ErrInvalidName},
		{"a reserved queue", "a/Ack", message("a"), queue.ErrInvalidName},
		{"a queue above itself", "a/../b", message("a"), queue.ErrInvalidName},
		{"a device as ID", mail, message("CON.json"), queue.ErrInvalidName},
		{"a slash in an ID", mail, message("a/b"), queue.ErrInvalidName},
		{"an ID of letters beyond ASCII", mail, message("é"), queue.ErrInvalidName},
		{"a long ID", mail, message(strings.Repeat("a", queue.MaxNameBytes+1)), queue.ErrInvalidName},
		{"a long key", mail, message("a", key(strings.Repeat("k", queue.MaxNameBytes+1))), queue.ErrInvalidName},
		{"a key with a control character", mail, message("a", key("a\nb")), queue.ErrInvalidName},
		{"a key of invalid UTF-8", mail, message("a", key("\xff")), queue.ErrInvalidName},
		{"no such IfExists", mail, message("a", how(3)), queue.ErrInvalid},
		{"before 1970", mail, message("a", at(time.UnixMilli(-1))), queue.ErrInvalid},
		{"after 9999", mail, message("a", at(time.UnixMilli(253402300800000))), queue.ErrInvalid},
		{"no payload", mail, queue.Message{ID: "a"}, queue.ErrInvalidPayload},
	} {
		s.Log(c.why)
		err := s.refuses(c.want, func() error {
			_, err := s.Store.Enqueue(s.ctx, c.queue, c.m)
			return err
		})
		s.is(err, queue.ErrInvalid)
	}
	s.put(strings.Repeat("q/", 400)+"q", strings.Repeat("a", queue.MaxNameBytes),
		key("\U0001f4ec é"+strings.Repeat("k", 100)), at(time.UnixMilli(253402300799999)))
}

func enqueueOwnSlice(s *scene) {
	m := message("a", holding(`"before"`))
	_, err := s.Store.Enqueue(s.ctx, mail, m)
	s.must(err)
	copy(m.Payload, bytes.Repeat([]byte("x"), len(m.Payload)))
	equal(s, "payload", string(s.take(mail, "a").Payload), `"before"`)
}
