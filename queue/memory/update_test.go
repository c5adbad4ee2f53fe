package memory

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// One update with a change of each kind: its outcomes, one revision, and each change
// sees what those before it made.
func TestUpdate(t *testing.T) {
	s := newScene(t)
	s.puts("a", "b", "c", "d", "e")
	revision := s.state.revision
	r := map[string]queue.Receipt{}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		r[id] = s.take(id).Receipt
		revision++
	}
	out, err := s.Update(bg,
		queue.AckChange{Receipt: r["a"]},
		queue.ReleaseChange{Receipt: r["b"], Options: queue.ReleaseOptions{Delay: time.Hour}},
		queue.RetryChange{Receipt: r["c"], Options: queue.RetryOptions{Delay: time.Second, Cause: "no"}},
		queue.ExtendChange{Receipt: r["d"], Lease: time.Hour},
		queue.FailChange{Receipt: r["e"], Options: queue.FailOptions{As: "f"}},
		queue.EnqueueChange{Queue: "next", Message: queue.Message{ID: "n", Payload: []byte(`1`)}},
		queue.ClaimChange{Queue: "next", Options: queue.ClaimOptions{Max: 5, Label: "me"}},
		queue.EnqueueChange{Queue: "mail", Message: queue.Message{ID: "a", Payload: []byte(`1`)}}, // a is free again
		queue.ClaimChange{Queue: "nothing"},
		queue.CursorChange{Queue: "mail", Cursor: "offset 7"},
	)
	s.must(err)
	if s.state.revision != revision+1 {
		t.Errorf("revision %d after %d", s.state.revision, revision)
	}
	s.is("live", s.live(), `b scheduled released 1-1-0 +1h0m0s, c scheduled retried 1-0-0 +1s "no", d processing 1-0-0 until +1h0m0s, `+
		`a ready 0-0-0, e failed as f 1-0-0`)
	for i, want := range []queue.Outcome{
		{}, {},
		{Returned: queue.Returned{Queue: "mail", ID: "c", Attempt: 1, NotBefore: out[2].Returned.NotBefore}},
		{Deadline: out[3].Deadline},
		{Failed: "f"},
		{Enqueued: queue.Enqueued{Queue: "next", ID: "n", Generation: out[5].Enqueued.Generation, Revision: revision + 1}},
		{Claimed: out[6].Claimed},
		{Enqueued: queue.Enqueued{Queue: "mail", ID: "a", Generation: out[7].Enqueued.Generation, Revision: revision + 1}},
		{}, {},
	} {
		if !reflect.DeepEqual(out[i], want) {
			t.Errorf("outcome %d: got %+v, want %+v", i, out[i], want)
		}
	}
	if !out[2].Returned.NotBefore.Equal(noon.Add(time.Second)) || !out[3].Deadline.Equal(noon.Add(time.Hour)) {
		t.Errorf("due again at %v, deadline %v", out[2].Returned.NotBefore, out[3].Deadline)
	}
	s.is("claimed", claimedIDs(out[6].Claimed), "n")
	if out[5].Enqueued.Generation == out[7].Enqueued.Generation || out[6].Claimed.Deliveries[0].Receipt.Generation != out[5].Enqueued.Generation {
		t.Errorf("generations %+v", out)
	}
	cursor, err := s.Cursor(bg, "mail")
	s.must(err)
	s.is("cursor", cursor, "offset 7")
}

// The zero options of a change are those of its call.
func TestUpdateDefaults(t *testing.T) {
	s := newScene(t)
	s.puts("a", "b", "c")
	out, err := s.Update(bg, queue.ClaimChange{Queue: "mail"}, queue.RetryChange{Receipt: s.take("b").Receipt},
		queue.ExtendChange{Receipt: s.take("c").Receipt})
	s.must(err)
	s.is("claimed", claimedIDs(out[0].Claimed), "a")
	s.is("live", s.live(), "a processing 1-0-0 until +5m0s, b ready retried 1-0-0, c processing 1-0-0 until +5m0s")
	if want := noon.Add(queue.DefaultLease); !out[2].Deadline.Equal(want) {
		t.Errorf("extended to %v, want %v", out[2].Deadline, want)
	}
	_, err = s.Update(bg, queue.FailChange{Receipt: mustShow(s, "a").Receipt, Options: queue.FailOptions{Cause: strings.Repeat("é", 600)}})
	s.must(err)
	e, err := s.ShowFailed(bg, "a", queue.FailedOptions{})
	s.must(err)
	s.is("a long cause", e.LastError, strings.Repeat("é", 512))
}

