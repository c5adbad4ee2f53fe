package memory

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// places tells where each message of mail stands, and checks that the gauges, Peek
// and Claim tell the same. It moves nothing.
func (s *scene) places() string {
	s.t.Helper()
	page, err := s.List(bg, "mail", queue.ListOptions{})
	s.must(err)
	var out, ready []string
	n := map[queue.State]uint64{}
	for _, e := range page.Entries {
		out = append(out, fmt.Sprintf("%s %s", e.ID, e.State))
		if n[e.State]++; e.State == queue.Ready {
			ready = append(ready, e.ID)
		}
	}
	g := s.status("mail")
	if g.Ready != n[queue.Ready] || g.Scheduled != n[queue.Scheduled] || g.Blocked != n[queue.Blocked] || g.Processing != n[queue.Processing] ||
		g.Pending != g.Ready+g.Scheduled+g.Blocked {
		s.t.Errorf("gauges %+v, listed %v", g, n)
	}
	peeked, err := s.Peek(bg, "mail", queue.MaxClaim)
	s.must(err)
	var seen []string
	for _, e := range peeked {
		seen = append(seen, e.ID)
	}
	s.is("peek", strings.Join(seen, " "), strings.Join(ready, " "))
	// A claim in an update that is refused after it.
	_, err = s.Update(bg, queue.ClaimChange{Queue: "mail", Options: queue.ClaimOptions{Max: queue.MaxClaim}}, queue.AckChange{})
	s.wants(err, queue.ErrInvalidReceipt)
	return strings.Join(out, ", ")
}

