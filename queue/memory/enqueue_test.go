package memory

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// Each standing of an ID, met by an enqueue of that ID.
func TestEnqueueMeetsALiveID(t *testing.T) {
	standings := []struct {
		name    string
		scene   func(s *scene)
		live    bool
		replace string // what is live after a Replace
		counted string
	}{
		{"nothing", func(s *scene) {}, false, "m ready 0-0-0", "enqueued 1"},
		{"pending", func(s *scene) { s.puts("m") }, true, "m ready 0-0-0", "enqueued 2, superseded 1"},
		{"scheduled", func(s *scene) { s.put(queue.Message{ID: "m", NotBefore: noon.Add(time.Hour)}) }, true,
			"m ready 0-0-0", "enqueued 2, superseded 1"},
		{"leased", func(s *scene) { s.puts("m"); s.take("m") }, true,
			"m processing 1-0-0 until +1m0s, m blocked 0-0-0", "enqueued 2, claimed 1"},
		{"returned", func(s *scene) {
			s.puts("m")
			s.must(s.Release(bg, s.take("m").Receipt, queue.ReleaseOptions{}))
		}, true, "m ready released 1-1-0, m blocked 0-0-0", "enqueued 2, claimed 1, released 1"},
		{"leased, another pending", func(s *scene) {
			s.puts("m")
			s.take("m")
			s.put(queue.Message{ID: "m", IfExists: queue.Replace})
		}, true, "m processing 1-0-0 until +1m0s, m blocked 0-0-0", "enqueued 3, superseded 1, claimed 1"},
		{"failed", func(s *scene) {
			s.puts("m")
			_, err := s.Fail(bg, s.take("m").Receipt, queue.FailOptions{})
			s.must(err)
		}, false, "m ready 0-0-0, m failed 1-0-0", "enqueued 2, claimed 1, failed 1"},
	}
	for _, at := range standings {
		t.Run(at.name, func(t *testing.T) {
			for _, how := range []queue.IfExists{queue.Refuse, queue.Keep, queue.Replace} {
				t.Run(how.String(), func(t *testing.T) {
					s := newScene(t)
					at.scene(s)
					before, counted, revision := s.live(), s.counted(), s.state.revision
					e, err := s.Enqueue(bg, "mail", queue.Message{ID: "m", Payload: []byte(`2`), IfExists: how})
					if !at.live || how == queue.Replace {
						s.must(err)
						s.is("live", s.live(), at.replace)
						s.is("counters", s.counted(), at.counted)
						if e.Kept || e.Queue != "mail" || e.ID != "m" || e.Revision != revision+1 {
							t.Errorf("got %+v, want revision %d", e, revision+1)
						}
						return
					}
					s.is("live", s.live(), before)
					s.is("counters", s.counted(), counted)
					if s.state.revision != revision {
						t.Errorf("the revision moved from %d to %d", revision, s.state.revision)
					}
					if how == queue.Refuse {
						s.wants(err, queue.ErrDuplicate)
						return
					}
					s.must(err)
					shown, err := s.Show(bg, "mail", "m")
					s.must(err)
					if newest := shown[len(shown)-1].Generation; !e.Kept || e.Generation != newest || e.Revision == 0 || e.Revision > revision {
						t.Errorf("kept %+v, want generation %s of a revision up to %d", e, newest, revision)
					}
				})
			}
		})
	}
}

func TestEnqueueRefusals(t *testing.T) {
	deep := []byte(strings.Repeat("[", 4) + strings.Repeat("]", 4))
	cases := []struct {
		name  string
		queue string
		m     queue.Message
		want  error
	}{
		{"queue name", "mail/ack", queue.Message{Payload: []byte(`1`)}, queue.ErrInvalidName},
		{"ID", "mail", queue.Message{ID: ".m", Payload: []byte(`1`)}, queue.ErrInvalidName},
		{"key", "mail", queue.Message{Key: "\x00", Payload: []byte(`1`)}, queue.ErrInvalidName},
		{"if exists", "mail", queue.Message{IfExists: 9, Payload: []byte(`1`)}, queue.ErrInvalid},
		{"time", "mail", queue.Message{NotBefore: time.Unix(-1, 0), Payload: []byte(`1`)}, queue.ErrInvalid},
		{"no payload", "mail", queue.Message{}, queue.ErrInvalidPayload},
		{"depth", "mail", queue.Message{Payload: deep}, queue.ErrInvalidPayload},
		{"size", "mail", queue.Message{Payload: []byte(`"0123456789"`)}, queue.ErrTooLarge},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := &scene{t: t, Store: New(&Options{MaxPayloadBytes: 10, MaxPayloadDepth: 3})}
			_, err := s.Enqueue(bg, c.queue, c.m)
			s.wants(err, c.want)
			_, err = s.Update(bg, queue.CursorChange{Queue: "mail", Cursor: "1"}, queue.EnqueueChange{Queue: c.queue, Message: c.m})
			s.wants(err, c.want)
			var refused *queue.UpdateError
			if !errors.As(err, &refused) || refused.Index != 1 {
				t.Errorf("an update: got %v, want the refusal of change 1", err)
			}
			if s.state.revision != 0 || len(s.state.queues) != 0 {
				t.Error("a refused enqueue left something")
			}
		})
	}
	t.Run("the bounds themselves", func(t *testing.T) {
		s := &scene{t: t, Store: New(&Options{MaxPayloadBytes: 10, MaxPayloadDepth: 3})}
		for _, payload := range []string{`"01234567"`, `[[[]]]`} {
			_, err := s.Enqueue(bg, "mail", queue.Message{Payload: []byte(payload)})
			s.wants(err, nil)
		}
	})
}

