//go:build unix

package holdfast

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// Room to settle: in a state that has outgrown its bound, or on a full disk, texts for
// people are cut short, and whatever is done to a message after that, it takes no more
// than what was promised when it was accepted. This is shown by doing everything.

// A roomCall is one thing that can be done to the only message of a state.
type roomCall struct {
	name string
	do   func(d *draft, x queue.Receipt) error
}

var (
	roomQueue = strings.Repeat("long/", 30) + "mail"
	roomID    = strings.Repeat("m", queue.MaxNameBytes)
	roomWord  = strings.Repeat(`"`, queue.MaxNameBytes) // two bytes written for each
	roomCause = strings.Repeat("\x1b", 100)             // six
	roomProof = func(token) (bool, error) { return true, nil }
	roomLoad  = func(*ref) ([]byte, string, error) { return []byte("1"), "", nil }
)

func roomTaking(lease time.Duration, held bool, label string) taking {
	t := taking{max: 1, lease: lease, label: label, fair: true}
	if held {
		t.holder = namedToken("holder")
	}
	return t
}

// roomCalls are all calls that a message can meet, with the longest texts and without.
func roomCalls() []roomCall {
	retry := func(o queue.RetryOptions) func(d *draft, x queue.Receipt) error {
		return func(d *draft, x queue.Receipt) error {
			_, err := d.retry(x, o)
			return err
		}
	}
	extend := func(lease time.Duration) func(d *draft, x queue.Receipt) error {
		return func(d *draft, x queue.Receipt) error {
			_, err := d.extend(x, lease)
			return err
		}
	}
	fail := func(cause, as string) func(d *draft, x queue.Receipt) error {
		return func(d *draft, x queue.Receipt) error {
			_, err := d.fail(x, cause, as)
			return err
		}
	}
	reap := func(o queue.ReapOptions, dead deaths) func(d *draft, x queue.Receipt) error {
		return func(d *draft, x queue.Receipt) error {
			s, _ := d.st.queue(roomQueue).find(roomID)
			if s == nil || s.claimed == nil || o.MaxLapses == 1 && strings.HasPrefix(s.claimed.lastError, "lapsed") {
				return errUnreadable // nor is that text put into another one for ever
			}
			if dead == nil {
				o.Receipt = &x
			}
			_, err := d.reap(o, dead)
			return err
		}
	}
	calls := []roomCall{
		{"release", func(d *draft, x queue.Receipt) error { return d.release(x, 0) }},
		{"snooze", func(d *draft, x queue.Receipt) error { return d.release(x, queue.MaxLease) }},
		{"retry", retry(queue.RetryOptions{MaxFailures: maxNumber, Cause: roomCause})},
		{"retry later", retry(queue.RetryOptions{MaxFailures: maxNumber, Delay: queue.MaxLease, Cause: roomCause})},
		{"retry later, without a cause", retry(queue.RetryOptions{MaxFailures: maxNumber, Delay: queue.MaxLease})},
		{"retry at the cap", retry(queue.RetryOptions{MaxFailures: 1, Cause: roomCause})},
		{"retry at the cap, without a cause", retry(queue.RetryOptions{MaxFailures: 1})},
		{"extend", extend(queue.MaxLease)},
		{"extend for ever", extend(queue.NoDeadline)},
		{"fail", fail(roomCause, "")},
		{"fail as", fail(roomCause, strings.Repeat("f", queue.MaxNameBytes))},
		{"fail as, without a cause", fail("", strings.Repeat("f", queue.MaxNameBytes))},
		{"replace payload", func(d *draft, x queue.Receipt) error {
			err := d.replacePayload(x, []byte("2"))
			if s, _ := d.st.queue(roomQueue).find(roomID); err == nil { // a large one, or far in its object
				s.claimed.off, s.claimed.size = maxBatchObject, 16<<20
			}
			return err
		}},
		{"reap by proof", reap(queue.ReapOptions{Limit: 1, MaxLapses: maxNumber}, roomProof)},
		{"reap by proof, at the cap", reap(queue.ReapOptions{Limit: 1, MaxLapses: 1}, roomProof)},
		{"reap one", reap(queue.ReapOptions{MaxLapses: maxNumber}, nil)},
		{"reap one, at the cap", reap(queue.ReapOptions{MaxLapses: 1}, nil)},
		{"damage", func(d *draft, _ queue.Receipt) error {
			c, err := d.claim(roomQueue, roomTaking(time.Minute, false, ""), func(*ref) ([]byte, string, error) {
				return nil, strings.Repeat("damage ", 100), nil
			})
			if len(c.Damaged) == 0 {
				return errUnreadable
			}
			return err
		}},
		{"reprocess", func(d *draft, _ queue.Receipt) error {
			if e := roomEvidence(d.st); e != nil {
				return d.reprocess("", e.name)
			}
			return errUnreadable
		}},
		{"later", func(d *draft, _ queue.Receipt) error { // what was scheduled becomes due
			if s, _ := d.st.queue(roomQueue).find(roomID); s != nil && s.claimed != nil && s.claimed.notBefore != 0 {
				c := *s.claimed
				c.notBefore = 1
				d.queue(roomQueue).put(roomID, s.pending, &c)
				return nil
			}
			return errUnreadable
		}},
	}
	for _, t := range []taking{
		roomTaking(queue.MaxLease, true, roomWord), roomTaking(queue.MaxLease, false, ""),
		roomTaking(queue.NoDeadline, true, ""), roomTaking(queue.NoDeadline, false, roomWord),
	} {
		name := fmt.Sprintf(" for %s, held %v, label %.2q", t.lease, !t.holder.zero(), t.label)
		calls = append(calls, roomCall{"claim" + name, func(d *draft, _ queue.Receipt) error {
			c, err := d.claim(roomQueue, t, roomLoad)
			if len(c.Deliveries) == 0 {
				return errUnreadable
			}
			return err
		}}, roomCall{"take over" + name, func(d *draft, _ queue.Receipt) error {
			_, err := d.load(roomQueue, roomID, t, roomLoad, roomProof)
			return err
		}})
	}
	return calls
}

