package queuetest

import "example.com/holdfast/queue"

// A matrixEvent is a row of the matrix: what happened to the claim, and where its
// generation stands then.
type matrixEvent struct {
	name    string
	happens func(s *scene, d queue.Delivery) // to the first claim of message a, for a minute
	stands  Standing
	refused error // why the receipt is no longer good; nil: it is
	current uint64
}

// lapse reaps a claim that is past its deadline.
func lapse(s *scene, _ queue.Delivery) {
	s.Advance(minute)
	s.reapOne()
}

var (
	returnedOnce = matrixEvent{refused: queue.ErrStale, current: 1}
	claimedAgain = matrixEvent{refused: queue.ErrStale, current: 2}
	gone         = matrixEvent{refused: queue.ErrGone}
)

func (e matrixEvent) named(name string, stands Standing, happens func(s *scene, d queue.Delivery)) matrixEvent {
	e.name, e.stands, e.happens = name, stands, happens
	return e
}

var matrixEvents = []matrixEvent{
	{name: "leased", stands: leased(1, 0, 0), happens: func(*scene, queue.Delivery) {}},
	{name: "overdue", stands: leased(1, 0, 0), happens: func(s *scene, _ queue.Delivery) { s.Advance(minute) }},
	{name: "extended", stands: leased(1, 0, 0), happens: func(s *scene, d queue.Delivery) { s.extend(d.Receipt, 2*minute) }},
	{name: "payload replaced", stands: leased(1, 0, 0), happens: func(s *scene, d queue.Delivery) {
		s.replacePayload(d.Receipt, `"replaced"`)
	}},
	{name: "superseding newer one pending", stands: leased(1, 0, 0), happens: func(s *scene, d queue.Delivery) {
		s.put(mail, "a", how(queue.Replace))
		s.put(mail, "a", how(queue.Replace))
	}},
	{name: "reaped", stands: returned("reaped", 1, 0, 1), happens: lapse},
	{name: "reaped by its name", stands: returned("reaped", 1, 0, 1), happens: func(s *scene, d queue.Delivery) {
		s.reap(queue.ReapOptions{Receipt: &d.Receipt})
	}},
	{name: "reaped, newer one pending", stands: returned("reaped", 1, 0, 1), happens: func(s *scene, d queue.Delivery) {
		s.put(mail, "a", how(queue.Replace))
		lapse(s, d)
	}},
	{name: "reaped, payload replaced", stands: returned("reaped", 1, 0, 1), happens: func(s *scene, d queue.Delivery) {
		lapse(s, d)
		s.replacePayload(d.Receipt, `"replaced"`)
	}},
	{name: "reaped, extended", stands: leased(1, 0, 0), happens: func(s *scene, d queue.Delivery) {
		lapse(s, d)
		s.extend(d.Receipt, minute)
	}},
	claimedAgain.named("reaped, claimed again", leased(2, 0, 1), func(s *scene, d queue.Delivery) {
		lapse(s, d)
		s.take(mail, "a")
	}),
	claimedAgain.named("taken over by load", leased(2, 0, 1), func(s *scene, d queue.Delivery) {
		s.Advance(minute)
		s.load(mail, "a")
	}),
	returnedOnce.named("retried", returned("retried", 1, 0, 0), func(s *scene, d queue.Delivery) {
		s.retry(d.Receipt, queue.RetryOptions{})
	}),
	returnedOnce.named("retried with a delay", returned("retried", 1, 0, 0).scheduled(), func(s *scene, d queue.Delivery) {
		s.retry(d.Receipt, queue.RetryOptions{Delay: minute})
	}),
	claimedAgain.named("retried, claimed again", leased(2, 0, 0), func(s *scene, d queue.Delivery) {
		s.retry(d.Receipt, queue.RetryOptions{})
		s.take(mail, "a")
	}),
	returnedOnce.named("released", returned("released", 1, 1, 0), func(s *scene, d queue.Delivery) {
		s.release(d.Receipt, 0)
	}),
	returnedOnce.named("snoozed", returned("released", 1, 1, 0).scheduled(), func(s *scene, d queue.Delivery) {
		s.release(d.Receipt, minute)
	}),
	returnedOnce.named("reaped, released", returned("released", 1, 1, 0), func(s *scene, d queue.Delivery) {
		lapse(s, d)
		s.release(d.Receipt, 0)
	}),
	gone.named("failed", Standing{queue.Failed, "", 1, 0, 0}, func(s *scene, d queue.Delivery) {
		s.fail(d.Receipt, "no")
	}),
	gone.named("failed at the cap of failures", Standing{queue.Failed, "", 1, 0, 0}, func(s *scene, d queue.Delivery) {
		s.retry(d.Receipt, queue.RetryOptions{MaxFailures: 1})
	}),
	gone.named("failed at the cap of lapses", Standing{queue.Failed, "", 1, 0, 1}, func(s *scene, d queue.Delivery) {
		s.Advance(minute)
		s.reap(queue.ReapOptions{MaxLapses: 1})
	}),
	returnedOnce.named("failed, reprocessed", returned("reprocessed", 1, 1, 0), func(s *scene, d queue.Delivery) {
		s.fail(d.Receipt, "no")
		s.reprocess("a")
	}),
	claimedAgain.named("failed, reprocessed, claimed again", leased(2, 1, 0), func(s *scene, d queue.Delivery) {
		s.fail(d.Receipt, "no")
		s.reprocess("a")
		s.take(mail, "a")
	}),
	gone.named("acked", Standing{}, func(s *scene, d queue.Delivery) { s.ack(d.Receipt) }),
	gone.named("acked, its ID claimed anew", Standing{}, func(s *scene, d queue.Delivery) {
		s.ack(d.Receipt)
		s.put(mail, "a")
		s.take(mail, "a")
	}),
	gone.named("cleared, leased ones too", Standing{}, func(s *scene, _ queue.Delivery) {
		s.clear(mail, true, 1)
	}),
}
