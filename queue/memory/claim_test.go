package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

func TestClaimTakesTheOldestDue(t *testing.T) {
	s := newScene(t)
	s.puts("a", "b")
	s.put(queue.Message{ID: "later", NotBefore: noon.Add(time.Hour)})
	s.puts("c", "d")
	s.is("by default one", s.claims(queue.ClaimOptions{}), "a")
	s.is("two", s.claims(queue.ClaimOptions{Max: 2}), "b c")
	s.must(s.Release(bg, mustShow(s, "b").Receipt, queue.ReleaseOptions{}))
	s.pass(time.Hour)
	s.is("a returned one keeps its place, overdue ones stay", s.claims(queue.ClaimOptions{Max: 9}), "b later d")
	s.is("nothing", s.claims(queue.ClaimOptions{Max: 9}), "")
	c, err := s.Claim(bg, "unknown", queue.ClaimOptions{})
	s.must(err)
	s.is("an unknown queue", claimedIDs(c), "")
}

func TestDelivery(t *testing.T) {
	s := newScene(t)
	e := s.put(queue.Message{ID: "m", Key: "k", NotBefore: noon.Add(time.Second)})
	s.pass(time.Second + time.Microsecond)
	c, err := s.Claim(bg, "mail", queue.ClaimOptions{Lease: time.Minute, Label: "me", WithoutHolder: true})
	s.must(err)
	d := c.Deliveries[0]
	want := queue.Receipt{Store: s.ID(), Queue: "mail", ID: "m", Generation: e.Generation, Attempt: 1}
	if d.Receipt != want || d.Key != "k" || d.Fence != 1 || !d.EnqueuedAt.Equal(noon) || d.Attempt() != 1 {
		t.Errorf("got %+v, want receipt %v", d, want)
	}
	if want := noon.Add(time.Minute + time.Second + time.Millisecond); !d.Deadline.Equal(want) {
		t.Errorf("deadline %v, want %v", d.Deadline, want)
	}
	if parsed, err := queue.ParseReceipt(d.Receipt.String()); err != nil || parsed != d.Receipt {
		t.Errorf("the receipt %s reads back as %v, %v", d.Receipt, parsed, err)
	}
	if shown := mustShow(s, "m"); shown.Receipt != d.Receipt || shown.Label != "me" || !shown.Deadline.Equal(d.Deadline) || shown.Fence != 1 {
		t.Errorf("shown as %+v", shown)
	}
}

// The fence grows with every claim of the store, refused ones aside.
func TestFence(t *testing.T) {
	s := newScene(t)
	s.puts("a", "b", "c")
	var last uint64
	next := func(d queue.Delivery) {
		t.Helper()
		if d.Fence != last+1 {
			t.Errorf("fence %d after %d", d.Fence, last)
		}
		last = d.Fence
	}
	c, err := s.Claim(bg, "mail", queue.ClaimOptions{Max: 2})
	s.must(err)
	next(c.Deliveries[0])
	next(c.Deliveries[1])
	_, err = s.Update(bg, queue.ClaimChange{Queue: "mail"}, queue.AckChange{})
	s.wants(err, queue.ErrInvalidReceipt)
	next(s.take("c"))
	s.pass(time.Hour)
	next(s.take("c"))
}

func TestClaimRefusals(t *testing.T) {
	s := newScene(t)
	s.puts("m")
	for _, c := range []struct {
		name  string
		queue string
		o     queue.ClaimOptions
		want  error
	}{
		{"queue name", "ack", queue.ClaimOptions{}, queue.ErrInvalidName},
		{"too few", "mail", queue.ClaimOptions{Max: -1}, queue.ErrInvalid},
		{"too many", "mail", queue.ClaimOptions{Max: queue.MaxClaim + 1}, queue.ErrInvalid},
		{"label", "mail", queue.ClaimOptions{Label: strings.Repeat("x", 129)}, queue.ErrInvalidName},
		{"short lease", "mail", queue.ClaimOptions{Lease: 1}, queue.ErrInvalid},
		{"long lease", "mail", queue.ClaimOptions{Lease: queue.MaxLease + 1}, queue.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := s.Claim(bg, c.queue, c.o)
			s.wants(err, c.want)
			if c.o.Max == 0 {
				_, err = s.Load(bg, c.queue, "m", queue.LoadOptions{Lease: c.o.Lease, Label: c.o.Label})
				s.wants(err, c.want)
			}
		})
	}
	_, err := s.Load(bg, "mail", ".", queue.LoadOptions{})
	s.wants(err, queue.ErrInvalidName)
	s.is("live", s.live(), "m ready 0-0-0")
}

