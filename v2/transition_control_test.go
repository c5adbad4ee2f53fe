//go:build unix

package holdfast

import (
	"strings"
	"testing"

	"example.com/holdfast/queue"
)

func TestTransitionPause(t *testing.T) {
	r := newRig(t)
	x := r.stand("leased")
	other := r.take("bystander").Receipt
	r.put("waiting")
	for _, c := range []struct {
		name          string
		paused, dirty bool
	}{{"mail", false, false}, {"unknown", false, false}, {"mail", true, true}} {
		if r.pause(c.name, c.paused); r.d.dirty != c.dirty {
			t.Errorf("pause %s %v: dirty %v", c.name, c.paused, r.d.dirty)
		}
		r.commit()
	}
	if r.pause("mail", true); r.d.dirty {
		t.Error("paused twice: dirty")
	}
	r.commit()
	status := statusOf(r, r.st(), nil, r.now).Queues["mail"]
	if !status.Paused || status.Ready != 1 || r.base.queue("unknown") != nil {
		t.Errorf("status %+v", status)
	}
	if yes, _ := r.base.due(nil, r.now); yes {
		t.Error("a paused queue is due")
	}
	// Only claims find nothing; enqueue, settling and Load go on, plain or fair.
	if plain, fair := r.claimIDs(9), r.fairly(9); plain != "" || fair != "" {
		t.Errorf("claimed %q and %q", plain, fair)
	}
	r.put("m2")
	r.settled(r.ack(x))
	_, err := r.retry(other, queue.RetryOptions{})
	r.settled(err)
	if d := r.take("m2"); d.Receipt.ID != "m2" {
		t.Errorf("loaded %+v", d)
	}
	r.pause("mail", false)
	r.commit()
	if got := r.claimIDs(9); got != "bystander waiting" {
		t.Errorf("delivered %q", got)
	}
}

// An unknown queue can be paused before its first message.
func TestTransitionPauseAhead(t *testing.T) {
	r := newRig(t)
	r.pause("mail", true)
	r.commit()
	r.put("m")
	if got := r.claimIDs(9); got != "" {
		t.Errorf("delivered %q", got)
	}
}

// What fails from now on goes to the namespace, what has failed stays, and names are
// shared by the queues of one namespace only.
func TestTransitionNamespace(t *testing.T) {
	r := newRig(t)
	r.stand("failed")
	r.setNamespace("mail", "")
	if r.d.dirty {
		t.Error("the default namespace again: dirty")
	}
	r.setNamespace("unknown", "")
	if r.d.dirty || r.st().queue("unknown") != nil {
		t.Error("the default namespace of an unknown queue: dirty")
	}
	r.setNamespace("mail", "aside")
	r.setNamespace("news", "aside") // which is not there yet
	r.commit()
	if r.setNamespace("mail", "aside"); r.d.dirty {
		t.Error("the same namespace again: dirty")
	}
	status := statusOf(r, r.st(), nil, r.now).Queues
	if status["mail"].FailedNamespace != "aside" || status["news"].FailedNamespace != "aside" || status["mail"].Failed != 1 {
		t.Errorf("status %+v", status)
	}
	r.put("m")
	name, err := r.fail(r.take("m").Receipt, "again", "")
	if r.settled(err); name != "m" || r.st().failedEntry("aside", "m") == nil || r.st().failedEntry("", "m").ref.lastError != "no" {
		t.Errorf("failed as %q", name)
	}
	_, err = r.enqueue("news", arrivalOf("m", queue.Refuse))
	r.settled(err)
	d, err := r.load("news", "m", oneMinute)
	r.settled(err)
	_, err = r.fail(d.Receipt, "no", "")
	r.is(err, queue.ErrFailedExists)
	got, err := r.retry(d.Receipt, queue.RetryOptions{MaxFailures: 1})
	if r.settled(err); got.FailedName != "m~"+d.Receipt.Generation || r.st().failedEntry("aside", got.FailedName) == nil {
		t.Errorf("retried: %+v", got)
	}
	r.setNamespace("mail", "")
	r.commit()
	r.put("m")
	got, err = r.retry(r.take("m").Receipt, queue.RetryOptions{MaxFailures: 1})
	if r.settled(err); r.st().failedEntry("", got.FailedName) == nil || got.FailedName == "m" {
		t.Errorf("retried: %+v", got)
	}
}

