package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// leases leases one message in each queue named, for so many seconds each, given as
// queue:seconds; 0: without deadline. The IDs are the places in the list.
func (s *scene) leases(list string) {
	s.t.Helper()
	for i, word := range strings.Fields(list) {
		var seconds int
		name, lease, _ := strings.Cut(word, ":")
		_, err := fmt.Sscan(lease, &seconds)
		s.must(err)
		length := time.Duration(seconds) * time.Second
		if seconds == 0 {
			length = queue.NoDeadline
		}
		id := fmt.Sprint(i)
		_, err = s.Enqueue(bg, name, queue.Message{ID: id, Payload: []byte(`1`)})
		s.must(err)
		_, err = s.Load(bg, name, id, queue.LoadOptions{Lease: length})
		s.must(err)
	}
}

func reapedIDs(out []queue.Returned) string {
	var ids []string
	for _, r := range out {
		ids = append(ids, r.Queue+"/"+r.ID)
	}
	return strings.Join(ids, " ")
}

// What a reaping after 30 seconds ends.
func TestReap(t *testing.T) {
	cases := []struct {
		name   string
		leases string
		o      queue.ReapOptions
		want   string
	}{
		{"nothing", "", queue.ReapOptions{}, ""},
		{"what is over, the boundary included", "a:29 a:30 a:31 a:0", queue.ReapOptions{}, "a/0 a/1"},
		{"the oldest message first, not the oldest deadline", "a:20 a:10", queue.ReapOptions{}, "a/0 a/1"},
		{"queues in order of their names", "c:1 b:1 a:1 b:1", queue.ReapOptions{}, "a/2 b/1 b/3 c/0"},
		{"those asked for, in order of their names too", "c:1 b:1 a:1", queue.ReapOptions{Queues: []string{"c", "a"}}, "a/2 c/0"},
		{"each queue once", "a:1 b:1", queue.ReapOptions{Queues: []string{"b", "b", "a", "b"}}, "a/0 b/1"},
		{"an unknown queue", "a:1", queue.ReapOptions{Queues: []string{"z", "a"}}, "a/0"},
		{"up to the limit, over the queues", "b:1 a:1 a:1", queue.ReapOptions{Limit: 2}, "a/1 a/2"},
		{"up to the limit, into the next queue", "b:1 b:1 a:1", queue.ReapOptions{Limit: 2}, "a/2 b/0"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.leases(c.leases)
			s.pass(30 * time.Second)
			revision := s.state.revision
			out, err := s.Reap(bg, c.o)
			s.must(err)
			s.is("reaped", reapedIDs(out), c.want)
			for _, r := range out {
				if r.Cause != queue.ByDeadline || r.Attempt != 1 || r.Lapses != 1 || r.FailedName != "" || !r.NotBefore.IsZero() {
					t.Errorf("got %+v", r)
				}
				if st := s.status(r.Queue); st.Counters.Reaped == 0 || st.Pending != st.Counters.Reaped {
					t.Errorf("%s: %+v", r.Queue, st)
				}
			}
			if moved := s.state.revision - revision; moved != uint64(min(1, len(out))) {
				t.Errorf("%d reaped made %d revisions", len(out), moved)
			}
		})
	}
}

func TestReapDefaultLimit(t *testing.T) {
	s := newScene(t)
	s.leases(strings.Repeat("a:1 ", queue.DefaultReapLimit+1))
	s.pass(time.Second)
	s.reaps(queue.ReapOptions{}, queue.DefaultReapLimit)
	s.reaps(queue.ReapOptions{}, 1)
	s.reaps(queue.ReapOptions{}, 0)
}

func TestReapOneClaim(t *testing.T) {
	s := newScene(t)
	s.puts("m")
	s.claims(queue.ClaimOptions{Lease: queue.NoDeadline})
	r := mustShow(s, "m").Receipt
	s.reaps(queue.ReapOptions{}, 0)
	if out := s.reaps(queue.ReapOptions{Receipt: &r}, 1)[0]; out.Cause != queue.ByOperator || out.Lapses != 1 || out.ID != "m" || out.Queue != "mail" {
		t.Errorf("got %+v", out)
	}
	s.is("live", s.live(), "m ready reaped 1-0-1")
}

func TestReapRefusals(t *testing.T) {
	s := newScene(t)
	r := leased1(s)
	for name, o := range map[string]queue.ReapOptions{
		"queue name":           {Queues: []string{"ack"}},
		"queues and a receipt": {Queues: []string{"mail"}, Receipt: &r},
		"a negative limit":     {Limit: -1},
	} {
		_, err := s.Reap(bg, o)
		if err == nil {
			t.Errorf("%s: taken", name)
		}
		s.wants(err, queue.ErrInvalid)
	}
	s.is("live", s.live(), "m processing 1-0-0 until +1m0s")
}

// A late worker: its lease lapses, another claims, and the first one's receipt moves
// nothing any more.
func TestLateWorker(t *testing.T) {
	s := newScene(t)
	first := reaped1(s)
	s.claims(queue.ClaimOptions{})
	second := mustShow(s, "m").Receipt
	before := s.live()
	for _, c := range memCalls {
		s.wants(c.call(s, first), queue.ErrStale)
	}
	first.ID = "n"
	for _, c := range memCalls {
		s.wants(c.call(s, first), queue.ErrGone)
	}
	s.is("the second's claim", s.live(), before)
	s.must(s.Ack(bg, second))
	s.is("live", s.live(), "")
}