// A roomNode is a state that some calls lead to.
type roomNode struct {
	st   *state
	path []string
	size int // what the message takes in state.json
}

// roomEvidence is the message among the failed, beside the one that has its name.
func roomEvidence(st *state) *failedEntry {
	for _, f := range st.failed {
		for _, e := range f.entries {
			if e.id == roomID {
				return e
			}
		}
	}
	return nil
}

func newRoomNode(st *state, path []string) roomNode {
	n := roomNode{st: st, path: path}
	if s, _ := st.queue(roomQueue).find(roomID); s != nil {
		n.size = len(appendSlot(nil, s))
	} else if e := roomEvidence(st); e != nil {
		n.size = len(appendEntry(nil, e))
	}
	return n
}

// shape tells apart what takes other sizes or allows other calls.
func (n roomNode) shape() string {
	if s, _ := n.st.queue(roomQueue).find(roomID); s != nil && s.claimed != nil {
		c := s.claimed
		l := c.lease
		return fmt.Sprint(n.size, c.returned, c.notBefore, written(c.lastError), c.size, c.attempts > 0, l.deadline, l.bootID, l.holder.zero(), written(l.label), l.fence == 0)
	}
	if e := roomEvidence(n.st); e != nil {
		return fmt.Sprint(n.size, e.name, written(e.ref.lastError), e.ref.size, e.ref.attempts > 0)
	}
	return fmt.Sprint(n.size)
}

// A roomGraph has every node that calls lead to, each shape once, and where they lead.
type roomGraph struct {
	nodes []roomNode
	at    map[string]int // by shape
	next  [][]int
}

func (g *roomGraph) add(n roomNode) int {
	shape := n.shape()
	i, known := g.at[shape]
	if !known {
		i = len(g.nodes)
		g.at[shape] = i
		g.nodes = append(g.nodes, n)
	}
	return i
}

// reach explores from some nodes on, in a crowded state or in one that has room.
func reach(calls []roomCall, tight bool, from ...roomNode) *roomGraph {
	g := &roomGraph{at: map[string]int{}}
	for _, n := range from {
		g.add(n)
	}
	for i := 0; i < len(g.nodes); i++ {
		n := g.nodes[i]
		var x queue.Receipt
		if s, _ := n.st.queue(roomQueue).find(roomID); s != nil && s.claimed != nil {
			x = receiptOf(n.st.store, roomQueue, roomID, s.claimed)
		}
		var leads []int
		for _, c := range calls {
			d := newDraft(n.st, namedToken("next"), roomNow, 0)
			d.tight = tight
			if c.do(d, x) != nil {
				continue
			}
			many(d.st)
			leads = append(leads, g.add(newRoomNode(d.st, append(slices.Clip(n.path), c.name))))
		}
		g.next = append(g.next, leads)
	}
	return g
}

// largest gives, for each node, the node of the largest size that is reached from it.
func (g *roomGraph) largest() []int {
	best := make([]int, len(g.nodes))
	for i := range best {
		best[i] = i
	}
	for changed := true; changed; {
		changed = false
		for i := len(best) - 1; i >= 0; i-- {
			for _, j := range g.next[i] {
				if g.nodes[best[j]].size > g.nodes[best[i]].size {
					best[i], changed = best[j], true
				}
			}
		}
	}
	return best
}

