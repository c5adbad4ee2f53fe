//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/holdfast/queue"
)

// Scenes for the tables: one message "m" of the queue "mail" in a given standing.

// oneMinute is the claim of most tests.
var oneMinute = taking{max: 1, lease: time.Minute, label: "worker 1"}

func arrivalOf(id string, how queue.IfExists) arrival {
	return arrival{id: id, payload: fmt.Appendf(nil, `{"id":%q}`, id), ifExists: how}
}

// put enqueues and commits.
func (r *rig) put(id string) queue.Enqueued {
	r.Helper()
	e, err := r.enqueue("mail", arrivalOf(id, queue.Refuse))
	if err != nil {
		r.Fatal(err)
	}
	r.commit()
	return e
}

// replace enqueues over what is there and commits.
func (r *rig) replace(id string) queue.Enqueued {
	r.Helper()
	e, err := r.enqueue("mail", arrivalOf(id, queue.Replace))
	if err != nil {
		r.Fatal(err)
	}
	r.commit()
	return e
}

// take loads one message and commits.
func (r *rig) take(id string) queue.Delivery {
	r.Helper()
	d, err := r.load("mail", id, oneMinute)
	if err != nil {
		r.Fatal(err)
	}
	r.commit()
	return d
}

// settled commits what a settlement did.
func (r *rig) settled(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
	r.commit()
}

// claimIDs claims, commits and gives the IDs in order.
func (r *rig) claimIDs(n int) string {
	r.Helper()
	c, err := r.claim("mail", taking{max: n, lease: time.Minute})
	if err != nil {
		r.Fatal(err)
	}
	r.commit()
	var ids []string
	for _, d := range c.Deliveries {
		ids = append(ids, d.Receipt.ID)
	}
	return strings.Join(ids, " ")
}

// stand brings m into a standing and gives its last receipt.
func (r *rig) stand(standing string) (last queue.Receipt) {
	r.Helper()
	first, behind, _ := strings.Cut(standing, "+")
	switch r.put("bystander"); first {
	case "absent":
		return last
	case "scheduled":
		a := arrivalOf("m", queue.Refuse)
		a.notBefore = r.now.Wall.Add(time.Hour).UnixMilli()
		_, err := r.enqueue("mail", a)
		r.settled(err)
	default:
		r.put("m")
	}
	switch first {
	case "leased":
		last = r.take("m").Receipt
	case "leased for ever":
		d, err := r.load("mail", "m", taking{max: 1, lease: queue.NoDeadline})
		r.settled(err)
		last = d.Receipt
	case "overdue":
		last = r.take("m").Receipt
		r.past(time.Hour)
	case "extended":
		last = r.take("m").Receipt
		_, err := r.extend(last, time.Hour)
		r.settled(err)
	case "returned":
		last = r.take("m").Receipt
		r.settled(r.release(last))
	case "snoozed":
		last = r.take("m").Receipt
		r.settled(r.snooze(last, time.Hour))
	case "retried", "retried later":
		last = r.take("m").Receipt
		o := queue.RetryOptions{Cause: "smtp: 450"}
		if first == "retried later" {
			o.Delay = time.Hour
		}
		_, err := r.retry(last, o)
		r.settled(err)
	case "reaped":
		last = r.take("m").Receipt
		r.reap("mail", "m")
		r.commit()
	case "reaped, extended":
		last = r.take("m").Receipt
		r.reap("mail", "m")
		_, err := r.extend(last, time.Hour)
		r.settled(err)
	case "failed":
		last = r.take("m").Receipt
		_, err := r.fail(last, "no", "")
		r.settled(err)
	case "reprocessed":
		last = r.take("m").Receipt
		_, err := r.fail(last, "no", "")
		r.settled(err)
		r.settled(r.reprocess("", "m"))
	}
	if behind == "pending" {
		r.replace("m")
	}
	return last
}

// slot gives m's slot as the next call sees it, or an empty one.
func (r *rig) slot() slot {
	if q := r.st().queue("mail"); q != nil {
		if s, _ := q.find("m"); s != nil {
			return *s
		}
	}
	return slot{}
}

// counters of mail, as the next call sees them.
func (r *rig) counters() queue.Counters {
	if q := r.st().queue("mail"); q != nil {
		return q.counters
	}
	return queue.Counters{}
}

// counted checks which counters of mail have moved since before, and by how much.
func (r *rig) counted(before, want queue.Counters) {
	r.Helper()
	after := r.counters()
	was, now := counts(&before), counts(&after)
	for i := range now {
		*now[i] -= *was[i]
	}
	if after != want {
		r.Fatalf("counted %+v, want %+v", after, want)
	}
}

// gauged checks mail's gauges.
func (r *rig) gauged(ready, scheduled, blocked, processing, failed uint64) {
	r.Helper()
	g := statusOf(r, r.st(), []string{"mail"}, r.now).Queues["mail"]
	got := [...]uint64{g.Ready, g.Scheduled, g.Blocked, g.Processing, g.Failed}
	if want := [...]uint64{ready, scheduled, blocked, processing, failed}; got != want {
		r.Fatalf("ready, scheduled, blocked, processing, failed: %d, want %d", got, want)
	}
}

// is checks an error.
func (r *rig) is(err, want error) {
	r.Helper()
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		r.Fatalf("got %v, want %v", err, want)
	}
}

// lost checks a settlement's refusal, its facts included.
func (r *rig) lost(err error, x queue.Receipt, want error, current uint64) {
	r.Helper()
	var lost *queue.LostError
	if r.is(err, want); !errors.As(err, &lost) || !errors.Is(err, queue.ErrLost) {
		r.Fatalf("got %v, want a *queue.LostError", err)
	}
	if lost.Queue != x.Queue || lost.ID != x.ID || lost.Attempt != x.Attempt || lost.Current != current || lost.Reason == "" {
		r.Fatalf("got %+v for %s, want current %d", *lost, x, current)
	}
}

// past moves every clock.
func (r *rig) past(d time.Duration) {
	r.now.Wall = r.now.Wall.Add(d)
	r.now.Boot += d
}
