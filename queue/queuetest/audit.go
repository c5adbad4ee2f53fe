package queuetest

import (
	"slices"
	"strings"

	"example.com/holdfast/queue"
)

// audit checks what holds of every store at rest, whatever was done with it.
func (s *scene) audit() {
	s.Helper()
	if s.shut || s.Failed() {
		return
	}
	v := s.look()
	if v.status.Orphans != -1 || v.status.OrphanBytes != -1 {
		s.Errorf("orphans %d of %d bytes: want -1, nobody asked", v.status.Orphans, v.status.OrphanBytes)
	}
	seen := map[string]bool{} // generations
	fences := map[uint64]bool{}
	for name, es := range v.live {
		s.auditQueue(name, v, es)
		for _, e := range es {
			if seen[e.Generation] || e.Fence != 0 && fences[e.Fence] {
				s.Errorf("generation or fence is there twice: %s", entryLine(e))
			}
			seen[e.Generation], fences[e.Fence] = true, true
		}
	}
	failed := map[string]uint64{} // by queue of origin
	for space, es := range v.failed {
		if !slices.IsSortedFunc(es, func(a, b queue.Entry) int { return strings.Compare(a.FailedName, b.FailedName) }) {
			s.Errorf("failed messages of %q are not in order of their names", space)
		}
		for _, e := range es {
			failed[e.Queue]++
			if e.State != queue.Failed || e.Namespace != space || e.FailedName == "" || e.FailedAt.IsZero() ||
				e.Receipt != (queue.Receipt{}) || !e.Deadline.IsZero() || !e.NotBefore.IsZero() {
				s.Errorf("a failed message of %q shows as %s", space, entryLine(e))
			}
			if seen[e.Generation] {
				s.Errorf("generation is there twice: %s", entryLine(e))
			}
			seen[e.Generation] = true
		}
	}
	for name, g := range v.status.Queues {
		if c := g.Counters; g.Failed != failed[name] || c.Failed-c.Reprocessed-c.Purged != g.Failed {
			s.Errorf("queue %s: %d failed are listed; gauge and counters: %+v", name, failed[name], g)
		}
	}
}

// auditQueue compares the entries, the gauges and the counters of one queue.
func (s *scene) auditQueue(name string, v sight, es []queue.Entry) {
	s.Helper()
	var due []string
	got, n := v.status.Queues[name], queue.QueueStatus{}
	for i, e := range es {
		if want := s.stateOf(e, es); e.State != want {
			s.Errorf("queue %s: want state %s of %s", name, want, entryLine(e))
		}
		if i > 0 && es[i-1].Seq >= e.Seq {
			s.Errorf("queue %s: sequence %d is listed after %d", name, e.Seq, es[i-1].Seq)
		}
		switch e.State {
		case queue.Processing:
			n.Processing++
		case queue.Ready:
			n.Ready++
			due = append(due, e.ID)
		case queue.Scheduled:
			n.Scheduled++
		case queue.Blocked:
			n.Blocked++
		}
		if e.Overdue {
			n.Overdue++
		}
		s.auditEntry(name, e)
	}
	n.Pending = n.Ready + n.Scheduled + n.Blocked
	n.Failed, n.Paused, n.FailedNamespace, n.Counters = got.Failed, got.Paused, got.FailedNamespace, got.Counters
	if got != n {
		s.Errorf("queue %s: the status is %+v, the listing makes %+v", name, got, n)
	}
	if c := got.Counters; c.Enqueued+c.Reprocessed-c.Superseded-c.Completed-c.Failed-c.Cleared != got.Unacked() {
		s.Errorf("queue %s: the counters do not add up to %d unacked: %+v", name, got.Unacked(), c)
	}
	if got.Paused {
		due = nil
	}
	if next := idsOf(v.next[name]); next != strings.Join(due, " ") {
		s.Errorf("queue %s: Peek shows %q, ready are %q", name, next, due)
	}
}

// auditEntry checks one live entry by itself.
func (s *scene) auditEntry(name string, e queue.Entry) {
	s.Helper()
	leased := e.State == queue.Processing
	receipt := queue.Receipt{Store: e.Receipt.Store, Queue: e.Queue, ID: e.ID, Generation: e.Generation, Attempt: e.Attempts}
	over := leased && !e.Deadline.IsZero() && !s.Now().Before(e.Deadline)
	ended := e.Attempts
	if leased && ended > 0 {
		ended--
	}
	switch {
	case e.Queue != name, e.Generation == "", e.EnqueuedAt.IsZero(), e.PayloadBytes < 1,
		e.Payload != nil && int64(len(e.Payload)) != e.PayloadBytes:
		s.Errorf("queue %s shows %s", name, entryLine(e))
	case leased && (e.Receipt != receipt || e.Receipt.Store == "" || e.Attempts == 0 || e.Fence == 0 || e.Returned != ""),
		!leased && (e.Receipt != queue.Receipt{} || !e.Deadline.IsZero() || e.Fence != 0 || e.Label != ""):
		s.Errorf("what stands only while processing: %s", entryLine(e))
	case e.Overdue != over:
		s.Errorf("overdue must be %v: %s", over, entryLine(e))
	case e.Excused > ended || e.Lapses > ended-e.Excused:
		s.Errorf("more attempts are excused and lapsed than have ended: %s", entryLine(e))
	case e.FailedName != "" || e.Namespace != "" || !e.FailedAt.IsZero():
		s.Errorf("a live message shows as failed: %s", entryLine(e))
	case !slices.Contains([]string{"", "reaped", "retried", "released", "reprocessed"}, e.Returned):
		s.Errorf("returned as what? %s", entryLine(e))
	}
}

// stateOf is the state of e among the live messages of its queue, by the rules of
// IDs and keys.
func (s *scene) stateOf(e queue.Entry, es []queue.Entry) queue.State {
	switch {
	case e.Receipt.Attempt > 0:
		return queue.Processing
	case behind(e, es):
		return queue.Blocked
	case e.NotBefore.After(s.Now()):
		return queue.Scheduled
	case e.Key != "" && slices.ContainsFunc(es, func(x queue.Entry) bool { return x.Key == e.Key && s.holdsKey(x, e, es) }):
		return queue.Blocked
	}
	return queue.Ready
}

// behind: an older generation of the ID of e is in flight.
func behind(e queue.Entry, es []queue.Entry) bool {
	return slices.ContainsFunc(es, func(x queue.Entry) bool { return x.ID == e.ID && x.Seq < e.Seq })
}

// holdsKey: x, of the same key, is leased, or has come back or was due before e, and
// stands at the head of its ID.
func (s *scene) holdsKey(x, e queue.Entry, es []queue.Entry) bool {
	if x.Receipt.Attempt > 0 {
		return true
	}
	return x.Seq < e.Seq && !behind(x, es) && (x.Returned != "" || !x.NotBefore.After(s.Now()))
}