// Load, in each standing of its message.
func TestLoad(t *testing.T) {
	forever := func(s *scene) {
		s.puts("m")
		s.claims(queue.ClaimOptions{Lease: queue.NoDeadline, WithoutHolder: true})
	}
	cases := []struct {
		name    string
		scene   func(s *scene)
		err     error
		live    string // after
		counted string
	}{
		{"nothing", func(s *scene) {}, queue.ErrNotFound, "", ""},
		{"another ID", func(s *scene) { s.puts("n") }, queue.ErrNotFound, "n ready 0-0-0", "enqueued 1"},
		{"pending", func(s *scene) { s.puts("m") }, nil, "m processing 1-0-0 until +1m0s", "enqueued 1, claimed 1"},
		{"scheduled", func(s *scene) { s.put(queue.Message{ID: "m", NotBefore: noon.Add(time.Hour)}) }, nil,
			"m processing 1-0-0 until +1m0s", "enqueued 1, claimed 1"},
		{"paused", func(s *scene) { s.puts("m"); s.must(s.Pause(bg, "mail")) }, nil,
			"m processing 1-0-0 until +1m0s", "enqueued 1, claimed 1"},
		{"not first of its key", func(s *scene) { s.puts("a/k", "m/k") }, nil,
			"a blocked 0-0-0, m processing 1-0-0 until +1m0s", "enqueued 2, claimed 1"},
		{"another of its key leased", func(s *scene) { s.puts("a/k", "m/k"); s.take("a") }, queue.ErrLeased,
			"a processing 1-0-0 until +1m0s, m blocked 0-0-0", "enqueued 2, claimed 1"},
		{"leased", func(s *scene) { leased1(s) }, queue.ErrLeased, "m processing 1-0-0 until +1m0s", "enqueued 1, claimed 1"},
		{"leased, just before the deadline", func(s *scene) { leased1(s); s.pass(time.Minute - 1) }, queue.ErrLeased,
			"m processing 1-0-0 until +1m0s", "enqueued 1, claimed 1"},
		{"leased, at the deadline", func(s *scene) { leased1(s); s.pass(time.Minute) }, nil,
			"m processing 2-0-1 until +2m0s", "enqueued 1, claimed 2, reaped 1"},
		{"leased with a key, at the deadline", func(s *scene) { s.puts("m/k", "n/k"); s.take("m"); s.pass(time.Minute) }, nil,
			"m processing 2-0-1 until +2m0s, n blocked 0-0-0", "enqueued 2, claimed 2, reaped 1"},
		{"leased without deadline, by this process", func(s *scene) { s.puts("m"); s.claims(queue.ClaimOptions{Lease: queue.NoDeadline}) },
			queue.ErrLeased, "m processing 1-0-0", "enqueued 1, claimed 1"},
		{"leased without deadline", forever, nil, "m processing 2-0-1 until +1m0s", "enqueued 1, claimed 2, reaped 1"},
		{"reaped", func(s *scene) { reaped1(s) }, nil, "m processing 2-0-1 until +2m0s", "enqueued 1, claimed 2, reaped 1"},
		{"snoozed", func(s *scene) {
			s.must(s.Release(bg, leased1(s), queue.ReleaseOptions{Delay: time.Hour}))
		}, nil, "m processing 2-1-0 until +1m0s", "enqueued 1, claimed 2, released 1"},
		{"two generations", func(s *scene) {
			s.must(s.Release(bg, leased1(s), queue.ReleaseOptions{}))
			s.put(queue.Message{ID: "m", IfExists: queue.Replace})
		}, nil, "m processing 2-1-0 until +1m0s, m blocked 0-0-0", "enqueued 2, claimed 2, released 1"},
		{"two generations, the older leased", func(s *scene) {
			leased1(s)
			s.put(queue.Message{ID: "m", IfExists: queue.Replace})
		}, queue.ErrLeased, "m processing 1-0-0 until +1m0s, m blocked 0-0-0", "enqueued 2, claimed 1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.scene(s)
			d, err := s.Load(bg, "mail", "m", queue.LoadOptions{Lease: time.Minute})
			s.wants(err, c.err)
			s.is("live", s.live(), c.live)
			s.is("counters", s.counted(), c.counted)
			if err == nil && (d.Receipt != mustShow(s, "m").Receipt || string(d.Payload) != `{"id":"m"}`) {
				t.Errorf("delivered %+v", d)
			}
		})
	}
}

// One generation of an ID is in flight, and the older comes first, however it came
// back.
func TestOlderGenerationFirst(t *testing.T) {
	for _, c := range memCalls[:9] {
		if !strings.Contains("release snooze retry reap", c.name) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			r := leased1(s)
			newer := s.put(queue.Message{ID: "m", IfExists: queue.Replace})
			s.is("while leased", s.claims(queue.ClaimOptions{Max: 9}), "")
			s.must(c.call(s, r))
			s.pass(time.Hour)
			claimed, err := s.Claim(bg, "mail", queue.ClaimOptions{Max: 9})
			s.must(err)
			if len(claimed.Deliveries) != 1 || claimed.Deliveries[0].Receipt.Generation != r.Generation {
				t.Fatalf("claimed %+v, want the older generation alone", claimed)
			}
			s.must(s.Ack(bg, claimed.Deliveries[0].Receipt))
			claimed, err = s.Claim(bg, "mail", queue.ClaimOptions{Max: 9})
			s.must(err)
			if len(claimed.Deliveries) != 1 || claimed.Deliveries[0].Receipt.Generation != newer.Generation {
				t.Fatalf("claimed %+v, want the newer generation", claimed)
			}
		})
	}
}

// A deep queue is drained in order.
func TestClaimDrains(t *testing.T) {
	s := newScene(t)
	var ms []queue.Message
	for n := range 3000 {
		ms = append(ms, queue.Message{ID: fmt.Sprint(n), Payload: []byte(`1`)})
	}
	_, err := s.EnqueueBatch(bg, "mail", ms)
	s.must(err)
	for n := 0; n < len(ms); {
		c, err := s.Claim(bg, "mail", queue.ClaimOptions{Max: 7})
		s.must(err)
		if len(c.Deliveries) == 0 {
			t.Fatalf("nothing to claim after %d", n)
		}
		for _, d := range c.Deliveries {
			if d.Receipt.ID != fmt.Sprint(n) {
				t.Fatalf("got %s, want %d", d.Receipt.ID, n)
			}
			s.must(s.Ack(bg, d.Receipt))
			n++
		}
	}
	if st := s.status("mail"); !st.Complete() || st.Counters.Completed != 3000 {
		t.Errorf("drained to %+v", st)
	}
}
