package queuetest

import (
	"time"

	"example.com/holdfast/queue"
)

var settleTrials = []trial{
	{"ack", settleAck},
	{"a receipt that names something else", settleOther},
	{"past its deadline a receipt is good", settleOverdue},
	{"a payload is replaced", settlePayload},
	{"a payload is refused", settlePayloadRefused},
}

func settleAck(s *scene) {
	s.puts(mail, "a", "b")
	d := s.take(mail, "a")
	s.ack(d.Receipt)
	s.gauged(mail, gauges{ready: 1})
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 1, Completed: 1})
	_, err := s.Store.Show(s.ctx, mail, "a")
	s.is(err, queue.ErrNotFound)
	s.loses(d.Receipt, queue.ErrGone, 0, func() error { return s.Store.Ack(s.ctx, d.Receipt) })
}

// A settlement is a call that takes a receipt.
type settlement struct {
	name string
	call func(r queue.Receipt) error
}

// settlements are every call that takes a receipt, and the change of an Update that is
// that call, which must answer the same.
func (s *scene) settlements() []settlement {
	all := []settlement{
		{"ack", func(r queue.Receipt) error { return s.Store.Ack(s.ctx, r) }},
		{"release", func(r queue.Receipt) error { return s.Store.Release(s.ctx, r, queue.ReleaseOptions{}) }},
		{"retry", func(r queue.Receipt) error {
			_, err := s.Store.Retry(s.ctx, r, queue.RetryOptions{})
			return err
		}},
		{"retry at the cap", func(r queue.Receipt) error {
			_, err := s.Store.Retry(s.ctx, r, queue.RetryOptions{MaxFailures: 1})
			return err
		}},
		{"extend", func(r queue.Receipt) error {
			_, err := s.Store.Extend(s.ctx, r, minute)
			return err
		}},
		{"fail", func(r queue.Receipt) error {
			_, err := s.Store.Fail(s.ctx, r, queue.FailOptions{})
			return err
		}},
		{"replace payload", func(r queue.Receipt) error { return s.Store.ReplacePayload(s.ctx, r, []byte(`"new"`)) }},
		{"reap", func(r queue.Receipt) error {
			_, err := s.Store.Reap(s.ctx, queue.ReapOptions{Receipt: &r})
			return err
		}},
	}
	for _, c := range settlingChanges {
		all = append(all, settlement{jointly + c.name, func(r queue.Receipt) error {
			_, err := s.Store.Update(s.ctx, c.change(r))
			return err
		}})
	}
	return all
}

// jointly stands before the name of a call that is made as a change of an Update.
const jointly = "update: "

// settlingChanges are the changes that take a receipt.
var settlingChanges = []struct {
	name   string
	change func(r queue.Receipt) queue.Change
}{
	{"ack", func(r queue.Receipt) queue.Change { return queue.AckChange{Receipt: r} }},
	{"release", func(r queue.Receipt) queue.Change { return queue.ReleaseChange{Receipt: r} }},
	{"retry", func(r queue.Receipt) queue.Change { return queue.RetryChange{Receipt: r} }},
	{"retry at the cap", func(r queue.Receipt) queue.Change {
		return queue.RetryChange{Receipt: r, Options: queue.RetryOptions{MaxFailures: 1}}
	}},
	{"extend", func(r queue.Receipt) queue.Change { return queue.ExtendChange{Receipt: r, Lease: minute} }},
	{"fail", func(r queue.Receipt) queue.Change { return queue.FailChange{Receipt: r} }},
	{"replace payload", func(r queue.Receipt) queue.Change {
		return queue.ReplacePayloadChange{Receipt: r, Payload: []byte(`"new"`)}
	}},
	{"reap", func(r queue.Receipt) queue.Change { return queue.ReapChange{Receipt: r} }},
}

// settle makes the named call.
func (s *scene) settle(name string, r queue.Receipt) error {
	s.Helper()
	for _, c := range s.settlements() {
		if c.name == name {
			return c.call(r)
		}
	}
	s.Fatalf("no call %q", name)
	return nil
}

func settleOther(s *scene) {
	s.puts(mail, "a", "b", "pending")
	s.put(spool, "a")
	d := s.take(mail, "a")
	s.take(mail, "b")
	s.take(spool, "a")
	pending := s.entry(mail, "pending")
	for _, c := range s.settlements() {
		s.Log(c.name)
		r := d.Receipt
		r.Store += "x"
		s.refuses(queue.ErrInvalidReceipt, func() error { return c.call(r) })

		r = d.Receipt
		r.Attempt = 2 // not claimed yet
		s.loses(r, queue.ErrStale, 1, func() error { return c.call(r) })

		r = d.Receipt
		r.ID, r.Generation, r.Attempt = "pending", pending.Generation, 1
		s.loses(r, queue.ErrStale, 0, func() error { return c.call(r) })

		for _, change := range []func(r *queue.Receipt){
			func(r *queue.Receipt) { r.ID = "b" },
			func(r *queue.Receipt) { r.ID = "unknown" },
			func(r *queue.Receipt) { r.Queue = spool },
			func(r *queue.Receipt) { r.Queue = "unknown" },
			func(r *queue.Receipt) { r.Generation = pending.Generation },
		} {
			r := d.Receipt
			change(&r)
			s.loses(r, queue.ErrGone, 0, func() error { return c.call(r) })
		}
	}
	s.ack(d.Receipt)
}

func settleOverdue(s *scene) {
	for _, c := range s.settlements() {
		s.Log(c.name)
		id := s.put(mail, "").ID
		d := s.take(mail, id)
		s.Advance(time.Hour)
		s.must(c.call(d.Receipt))
		s.clear(mail, true, s.status(mail).Unacked())
	}
}

func settlePayload(s *scene) {
	s.puts(mail, "a", "b")
	d := s.take(mail, "a")
	before := s.entry(mail, "a")
	s.replacePayload(d.Receipt, " {\"v\" : 2} ")
	after := s.entry(mail, "a")
	equal(s, "payload", string(after.Payload), " {\"v\" : 2} ")
	after.Payload, after.PayloadBytes, after.Object = before.Payload, before.PayloadBytes, before.Object
	equal(s, "the rest of the entry", entryLine(after), entryLine(before))
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 1})

	s.release(d.Receipt, 0)
	d = s.take(mail, "a") // the place stays
	equal(s, "payload", string(d.Payload), " {\"v\" : 2} ")
	equal(s, "attempt", d.Attempt(), 2)
	payload := []byte(`"before"`)
	s.must(s.Store.ReplacePayload(s.ctx, d.Receipt, payload))
	copy(payload, "xxxxxxxx")
	s.fail(d.Receipt, "no")
	equal(s, "payload", string(s.evidence("a").Payload), `"before"`)
}

func settlePayloadRefused(s *scene) {
	s.put(mail, "a")
	r := s.take(mail, "a").Receipt
	for _, c := range []struct {
		payload string
		want    error
	}{
		{"", queue.ErrInvalidPayload}, {"{", queue.ErrInvalidPayload}, {"\"\xff\"", queue.ErrInvalidPayload},
		{nested(s.MaxPayloadDepth + 1), queue.ErrInvalidPayload}, {blank(s.MaxPayloadBytes + 1), queue.ErrTooLarge},
	} {
		s.refuses(c.want, func() error { return s.Store.ReplacePayload(s.ctx, r, []byte(c.payload)) })
		s.refusedAt(0, c.want, queue.ReplacePayloadChange{Receipt: r, Payload: []byte(c.payload)})
	}
	s.ack(r)
}