// Where messages of a key stand, and what a claim of ten then takes.
func TestKeys(t *testing.T) {
	hour := noon.Add(time.Hour)
	cases := []struct {
		name    string
		scene   func(s *scene)
		places  string
		claimed string
	}{
		{"one at a time, in order", func(s *scene) { s.puts("a/k", "b/k", "c/l", "d", "e") },
			"a ready, b blocked, c ready, d ready, e ready", "a c d e"},
		{"one is leased", func(s *scene) { s.puts("a/k", "b/k", "c/l"); s.take("a") },
			"a processing, b blocked, c ready", "c"},
		{"a later one is leased, by Load", func(s *scene) { s.puts("a/k", "b/k", "c/k"); s.take("b") },
			"a blocked, b processing, c blocked", ""},
		{"a released one goes first", func(s *scene) {
			s.puts("a/k", "b/k")
			s.must(s.Release(bg, s.take("a").Receipt, queue.ReleaseOptions{}))
		}, "a ready, b blocked", "a"},
		{"a snoozed one holds the later ones", func(s *scene) {
			s.puts("a/k", "b/k", "c")
			s.must(s.Release(bg, s.take("a").Receipt, queue.ReleaseOptions{Delay: time.Hour}))
		}, "a scheduled, b blocked, c ready", "c"},
		{"a retried one holds the later ones", func(s *scene) {
			s.puts("a/k", "b/k", "c")
			_, err := s.Retry(bg, s.take("a").Receipt, queue.RetryOptions{Delay: time.Hour})
			s.must(err)
		}, "a scheduled, b blocked, c ready", "c"},
		{"a later one that came back does not hold the earlier", func(s *scene) {
			s.puts("a/k", "b/k")
			s.must(s.Release(bg, s.take("b").Receipt, queue.ReleaseOptions{}))
		}, "a ready, b blocked", "a"},
		{"a scheduled one holds nobody", func(s *scene) {
			s.put(queue.Message{ID: "a", Key: "k", NotBefore: hour})
			s.puts("b/k")
		}, "a scheduled, b ready", "b"},
		{"a scheduled one that is due is in its place", func(s *scene) {
			s.put(queue.Message{ID: "a", Key: "k", NotBefore: hour})
			s.puts("b/k")
			s.pass(time.Hour)
		}, "a ready, b blocked", "a"},
		{"a scheduled one that is due waits for the leased", func(s *scene) {
			s.put(queue.Message{ID: "a", Key: "k", NotBefore: hour})
			s.puts("b/k")
			s.take("b")
			s.pass(time.Hour)
		}, "a blocked, b processing", ""},
		{"the next generation holds nobody", func(s *scene) {
			s.puts("a/j")
			s.take("a")
			s.put(queue.Message{ID: "a", Key: "k", IfExists: queue.Replace})
			s.puts("b/k")
		}, "a processing, a blocked, b ready", "b"},
		{"the next generation holds nobody while the older is away", func(s *scene) {
			s.puts("a/j")
			s.must(s.Release(bg, s.take("a").Receipt, queue.ReleaseOptions{Delay: time.Hour}))
			s.put(queue.Message{ID: "a", Key: "k", IfExists: queue.Replace})
			s.puts("b/k")
		}, "a scheduled, a blocked, b ready", "b"},
		{"two generations of one key", func(s *scene) {
			s.puts("a/k")
			s.must(s.Release(bg, s.take("a").Receipt, queue.ReleaseOptions{}))
			s.put(queue.Message{ID: "a", Key: "k", IfExists: queue.Replace})
		}, "a ready, a blocked", "a"},
		{"the older generation of an ID is scheduled", func(s *scene) {
			s.puts("a")
			s.must(s.Release(bg, s.take("a").Receipt, queue.ReleaseOptions{Delay: time.Hour}))
			s.put(queue.Message{ID: "a", NotBefore: hour, IfExists: queue.Replace})
		}, "a scheduled, a blocked", ""},
		{"a superseding one takes a new place", func(s *scene) {
			s.puts("a/k", "b/k")
			s.put(queue.Message{ID: "a", Key: "k", IfExists: queue.Replace})
		}, "b ready, a blocked", "b"},
		{"no key is not one", func(s *scene) {
			s.puts("a", "b")
			s.must(s.Release(bg, s.take("a").Receipt, queue.ReleaseOptions{Delay: time.Hour}))
			s.puts("c")
		}, "a scheduled, b ready, c ready", "b c"},
		{"a reprocessed one is at its old place", func(s *scene) {
			s.puts("a/k", "b/k")
			_, err := s.Store.Fail(bg, s.take("a").Receipt, queue.FailOptions{})
			s.must(err)
			s.must(s.Reprocess(bg, "a", queue.ReprocessOptions{}))
		}, "a ready, b blocked", "a"},
		{"a failed one holds nobody", func(s *scene) {
			s.puts("a/k", "b/k")
			_, err := s.Store.Fail(bg, s.take("a").Receipt, queue.FailOptions{})
			s.must(err)
		}, "b ready", "b"},
		{"a reaped one holds the later ones", func(s *scene) {
			s.puts("a/k", "b/k")
			r := s.take("a").Receipt
			s.reaps(queue.ReapOptions{Receipt: &r}, 1)
		}, "a ready, b blocked", "a"},
		{"the same key of another queue", func(s *scene) {
			s.puts("a/k")
			_, err := s.Enqueue(bg, "post", queue.Message{ID: "b", Key: "k", Payload: []byte(`1`)})
			s.must(err)
			_, err = s.Load(bg, "post", "b", queue.LoadOptions{})
			s.must(err)
		}, "a ready", "a"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.scene(s)
			s.is("places", s.places(), c.places)
			s.is("claimed", s.claims(queue.ClaimOptions{Max: 10}), c.claimed)
		})
	}
}

// The claim of another message of its key is all that ends the right of a reaped
// claim to be extended.
func TestExtendOfAReapedClaimMeetsItsKey(t *testing.T) {
	s := newScene(t)
	s.puts("a/k", "b/k")
	r := s.take("a").Receipt
	s.reaps(queue.ReapOptions{Receipt: &r}, 1)
	other := s.take("b").Receipt
	before, revision := s.live(), s.state.revision
	_, err := s.Extend(bg, r, time.Hour)
	s.wants(err, queue.ErrStale)
	s.is("error", err.Error(), "mail/a attempt 1: stale: reaped, and another message of its key is claimed")
	s.is("live", s.live(), before)
	if s.state.revision != revision {
		t.Error("a refusal made a revision")
	}
	s.must(s.Ack(bg, other))
	_, err = s.Extend(bg, r, time.Hour)
	s.must(err)
	s.is("places", s.places(), "a processing")
}

