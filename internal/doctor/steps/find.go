package steps

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"example.com/holdfast/queue"
)

// A Sight is what was seen of a store.
type Sight struct {
	live, failed []string // one line for each message, in their order
	counters     queue.Counters
}

// Look reads the whole of what the script works on.
func Look(ctx context.Context, q queue.Store) (Sight, error) {
	var seen Sight
	st, err := q.Status(ctx, queue.StatusOptions{Queues: []string{Queue}})
	if err != nil {
		return seen, err
	}
	seen.counters = st.Queues[Queue].Counters
	live, err := all(func(o queue.ListOptions) (queue.Page, error) { return q.List(ctx, Queue, o) })
	if err != nil {
		return seen, err
	}
	for _, e := range live {
		payload, err := payloadOf(ctx, q, e)
		if err != nil {
			return seen, err
		}
		seen.live = append(seen.live, line(e.ID, string(e.State), e.Returned != "", e.Attempts, e.Excused, e.LastError, payload))
	}
	failed, err := all(func(o queue.ListOptions) (queue.Page, error) {
		return q.ListFailed(ctx, queue.FailedOptions{}, o)
	})
	if err != nil {
		return seen, err
	}
	for _, e := range failed {
		shown, err := q.ShowFailed(ctx, e.FailedName, queue.FailedOptions{})
		if err != nil {
			return seen, err
		}
		seen.failed = append(seen.failed, line(e.FailedName, "failed", false, e.Attempts, e.Excused, e.LastError, shown.Payload))
	}
	return seen, nil
}

// all reads a listing to its end, or to more than any script keeps.
func all(list func(queue.ListOptions) (queue.Page, error)) (entries []queue.Entry, err error) {
	var o queue.ListOptions
	for {
		page, err := list(o)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page.Entries...)
		if page.Next == "" || len(entries) > 10*mostLive {
			return entries, nil
		}
		o.After = page.Next
	}
}

func payloadOf(ctx context.Context, q queue.Store, e queue.Entry) ([]byte, error) {
	shown, err := q.Show(ctx, Queue, e.ID)
	if err != nil {
		return nil, err
	}
	for _, s := range shown {
		if s.Generation == e.Generation {
			return s.Payload, nil
		}
	}
	return nil, fmt.Errorf("%s is listed and cannot be shown: %w", e.ID, queue.ErrNotFound)
}

// line is one message in one line, payload included.
func line(id, state string, returned bool, attempts, excused uint64, cause string, payload []byte) string {
	sum := sha256.Sum256(payload)
	if returned {
		state = "returned"
	}
	return fmt.Sprintf("%s: %s, attempts %d, excused %d, last error %q, payload %s",
		id, state, attempts, excused, cause, hex.EncodeToString(sum[:8]))
}

// sight is what the store must look like.
func (s *State) sight() Sight {
	seen := Sight{counters: s.counters}
	for _, m := range s.live {
		state := queue.Ready
		if m.leased {
			state = queue.Processing
		}
		seen.live = append(seen.live, line(m.id, string(state), m.returned, m.attempts, m.excused, m.cause, payload(s.Seed, m.body)))
	}
	for _, m := range s.failed {
		seen.failed = append(seen.failed, line(m.id, "failed", false, m.attempts, m.excused, m.cause, payload(s.Seed, m.body)))
	}
	return seen
}

// Differs says how what was seen is not what the state says. Empty: it is.
func (s *State) Differs(seen Sight) string {
	want := s.sight()
	if seen.counters != want.counters {
		return fmt.Sprintf("the counters are %+v, and must be %+v", seen.counters, want.counters)
	}
	for _, part := range []struct {
		what      string
		got, want []string
	}{{"live", seen.live, want.live}, {"failed", seen.failed, want.failed}} {
		for i := range max(len(part.got), len(part.want)) {
			if got, want := at(part.got, i), at(part.want, i); got != want {
				return fmt.Sprintf("%s message %d is %s; it must be %s", part.what, i+1, got, want)
			}
		}
	}
	return ""
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "none"
}

// Find gives the state that the store is in: there is at most one. Nil: the store is in
// no state that the script leads to, and why says how it differs from the nearest.
func Find(seed uint64, seen Sight) (found *State, why string) { return find(seed, seen, MaxSteps) }

func find(seed uint64, seen Sight, most uint64) (found *State, why string) {
	s := New(seed)
	for total(s.counters) < total(seen.counters) {
		if s.Steps == most {
			return nil, fmt.Sprintf("the counters are past those of %d steps, the most that are made", s.Steps)
		}
		s.Skip()
	}
	if why := s.Differs(seen); why != "" {
		return nil, fmt.Sprintf("compared with what %d steps lead to: %s", s.Steps, why)
	}
	return s, ""
}
