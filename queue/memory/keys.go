package memory

import (
	"iter"
	"maps"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

// survey gives every live message of the queue in order of its sequence, with where
// it stands. It is the one place that decides what a claim may take:
//
//   - A pending generation waits behind the claimed side of its ID, leased or not.
//   - Of one key, one message at a time is leased, and the oldest candidate goes first.
//     A candidate has come back, whatever its schedule, or is due for the first time;
//     so a message that is scheduled and was never claimed holds nobody, and one that
//     is snoozed or retried with a delay holds the later ones of its key.
//   - A message without a key depends on no other ID.
//
// The queue may not be changed while the survey goes on.
func (q *queueState) survey(now time.Time) iter.Seq2[*message, queue.State] {
	return func(yield func(*message, queue.State) bool) {
		ahead := map[string]bool{} // the keys of the candidates seen so far
		for _, m := range q.line {
			if !yield(m, q.stands(m, now, ahead)) {
				return
			}
		}
	}
}

// stands says where m stands behind candidates of the keys ahead, and adds m's own
// key if it is a candidate.
func (q *queueState) stands(m *message, now time.Time, ahead map[string]bool) queue.State {
	if m.phase == leased {
		return queue.Processing
	}
	if m.phase == fresh && q.slots[m.id].claimed != nil {
		return queue.Blocked
	}
	keyTaken := q.leasedKeys[m.key] || ahead[m.key]
	if m.key != "" && (m.due(now) || m.cameBack()) {
		ahead[m.key] = true
	}
	switch {
	case !m.due(now):
		return queue.Scheduled
	case keyTaken:
		return queue.Blocked
	}
	return queue.Ready
}

// ready gives the messages that a claim may take now, at most so many.
func (q *queueState) ready(now time.Time, most int) []*message {
	var ready []*message
	for m, state := range q.survey(now) {
		if len(ready) == most {
			break
		}
		if state == queue.Ready {
			ready = append(ready, m)
		}
	}
	return ready
}

// rotate gives ready messages in the order of fair rotation: after the key served
// last the next keys in order of their bytes, then the turn of the messages without a
// key, then the keys from the first. A key has one ready message at most; the ones
// without a key have a turn in each round, and what is left of them comes last.
func rotate(ready []*message, last string) []*message {
	byKey := map[string][]*message{}
	for _, m := range ready {
		byKey[m.key] = append(byKey[m.key], m)
	}
	keyless := byKey[""]
	delete(byKey, "")
	keys := slices.Sorted(maps.Keys(byKey))
	next, served := slices.BinarySearch(keys, last)
	if served {
		next++
	}
	first := min(1, len(keyless))

	var order []*message
	for _, key := range keys[next:] {
		order = append(order, byKey[key]...)
	}
	order = append(order, keyless[:first]...)
	for _, key := range keys[:next] {
		order = append(order, byKey[key]...)
	}
	return append(order, keyless[first:]...)
}