func TestTransitionCursor(t *testing.T) {
	r := newRig(t)
	r.is(r.setCursor("mail", ""), nil)
	if r.d.dirty || r.st().queue("mail") != nil {
		t.Error("no cursor of an unknown queue: dirty")
	}
	for _, cursor := range []string{"1", "2", "2", "", strings.Repeat("\x00", queue.MaxCursorBytes), "é"} {
		before := ""
		if q := r.base.queue("mail"); q != nil {
			before = q.cursor
		}
		r.is(r.setCursor("mail", cursor), nil)
		if q := r.st().queue("mail"); q.cursor != cursor || r.d.dirty != (cursor != before) {
			t.Errorf("cursor %.10q, dirty %v; want %.10q after %.10q", q.cursor, r.d.dirty, cursor, before)
		}
		if d := r.d; d.dirty {
			if r.commit(); r.size > d.bytes+int64(len(`,"cursor":""`)) { // the field itself is in queueBytes
				t.Errorf("the state takes %d bytes and was counted as %d", r.size, d.bytes)
			}
		}
	}
}

// A cursor grows the state: in a full one it is refused, for settling has the room.
func TestTransitionCursorFull(t *testing.T) {
	r := newRig(t)
	r.put("m")
	for _, c := range []struct {
		name, cursor string
		takes        int64
	}{{"mail", "é\"", 4}, {"unknown", "é\"", 4 + int64(len("unknown")) + queueBytes}} {
		for short, want := range map[int64]error{0: nil, 1: queue.ErrFull} {
			d := r.open()
			d.limit = d.bytes + c.takes - short
			if r.is(r.setCursor(c.name, c.cursor), want); d.dirty != (want == nil) { // apply looks for a trace
				t.Errorf("%s: dirty %v", c.name, d.dirty)
			}
			r.drop()
		}
	}
}

// A new queue grows the state, and a failed namespace must find room when the first
// message fails; what is there can be paused and resumed in a full state.
func TestTransitionControlFull(t *testing.T) {
	r := newRig(t)
	r.put("m")
	full := func(d *draft, more int64) { d.limit = max(1, d.bytes+more) }
	owes := int64(settleRoom + len("mail"))
	pause := func(name string, paused bool) func(d *draft) error {
		return func(d *draft) error { return d.pause(name, paused) }
	}
	namespace := func(name, space string) func(d *draft) error {
		return func(d *draft) error { return d.setNamespace(name, space) }
	}
	for _, c := range []struct {
		what  string
		limit func(d *draft)
		do    func(d *draft) error
		want  error
	}{
		{"pausing what is there", func(d *draft) { full(d, -100) }, pause("mail", true), nil},
		{"pausing what is not", func(d *draft) { full(d, queueBytes+4) }, pause("news", true), nil},
		{"pausing what is not, short", func(d *draft) { full(d, queueBytes+3) }, pause("news", true), queue.ErrFull},
		{"resuming what is not", func(d *draft) { full(d, -100) }, pause("news", false), nil},
		{"a namespace", func(d *draft) { d.limit = recoveryRoom + owes + spaceRoom("aside") }, namespace("mail", "aside"), nil},
		{"a namespace, no room to fail into it", func(d *draft) { d.limit = recoveryRoom + owes + spaceRoom("aside") - 1 }, namespace("mail", "aside"), queue.ErrFull},
		{"the namespace that it has", func(d *draft) { full(d, -100) }, namespace("mail", ""), nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := r.open()
			c.limit(d)
			before := len(d.st.queues)
			if err := r.apply(c.what, c.do); c.want != nil { // apply looks for a trace
				if r.is(err, c.want); len(d.st.queues) != before {
					t.Errorf("%d queues", len(d.st.queues))
				}
			} else {
				r.is(err, nil)
			}
			r.drop()
		})
	}
}

// The room for a failed namespace is more than it takes when its first message fails.
func TestTransitionNamespaceRoom(t *testing.T) {
	r := newRig(t)
	space := strings.Repeat("long/", 100) + "namespace"
	r.put("m")
	r.setNamespace("mail", space)
	owed := r.d.owed()
	r.commit()
	size := r.size
	x := r.take("m").Receipt
	r.open().tight = true
	_, err := r.retry(x, queue.RetryOptions{MaxFailures: 1, Cause: strings.Repeat("x", 1000)})
	if r.settled(err); r.size > size+owed {
		t.Errorf("the state grew from %d to %d bytes, %d were promised", size, r.size, owed)
	}
}