// roomNow is so late, and so long after the boot, that times are long.
var roomNow = instant{
	Wall: time.UnixMilli(maxMillis).AddDate(-200, 0, 0), BootID: rigStart.BootID, Boot: 100 * 365 * 24 * time.Hour,
}

// many makes the counts of a claimed message as long as they can become: a hundred
// million claims of each kind.
func many(st *state) {
	counts := func(r *ref) {
		if r.attempts > 0 {
			r.attempts, r.excused, r.lapses = 999_999_999, 100_000_000, 100_000_000
		}
	}
	if s, _ := st.queue(roomQueue).find(roomID); s != nil && s.claimed != nil {
		counts(&s.claimed.ref)
	}
	if e := roomEvidence(st); e != nil {
		counts(&e.ref)
	}
}

func TestTransitionRoomToSettle(t *testing.T) {
	q := &queueState{name: roomQueue, next: 10}
	q.slots = []*slot{{id: roomID, pending: &ref{
		gen: generation{namedToken("commit"), 99_999}, object: namedToken("object"), size: 1, seq: 5, enqueued: 1, key: roomWord,
	}}}
	q.buildLine()
	start := newRoomNode(&state{
		store: namedToken("store"), fence: 999_999_999_999, queues: []*queueState{q},
		// The message's own failed name is taken: a cap finds a longer one.
		failed: []*failedSpace{{entries: []*failedEntry{{name: roomID, queue: roomQueue, id: "other"}}}},
	}, nil)
	promised := settleRoom + len(roomQueue)
	calls := roomCalls()

	// Whatever was done while there was room, with the longest texts, is where the
	// crowd may begin.
	before := reach(calls, false, start).nodes
	crowded := reach(calls, true, before...)
	largest := crowded.largest()
	most := 0
	for i, n := range before {
		end := crowded.nodes[largest[i]]
		grown := end.size - n.size
		if most = max(most, grown); grown > promised {
			t.Errorf("a message grows by %d bytes, promised are %d: from\n%s\nafter %q, to\n%s\nsuch as after %q", grown, promised, n.shape(), n.path, end.shape(), end.path)
		}
	}
	t.Logf("%d states to begin with and %d to come to: a message grows by %d bytes at most, promised are %d", len(before), len(crowded.nodes), most, promised)
	if len(before) < 50 || len(crowded.nodes) < 200 || most < promised/2 {
		t.Error("this shows nothing")
	}
}

// A crowded draft cuts the texts and does what is asked all the same.
func TestTransitionCrowdedTexts(t *testing.T) {
	long := strings.Repeat("é", 400)
	short := strings.Repeat("é", crowdedError/2)
	for name, c := range map[string]struct {
		do   func(r *rig, x queue.Receipt) error
		want string // the last error then
	}{
		"retry": {func(r *rig, x queue.Receipt) error {
			_, err := r.retry(x, queue.RetryOptions{Cause: long})
			return err
		}, short},
		"retry without a cause": {func(r *rig, x queue.Receipt) error {
			_, err := r.retry(x, queue.RetryOptions{})
			return err
		}, "before"},
		"retry at the cap": {func(r *rig, x queue.Receipt) error {
			_, err := r.retry(x, queue.RetryOptions{MaxFailures: 1, Cause: long})
			return err
		}, short},
		"fail": {func(r *rig, x queue.Receipt) error { _, err := r.fail(x, long, ""); return err }, short},
		"reap at the cap": {func(r *rig, x queue.Receipt) error {
			_, err := r.reapAll(queue.ReapOptions{Receipt: &x, MaxLapses: 1})
			return err
		}, "lapsed 1 times without settlement; last error: before"},
		"release": {func(r *rig, x queue.Receipt) error { return r.release(x) }, "before"},
	} {
		for _, crowd := range []string{"tight", "at the bound"} {
			t.Run(name+"/"+crowd, func(t *testing.T) {
				r := newRig(t)
				r.put("m")
				_, err := r.retry(r.take("m").Receipt, queue.RetryOptions{Cause: "before"})
				r.settled(err)
				d := r.open()
				if d.limit = d.bytes; crowd == "tight" {
					d.limit, d.tight = 0, true
				}
				x, err := r.load("mail", "m", oneMinute)
				r.is(err, nil)
				if label := r.slot().claimed.lease.label; label != "" {
					t.Errorf("the label is %q", label)
				}
				r.is(c.do(r, x.Receipt), nil)
				got := ""
				if s := r.slot(); s.claimed != nil {
					got = s.claimed.lastError
				} else {
					got = r.st().failedEntry("", "m").ref.lastError
				}
				if got != c.want {
					t.Errorf("the last error is %q, want %q", got, c.want)
				}
				r.commit()
			})
		}
	}
}
