package queuetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/holdfast/queue"
)

var batchTrials = []trial{
	{"in order and in one commit", batchInOrder},
	{"an empty one", batchEmpty},
	{"a thousand", batchThousand},
	{"refused whole, invalid ones named", batchInvalid},
	{"refused whole, live ones named", batchLive},
	{"one ID twice", batchTwice},
	{"keep is no refusal", batchKeep},
	{"the payloads' slices are the caller's again", batchOwnSlices},
}

func (s *scene) enqueueBatch(name string, ms ...queue.Message) []queue.Enqueued {
	s.Helper()
	es, err := s.Store.EnqueueBatch(s.ctx, name, ms)
	s.must(err)
	if len(es) != len(ms) {
		s.Fatalf("%d answers for %d messages", len(es), len(ms))
	}
	return es
}

func batchInOrder(s *scene) {
	es := s.enqueueBatch(mail, message("b"), message("", holding("2")), message("a", key("k")), message("c", s.after(minute)))
	made := es[1].ID
	for i, e := range es {
		if e.Queue != mail || e.Revision != es[0].Revision || e.Kept || e.Generation == "" {
			s.Fatalf("answer %d is %+v", i, e)
		}
	}
	equal(s, "IDs", fmt.Sprint(es[0].ID, es[2].ID, es[3].ID), fmt.Sprint("b", "a", "c"))
	s.gauged(mail, gauges{ready: 3, scheduled: 1})
	s.counted(mail, queue.Counters{Enqueued: 4})
	ds := s.takes(mail, 10, "b "+made+" a")
	equal(s, "payload", string(ds[1].Payload), "2")
	equal(s, "key", ds[2].Key, "k")
	for i, d := range ds {
		equal(s, "generation", d.Receipt.Generation, es[i].Generation)
	}
}

func batchEmpty(s *scene) {
	before := s.look()
	es, err := s.Store.EnqueueBatch(s.ctx, mail, nil)
	s.must(err)
	equal(s, "answers", len(es), 0)
	s.unchanged(before)
}

func batchThousand(s *scene) {
	var ms []queue.Message
	var want []string
	for i := range 1000 {
		id := fmt.Sprintf("m%d", (i*7919)%1000) // not in order of the IDs
		ms = append(ms, message(id))
		want = append(want, id)
	}
	s.enqueueBatch(mail, ms...)
	s.gauged(mail, gauges{ready: 1000})
	ds := s.takes(mail, 300, strings.Join(want[:300], " "))
	for _, d := range ds {
		equal(s, "payload", string(d.Payload), string(payloadOf(d.Receipt.ID)))
	}
	s.takes(mail, queue.MaxClaim, strings.Join(want[300:], " "))
}

// batchRefused checks that a batch is refused whole, and which are named.
func (s *scene) batchRefused(ms []queue.Message, want map[int]error) {
	s.Helper()
	before := s.look()
	es, err := s.Store.EnqueueBatch(s.ctx, mail, ms)
	var refused *queue.BatchError
	if !errors.As(err, &refused) || len(es) > 0 {
		s.Fatalf("got %v, %v, want a *queue.BatchError", es, err)
	}
	s.unchanged(before)
	var named []int
	for _, r := range refused.Refused {
		named = append(named, r.Index)
		if !errors.Is(r.Err, want[r.Index]) || !errors.Is(err, want[r.Index]) {
			s.Fatalf("message %d: got %v, want %v", r.Index, r.Err, want[r.Index])
		}
	}
	if len(named) != len(want) || !slices.IsSorted(named) || len(slices.Compact(named)) != len(want) {
		s.Fatalf("named %v, want %v", named, want)
	}
}

func batchInvalid(s *scene) {
	s.put(mail, "live")
	s.batchRefused([]queue.Message{
		message("a"), message("b/c"), message("live"), message("d", holding("nul")), message("e", key("\x00")), message("f"),
	}, map[int]error{1: queue.ErrInvalidName, 3: queue.ErrInvalidPayload, 4: queue.ErrInvalidName})
	before := s.look()
	_, err := s.Store.EnqueueBatch(s.ctx, "no/./queue", []queue.Message{message("a")})
	s.is(err, queue.ErrInvalidName)
	s.unchanged(before)
}

func batchLive(s *scene) {
	s.puts(mail, "pending", "leased")
	s.claim(mail, queue.ClaimOptions{Max: 2})
	s.put(mail, "leased", how(queue.Replace))
	s.batchRefused([]queue.Message{message("a"), message("pending"), message("b"), message("leased")},
		map[int]error{1: queue.ErrDuplicate, 3: queue.ErrDuplicate})
	s.enqueueBatch(mail, message("a"), message("b"))
}

func batchTwice(s *scene) {
	s.batchRefused([]queue.Message{message("a"), message("b"), message("a")}, map[int]error{2: queue.ErrDuplicate})
	es := s.enqueueBatch(mail, message("a", holding("1")), message("b"), message("a", holding("2"), how(queue.Keep)))
	if !es[2].Kept || es[2].Generation != es[0].Generation || es[2].Revision != es[0].Revision {
		s.Fatalf("got %+v, want %+v kept", es[2], es[0])
	}
	es = s.enqueueBatch(mail, message("c", holding("1")), message("d"), message("c", holding("2"), how(queue.Replace)))
	if es[2].Kept || es[2].Generation == es[0].Generation {
		s.Fatalf("got %+v after %+v, want another generation", es[2], es[0])
	}
	s.counted(mail, queue.Counters{Enqueued: 5, Superseded: 1})
	ds := s.takes(mail, 10, "a b d c")
	equal(s, "payload", string(ds[0].Payload)+string(ds[3].Payload), "12")
}

func batchKeep(s *scene) {
	live := s.put(mail, "a", holding("1"))
	es := s.enqueueBatch(mail, message("b"), message("a", how(queue.Keep)))
	if es[0].Kept || !es[1].Kept || es[1].Generation != live.Generation {
		s.Fatalf("got %+v", es)
	}
	s.counted(mail, queue.Counters{Enqueued: 2})
	before := s.look()
	s.enqueueBatch(mail, message("a", how(queue.Keep)))
	s.unchanged(before)
}

func batchOwnSlices(s *scene) {
	ms := []queue.Message{message("a", holding(`"before"`)), message("b", holding(`"before"`))}
	s.enqueueBatch(mail, ms...)
	for _, m := range ms {
		copy(m.Payload, "xxxxxxxx")
	}
	for _, d := range s.takes(mail, 2, "a b") {
		equal(s, "payload", string(d.Payload), `"before"`)
	}
}