// A refusal at any place undoes all that came before it: nothing that can be seen, and
// nothing inside, is different.
func TestUpdateIsAtomic(t *testing.T) {
	changes := func(r map[string]queue.Receipt) []queue.Change {
		return []queue.Change{
			queue.AckChange{Receipt: r["a"]},
			queue.ReleaseChange{Receipt: r["b"]},
			queue.RetryChange{Receipt: r["c"]},
			queue.RetryChange{Receipt: r["d"], Options: queue.RetryOptions{MaxFailures: 1}},
			queue.FailChange{Receipt: r["e"]},
			queue.ExtendChange{Receipt: r["f"]},
			queue.EnqueueChange{Queue: "mail", Message: queue.Message{ID: "p", Payload: []byte(`2`), IfExists: queue.Replace}},
			queue.EnqueueChange{Queue: "new", Message: queue.Message{ID: "p", Payload: []byte(`2`)}},
			queue.ClaimChange{Queue: "mail", Options: queue.ClaimOptions{Max: 9, Fair: true}},
			queue.ClaimChange{Queue: "new"},
			queue.CursorChange{Queue: "mail", Cursor: "2"},
			queue.CursorChange{Queue: "other", Cursor: "2"},
			queue.LoadChange{Queue: "desk", ID: "d1"},
			queue.ReplacePayloadChange{Receipt: r["d2"], Payload: []byte(`2`)},
			queue.ReapChange{Receipt: r["d3"]},
			queue.ReprocessChange{FailedName: "d4"},
			queue.PurgeChange{FailedName: "d5"},
		}
	}
	scene := func(t *testing.T) (*scene, map[string]queue.Receipt) {
		s := newScene(t)
		s.puts("a/x", "b/y", "c", "d", "e/z", "f/u", "p", "q/v")
		s.must(memUpdate(s, queue.CursorChange{Queue: "mail", Cursor: "1"}))
		r := map[string]queue.Receipt{}
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			r[id] = s.take(id).Receipt
		}
		for _, id := range []string{"d1", "d2", "d3", "d4", "d5"} {
			_, err := s.Enqueue(bg, "desk", queue.Message{ID: id, Payload: []byte(`1`)})
			s.must(err)
			if id != "d1" {
				d, err := s.Load(bg, "desk", id, queue.LoadOptions{})
				s.must(err)
				r[id] = d.Receipt
			}
		}
		for _, id := range []string{"d4", "d5"} {
			_, err := s.Fail(bg, r[id], queue.FailOptions{})
			s.must(err)
		}
		reap := r["f"]
		s.reaps(queue.ReapOptions{Receipt: &reap}, 1)
		return s, r
	}
	whole, r := scene(t)
	out, err := whole.Update(bg, changes(r)...)
	whole.must(err) // so each of them alone is no refusal
	whole.is("claimed", claimedIDs(out[8].Claimed), "q b c p")

	for n := range len(changes(r)) + 1 {
		s, r := scene(t)
		before := dumpState(&s.state)
		refused := append(changes(r)[:n:n], queue.AckChange{Receipt: queue.Receipt{Store: s.ID(), Queue: "mail", ID: "zz"}})
		_, err := s.Update(bg, refused...)
		var update *queue.UpdateError
		if !errors.As(err, &update) || update.Index != n || !errors.Is(err, queue.ErrGone) {
			t.Fatalf("got %v, want the refusal of change %d", err, n)
		}
		s.is("state after "+err.Error(), dumpState(&s.state), before)
	}
}

func TestUpdateRefusals(t *testing.T) {
	s := newScene(t)
	r := leased1(s)
	revision := s.state.revision
	for _, c := range []struct {
		name string
		c    queue.Change
		want error
	}{
		{"nil", nil, queue.ErrInvalid},
		{"a pointer", &queue.AckChange{Receipt: r}, queue.ErrInvalid},
		{"queue name", queue.ClaimChange{Queue: "ack"}, queue.ErrInvalidName},
		{"claim", queue.ClaimChange{Queue: "mail", Options: queue.ClaimOptions{Max: -1}}, queue.ErrInvalid},
		{"payload", queue.EnqueueChange{Queue: "mail"}, queue.ErrInvalidPayload},
		{"a live ID", queue.EnqueueChange{Queue: "mail", Message: queue.Message{ID: "m", Payload: []byte(`1`)}}, queue.ErrDuplicate},
		{"delay", queue.RetryChange{Receipt: r, Options: queue.RetryOptions{Delay: -1}}, queue.ErrInvalid},
		{"lease", queue.ExtendChange{Receipt: r, Lease: 1}, queue.ErrInvalid},
		{"another payload", queue.ReplacePayloadChange{Receipt: r, Payload: []byte(`{`)}, queue.ErrInvalidPayload},
		{"an unknown ID", queue.LoadChange{Queue: "mail", ID: "unknown"}, queue.ErrNotFound},
		{"a leased message", queue.LoadChange{Queue: "mail", ID: "m"}, queue.ErrLeased},
		{"a failed name", queue.PurgeChange{FailedName: "m"}, queue.ErrNotFailed},
		{"cursor", queue.CursorChange{Queue: "mail", Cursor: strings.Repeat("x", queue.MaxCursorBytes+1)}, queue.ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.Update(bg, queue.CursorChange{Queue: "mail", Cursor: "1"}, c.c)
			s.wants(err, c.want)
			var update *queue.UpdateError
			if !errors.As(err, &update) || update.Index != 1 {
				t.Errorf("got %v, want the refusal of change 1", err)
			}
		})
	}
	_, err := s.Update(bg, make([]queue.Change, queue.MaxUpdate+1)...)
	s.wants(err, queue.ErrTooLarge)
	if s.state.revision != revision {
		t.Error("a refused update made a revision")
	}
	out, err := s.Update(bg)
	if err != nil || len(out) != 0 || s.state.revision != revision {
		t.Errorf("an update of nothing: %v, %v", out, err)
	}
}

func TestCursor(t *testing.T) {
	s := newScene(t)
	read := func(want string) {
		t.Helper()
		got, err := s.Cursor(bg, "mail")
		s.must(err)
		s.is("cursor", got, want)
	}
	read("")
	for _, set := range []string{"1", "2", "2", "", strings.Repeat("é", queue.MaxCursorBytes/2)} {
		s.must(memUpdate(s, queue.CursorChange{Queue: "mail", Cursor: set}))
		read(set)
	}
	s.must(memUpdate(s, queue.CursorChange{Queue: "unknown"}))
	if s.state.queues["unknown"] != nil {
		t.Error("unsetting nothing made a queue")
	}
	_, err := s.Cursor(bg, "ack")
	s.wants(err, queue.ErrInvalidName)
}
