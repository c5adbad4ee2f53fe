//go:build unix

package holdfast

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// fairly claims n in rotation and commits.
func (r *rig) fairly(n int) string {
	r.Helper()
	c, err := r.claim("mail", taking{max: n, lease: time.Minute, fair: true})
	if err != nil {
		r.Fatal(err)
	}
	r.commit()
	var ids []string
	for _, d := range c.Deliveries {
		ids = append(ids, d.Receipt.ID)
	}
	return strings.Join(ids, " ")
}

// Each step claims so many in rotation and then settles all that is out.
func TestTransitionFair(t *testing.T) {
	type step struct {
		n    int
		want string
	}
	for _, c := range []struct {
		name  string
		ids   string
		steps []step
	}{
		{"in order of the keys' bytes", "b1 a1 c1 B1", []step{{9, "B1 a1 b1 c1"}}},
		{"one at a time, around", "a1 a2 a3 b1 b2 c1", []step{{1, "a1"}, {1, "b1"}, {1, "c1"}, {1, "a2"}, {1, "b2"}, {1, "a3"}, {1, ""}}},
		{"those without a key share one turn", "a1 a2 -1 -2 -3 b1 b2", []step{{1, "a1"}, {1, "b1"}, {1, "-1"}, {1, "a2"}, {1, "b2"}, {1, "-2"}, {1, "-3"}}},
		{"together", "a1 a2 -1 -2 -3 b1 b2", []step{{4, "a1 b1 -1 -2"}, {9, "a2 b2 -3"}}},
		{"a claim goes on where the one before ended", "a1 a2 b1 b2 c1 c2", []step{{2, "a1 b1"}, {2, "c1 a2"}, {9, "b2 c2"}}},
		{"a key that is gone", "a1 b1 c1", []step{{1, "a1"}, {1, "b1"}, {1, "c1"}}},
		{"oldest of a key first", "a2 a1 a3", []step{{1, "a2"}, {1, "a1"}, {1, "a3"}}},
		{"without keys as ever", "-3 -1 -2", []step{{2, "-3 -1"}, {1, "-2"}}},
	} {
		for _, decoded := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/decoded %v", c.name, decoded), func(t *testing.T) {
				r := newRig(t)
				r.decoded = decoded
				r.lanes(c.ids)
				for i, step := range c.steps {
					got := r.fairly(step.n)
					if got != step.want {
						t.Fatalf("claim %d of %d delivers %q, want %q", i, step.n, got, step.want)
					}
					for _, id := range strings.Fields(got) {
						r.settled(r.ack(r.receiptOf(id)))
					}
				}
			})
		}
	}
}

// One busy key does not hold the others up, and the place in the rotation is kept.
func TestTransitionFairTurn(t *testing.T) {
	r := newRig(t)
	r.lanes("a1 a2 a3 a4 b1 c1")
	if got := r.fairly(2); got != "a1 b1" {
		t.Fatalf("delivered %q", got)
	}
	if turn := r.base.queue("mail").turn; turn != "b" {
		t.Errorf("the turn is %q, want b", turn)
	}
	// A plain claim and a load leave the rotation as it is.
	r.settled(r.ack(r.receiptOf("a1")))
	if got := r.claimIDs(1); got != "a2" {
		t.Fatalf("delivered %q", got)
	}
	r.settled(r.ack(r.receiptOf("b1")))
	r.lanes("b2 aa1")
	if turn := r.base.queue("mail").turn; turn != "b" {
		t.Errorf("the turn is %q, want b", turn)
	}
	if got := r.fairly(1); got != "c1" {
		t.Errorf("delivered %q, want c1", got)
	}
	// Nothing due: the turn stays.
	for r.fairly(1) != "" {
	}
	turn := r.base.queue("mail").turn
	if got := r.fairly(1); got != "" || r.base.queue("mail").turn != turn {
		t.Errorf("delivered %q; the turn went from %q to %q", got, turn, r.base.queue("mail").turn)
	}
	// A refused claim too.
	r.lanes("d1")
	s, _ := r.base.queue("mail").find("d1")
	r.broken[spot{s.pending.object, s.pending.off}] = errUnreadable
	_, err := r.claim("mail", taking{max: 1, lease: time.Minute, fair: true}) // apply looks for a trace
	r.is(err, errUnreadable)
}

// A damaged message is not served: the turn is its key's still.
func TestTransitionFairDamaged(t *testing.T) {
	r := newRig(t)
	r.lanes("a1 b1 b2 c1")
	s, _ := r.base.queue("mail").find("b1")
	r.damage(s.pending)
	if got := r.fairly(1); got != "a1" {
		t.Fatalf("delivered %q", got)
	}
	if got := r.fairly(1); got != "b2" {
		t.Errorf("delivered %q", got)
	}
	if turn := r.base.queue("mail").turn; turn != "b" {
		t.Errorf("the turn is %q, want b", turn)
	}
	t.Run("alone", func(t *testing.T) {
		r := newRig(t)
		r.lanes("a1 b1")
		if got := r.fairly(1); got != "a1" {
			t.Fatalf("delivered %q", got)
		}
		s, _ := r.base.queue("mail").find("b1")
		r.damage(s.pending)
		if got := r.fairly(1); got != "" {
			t.Fatalf("delivered %q", got)
		}
		if turn := r.base.queue("mail").turn; turn != "a" {
			t.Errorf("the turn is %q, want a", turn)
		}
	})
}

// The turn is for people's keys and may be long: in a crowded state it is given up.
func TestTransitionFairCrowded(t *testing.T) {
	r := newRig(t)
	r.lanes("a1 b1")
	r.open().tight = true
	if got := r.fairly(1); got != "a1" {
		t.Errorf("delivered %q", got)
	}
	if turn := r.base.queue("mail").turn; turn != "" {
		t.Errorf("the turn is %q", turn)
	}
}