// Fair rotation: what successive claims take.
func TestFair(t *testing.T) {
	cases := []struct {
		name   string
		put    string // ID/key each
		claims []int
		want   string // IDs, claims set apart by a bar
		turn   string // the key served last
	}{
		{"nothing", "", []int{1}, "", ""},
		{"keyless only", "1 2 3", []int{1, 2}, "1 | 2 3", ""},
		{"one key only", "1/a 2/a", []int{2}, "1", "a"},
		{"one each", "1/a 2/a 3/b 4/c 5/c", []int{9}, "1 3 4", "c"},
		{"in the order of the keys' bytes", "1/b 2/a 3/B 4/é", []int{9}, "3 2 1 4", "é"},
		{"the keyless turn comes after the greatest key", "1 2/a 3/b", []int{9}, "2 3 1", ""},
		{"the keyless share one turn", "1 2 3/a 4/b", []int{9}, "3 4 1 2", ""},
		{"the rotation goes on where it ended", "1/a 2/b 3/c 4/d", []int{1, 2, 1}, "1 | 2 3 | 4", "d"},
		{"the keyless turn is passed in the rotation", "1 2 3/a 4/b 5/c", []int{1, 2, 1, 9}, "3 | 4 5 | 1 | 2", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.puts(strings.Fields(c.put)...)
			var got []string
			for _, n := range c.claims {
				got = append(got, s.claims(queue.ClaimOptions{Max: n, Fair: true}))
			}
			s.is("claimed", strings.Join(got, " | "), c.want)
			if q := s.state.queues["mail"]; q != nil {
				s.is("turn", q.turn, c.turn)
			}
		})
	}

	// From each turn, over the keys a, c and e and three messages without a key.
	for turn, want := range map[string]string{
		"":  "a c e 1 2 3",
		"a": "c e 1 a 2 3",
		"b": "c e 1 a 2 3",
		"c": "e 1 a c 2 3",
		"e": "1 a c e 2 3",
		"f": "1 a c e 2 3",
	} {
		t.Run("after "+turn, func(t *testing.T) {
			s := newScene(t)
			s.puts("1", "2", "e/e", "3", "c/c", "a/a")
			s.state.queues["mail"].turn = turn
			s.is("claimed", s.claims(queue.ClaimOptions{Max: 9, Fair: true}), want)
		})
	}

	t.Run("a turn that is served in full begins anew", func(t *testing.T) {
		s := newScene(t)
		s.puts("1/a", "2/b", "3/a", "4/b", "5")
		var got []string
		for range 5 {
			c, err := s.Claim(bg, "mail", queue.ClaimOptions{Fair: true})
			s.must(err)
			got = append(got, claimedIDs(c))
			s.must(s.Ack(bg, c.Deliveries[0].Receipt))
		}
		s.is("claimed", strings.Join(got, " "), "1 2 5 3 4")
	})
	t.Run("what cannot be claimed has no turn", func(t *testing.T) {
		s := newScene(t)
		s.puts("1/a", "2/b", "3/c", "4/a")
		s.take("2")
		s.must(s.Release(bg, s.take("1").Receipt, queue.ReleaseOptions{Delay: time.Hour}))
		s.is("claimed", s.claims(queue.ClaimOptions{Max: 9, Fair: true}), "3")
	})
	t.Run("other claims do not move the turn", func(t *testing.T) {
		s := newScene(t)
		s.puts("1/b", "2/a", "3/c")
		s.claims(queue.ClaimOptions{})
		s.is("claimed", s.claims(queue.ClaimOptions{Fair: true}), "2")
		s.claims(queue.ClaimOptions{Fair: true})
		s.is("a claim that finds nothing", s.claims(queue.ClaimOptions{Fair: true}), "")
		s.is("turn", s.state.queues["mail"].turn, "c")
	})
}