func TestEnqueueMakesIDs(t *testing.T) {
	s := newScene(t)
	a, b := s.put(queue.Message{}), s.put(queue.Message{})
	if a.ID == b.ID || a.ID == "" || queue.CheckID(a.ID) != nil || a.Generation == b.Generation {
		t.Errorf("made %+v and %+v", a, b)
	}
}

// The same bytes come back at every stage, and the caller's slices are the caller's.
func TestPayloadBytes(t *testing.T) {
	s := newScene(t)
	const odd = "{ \"b\":9007199254740993, \"a\":1.0, \"z\":-0, \"e\":1e400, \"a\":2, \"s\":\"<a&b>\u2028\" }\n"
	given := []byte(odd)
	s.put(queue.Message{ID: "m", Payload: given})
	given[0] = 'X'
	check := func(where string, got []byte) {
		t.Helper()
		s.is(where, string(got), odd)
		clear(got)
	}
	peeked, err := s.Peek(bg, "mail", 1)
	s.must(err)
	check("peek", peeked[0].Payload)
	shown, err := s.Show(bg, "mail", "m")
	s.must(err)
	check("show", shown[0].Payload)
	d := s.take("m")
	check("load", d.Payload)
	_, err = s.Fail(bg, d.Receipt, queue.FailOptions{})
	s.must(err)
	failed, err := s.ShowFailed(bg, "m", queue.FailedOptions{})
	s.must(err)
	check("failed", failed.Payload)
	s.must(s.Reprocess(bg, "m", queue.ReprocessOptions{}))
	c, err := s.Claim(bg, "mail", queue.ClaimOptions{})
	s.must(err)
	check("claim", c.Deliveries[0].Payload)

	other := []byte(`[1]`)
	s.must(s.ReplacePayload(bg, c.Deliveries[0].Receipt, other))
	other[1] = '2'
	shown, err = s.Show(bg, "mail", "m")
	s.must(err)
	s.is("replaced", string(shown[0].Payload), `[1]`)
}

func TestEnqueueBatch(t *testing.T) {
	one := func(id string) queue.Message { return queue.Message{ID: id, Payload: []byte(`1`)} }
	cases := []struct {
		name    string
		ms      []queue.Message
		refused string // index and sentinel of each refusal
		live    string
	}{
		{"all", []queue.Message{one("a"), one("b"), one("c")}, "", "m ready 0-0-0, a ready 0-0-0, b ready 0-0-0, c ready 0-0-0"},
		{"none", nil, "", "m ready 0-0-0"},
		{"an ID twice, replaced", []queue.Message{one("a"), {ID: "a", Payload: []byte(`2`), IfExists: queue.Replace}}, "", "m ready 0-0-0, a ready 0-0-0"},
		{"an ID twice, refused", []queue.Message{one("a"), one("a")}, "1 the ID is live already", "m ready 0-0-0"},
		{"every live one is named", []queue.Message{one("m"), one("a"), one("m")}, "0 the ID is live already, 2 the ID is live already", "m ready 0-0-0"},
		{"the invalid ones come first", []queue.Message{one("m"), {ID: "a"}, one("..")}, "1 invalid payload, 2 invalid name", "m ready 0-0-0"},
	}
	sentinels := []error{queue.ErrDuplicate, queue.ErrInvalidName, queue.ErrInvalidPayload}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.puts("m")
			out, err := s.EnqueueBatch(bg, "mail", c.ms)
			var refused []string
			var batch *queue.BatchError
			if errors.As(err, &batch) {
				for _, r := range batch.Refused {
					for _, sentinel := range sentinels {
						if errors.Is(r.Err, sentinel) {
							refused = append(refused, fmt.Sprint(r.Index, " ", sentinel))
						}
					}
				}
			}
			s.is("refused", strings.Join(refused, ", "), c.refused)
			s.is("live", s.live(), c.live)
			if (err == nil) != (c.refused == "") || err == nil && len(out) != len(c.ms) {
				t.Errorf("got %d results and %v", len(out), err)
			}
			for i, e := range out {
				if e.Revision != out[0].Revision || e.ID != c.ms[i].ID {
					t.Errorf("result %d: %+v", i, e)
				}
			}
		})
	}
}

// A schedule is kept to the millisecond and never comes early.
func TestNotBefore(t *testing.T) {
	s := newScene(t)
	s.put(queue.Message{ID: "m", NotBefore: noon.Add(10*time.Millisecond + 1)})
	s.is("scheduled", s.live(), "m scheduled 0-0-0 +11ms")
	s.pass(11*time.Millisecond - 1)
	s.is("a nanosecond before", s.claims(queue.ClaimOptions{}), "")
	s.pass(1)
	s.is("at that time", s.claims(queue.ClaimOptions{}), "m")
}
