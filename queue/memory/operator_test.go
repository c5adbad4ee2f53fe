package memory

import (
	"testing"
	"time"

	"example.com/holdfast/queue"
)

func TestClear(t *testing.T) {
	all := func(s *scene) { // one of each, and two generations of two
		s.puts("pending", "leased/k", "returned", "both", "back")
		s.put(queue.Message{ID: "scheduled", NotBefore: noon.Add(time.Hour)})
		s.take("leased")
		s.take("both")
		for _, id := range []string{"returned", "back"} {
			s.must(s.Release(bg, s.take(id).Receipt, queue.ReleaseOptions{}))
		}
		for _, id := range []string{"both", "back"} {
			s.put(queue.Message{ID: id, IfExists: queue.Replace})
		}
		_, err := s.Enqueue(bg, "post", queue.Message{ID: "other", Payload: []byte(`1`)})
		s.must(err)
	}
	cases := []struct {
		name    string
		scene   func(s *scene)
		leased  bool
		removed uint64
		live    string
	}{
		{"unknown", func(s *scene) {}, true, 0, ""},
		{"only leased ones", func(s *scene) { leased1(s) }, false, 0, "m processing 1-0-0 until +1m0s"},
		{"all but the leased", all, false, 6, "leased processing 1-0-0 until +1m0s, both processing 1-0-0 until +1m0s"},
		{"all", all, true, 8, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.scene(s)
			revision := s.state.revision
			n, err := s.Clear(bg, "mail", queue.ClearOptions{Leased: c.leased})
			s.must(err)
			if cleared := s.status("mail").Counters.Cleared; n != c.removed || cleared != n {
				t.Errorf("removed %d, counted %d, want %d", n, cleared, c.removed)
			}
			s.is("live", s.live(), c.live)
			if (s.state.revision != revision) != (n > 0) {
				t.Errorf("%d removed took revision %d to %d", n, revision, s.state.revision)
			}
			if n > 0 && s.status("post").Ready != 1 {
				t.Error("another queue was touched")
			}
		})
	}
	s := newScene(t)
	_, err := s.Clear(bg, "ack", queue.ClearOptions{})
	s.wants(err, queue.ErrInvalidName)
}

func TestPause(t *testing.T) {
	s := newScene(t)
	s.must(s.Pause(bg, "mail"))
	st, err := s.Status(bg, queue.StatusOptions{})
	s.must(err)
	if q, known := st.Queues["mail"]; !known || !q.Paused {
		t.Errorf("an unknown queue was paused to %+v", st)
	}
	s.puts("a", "b")
	s.is("claim", s.claims(queue.ClaimOptions{}), "")
	if g := s.status("mail"); g.Ready != 2 {
		t.Errorf("a pause is no state of messages: %+v", g)
	}
	peeked, err := s.Peek(bg, "mail", 1)
	s.must(err)
	if len(peeked) != 0 {
		t.Errorf("peeked %+v", peeked)
	}
	s.must(s.Ack(bg, s.take("a").Receipt))
	revision := s.state.revision
	s.must(s.Pause(bg, "mail"))
	if s.state.revision != revision {
		t.Error("pausing again made a revision")
	}
	s.must(s.Resume(bg, "mail"))
	s.is("after resume", s.claims(queue.ClaimOptions{}), "b")
	revision = s.state.revision
	s.must(s.Resume(bg, "mail"))
	s.must(s.Resume(bg, "unknown"))
	s.must(s.SetFailedNamespace(bg, "unknown", ""))
	if s.state.revision != revision || s.state.queues["unknown"] != nil {
		t.Error("what changes nothing changed something")
	}
	s.wants(s.Pause(bg, "ack"), queue.ErrInvalidName)
	s.wants(s.Resume(bg, "ack"), queue.ErrInvalidName)
}
