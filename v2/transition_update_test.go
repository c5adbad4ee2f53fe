//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// Changes for updates. Claims name no holder: there is no process file behind a rig.
func enqueueOf(name, id string) queue.Change {
	return queue.EnqueueChange{Queue: name, Message: queue.Message{ID: id, Payload: fmt.Appendf(nil, `{"id":%q}`, id)}}
}

func claimOn(name string, n int) queue.Change {
	return queue.ClaimChange{Queue: name, Options: queue.ClaimOptions{Max: n, Lease: time.Minute, WithoutHolder: true}}
}

// Settle this, enqueue those, claim the next: the worker's step and what it answers.
func TestTransitionUpdate(t *testing.T) {
	r := newRig(t)
	x := r.stand("leased")
	other := r.take("bystander").Receipt
	r.put("next")
	before := r.counters()
	revision := r.base.revision
	out, err := r.update(
		queue.AckChange{Receipt: x},
		enqueueOf("news", "follow-up"),
		enqueueOf("mail", "m"), // free again
		claimOn("mail", 9),
		claimOn("news", 1),
		queue.ReleaseChange{Receipt: other, Options: queue.ReleaseOptions{Delay: time.Hour}},
		queue.CursorChange{Queue: "mail", Cursor: "offset=18"},
		claimOn("unknown", 1),
	)
	r.is(err, nil)
	if len(out) != 8 {
		t.Fatalf("%d outcomes", len(out))
	}
	if e := out[1].Enqueued; e.Queue != "news" || e.ID != "follow-up" || e.Revision != revision+1 || e.Kept {
		t.Errorf("enqueued %+v", e)
	}
	var ids []string
	for _, d := range out[3].Claimed.Deliveries {
		ids = append(ids, d.Receipt.ID)
	}
	if strings.Join(ids, " ") != "next m" || string(out[3].Claimed.Deliveries[1].Payload) != `{"id":"m"}` {
		t.Errorf("claimed %q: %+v", ids, out[3])
	}
	if d := out[4].Claimed.Deliveries; len(d) != 1 || d[0].Receipt.Generation != out[1].Enqueued.Generation || d[0].Fence != 5 {
		t.Errorf("claimed %+v", out[4])
	}
	if c := out[7].Claimed; c.Deliveries != nil || c.Damaged != nil || r.st().queue("unknown") != nil {
		t.Errorf("claimed %+v", c)
	}
	r.counted(before, queue.Counters{Completed: 1, Enqueued: 1, Claimed: 2, Released: 1})
	r.commit()
	if r.base.revision != revision+1 || r.base.queue("mail").cursor != "offset=18" {
		t.Errorf("revision %d, cursor %q", r.base.revision, r.base.queue("mail").cursor)
	}
	r.settled(r.ack(out[3].Claimed.Deliveries[1].Receipt)) // good outside of it
}

// The outcome of each kind of change stands at its index.
func TestTransitionUpdateOutcomes(t *testing.T) {
	r := newRig(t)
	held := map[string]queue.Receipt{}
	for _, id := range []string{"ack", "release", "retry", "cap", "extend", "fail"} {
		r.put(id)
		held[id] = r.take(id).Receipt
	}
	r.reap("mail", "extend")
	r.commit()
	out, err := r.update(
		queue.FailChange{Receipt: held["fail"], Options: queue.FailOptions{As: "x", Cause: "no"}},
		queue.ExtendChange{Receipt: held["extend"], Lease: time.Hour},
		queue.RetryChange{Receipt: held["retry"], Options: queue.RetryOptions{Delay: time.Minute, Cause: "smtp: 450"}},
		queue.RetryChange{Receipt: held["cap"], Options: queue.RetryOptions{MaxFailures: 1, Cause: strings.Repeat("x", 2000)}},
		queue.ReleaseChange{Receipt: held["release"]},
		queue.AckChange{Receipt: held["ack"]},
		queue.CursorChange{Queue: "new", Cursor: "1"},
	)
	r.is(err, nil)
	if out[0].Failed != "x" || !out[1].Deadline.Equal(r.now.Wall.Add(time.Hour)) {
		t.Errorf("got %+v and %+v", out[0], out[1])
	}
	r.is(r.returned(out[2].Returned, nil, queue.Returned{Queue: "mail", ID: "retry", Attempt: 1, NotBefore: r.now.Wall.Add(time.Minute)}), nil)
	r.is(r.returned(out[3].Returned, nil, queue.Returned{Queue: "mail", ID: "cap", Attempt: 1, FailedName: "cap"}), nil)
	if e := r.st().failedEntry("", "cap"); len(e.ref.lastError) != queue.MaxErrorBytes {
		t.Errorf("a last error of %d bytes", len(e.ref.lastError))
	}
	r.gauged(1, 1, 0, 1, 2)
	r.commit()
	if r.base.queue("new").cursor != "1" {
		t.Error("no cursor")
	}
}

// One refusal, wherever it stands, and none of the changes was made.
func TestTransitionUpdateAllOrNothing(t *testing.T) {
	type scene struct {
		good, lost, reaped queue.Receipt
	}
	refusals := map[string]struct {
		change func(s scene) queue.Change
		err    error
	}{
		"stale":     {func(s scene) queue.Change { return queue.AckChange{Receipt: s.lost} }, queue.ErrStale},
		"duplicate": {func(scene) queue.Change { return enqueueOf("mail", "taken") }, queue.ErrDuplicate},
		"its own":   {func(s scene) queue.Change { return queue.AckChange{Receipt: s.good} }, queue.ErrGone},
		"failed exists": {func(s scene) queue.Change {
			return queue.FailChange{Receipt: s.reaped, Options: queue.FailOptions{As: "evidence"}}
		}, queue.ErrFailedExists},
		"unreadable":    {func(scene) queue.Change { return claimOn("broken", 1) }, errUnreadable},
		"another store": {func(s scene) queue.Change { s.good.Store = "elsewhere"; return queue.AckChange{Receipt: s.good} }, queue.ErrInvalidReceipt},
	}
	for name, refusal := range refusals {
		for index := 1; index <= 4; index++ { // how many changes come before it
			for _, begun := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/after %d/draft begun %v", name, index, begun), func(t *testing.T) {
					r := newRig(t)
					var s scene
					r.put("evidence")
					_, err := r.fail(r.take("evidence").Receipt, "no", "")
					r.settled(err)
					s.lost = r.stand("returned")
					for _, id := range []string{"taken", "good", "hurt"} {
						r.put(id)
					}
					s.good = r.take("good").Receipt
					r.put("reaped")
					s.reaped = r.take("reaped").Receipt
					r.reap("mail", "reaped")
					_, err = r.enqueue("broken", arrivalOf("b", queue.Refuse))
					r.settled(err)
					b, _ := r.base.queue("broken").find("b")
					r.broken[spot{b.pending.object, b.pending.off}] = errUnreadable
					hurt, _ := r.base.queue("mail").find("hurt")
					r.damage(hurt.pending)
					if begun {
						_, err := r.enqueue("mail", arrivalOf("before", queue.Refuse))
						r.is(err, nil)
					}
					changes := []queue.Change{
						queue.AckChange{Receipt: s.good},
						claimOn("mail", 9), // and what is damaged goes to failed
						enqueueOf("new", "n"),
						queue.CursorChange{Queue: "news", Cursor: "c"},
					}[:index]
					changes = append(changes, refusal.change(s), enqueueOf("mail", "never"))
					if name == "failed exists" && index > 1 { // the claim has taken it by then
						changes[index] = enqueueOf("mail", "taken")
						refusal.err = queue.ErrDuplicate
					}
					d := r.open()
					before := traceOf(d)
					out, err := r.update(changes...) // apply looks for a trace
					var refused *queue.UpdateError
					if r.is(err, refusal.err); !errors.As(err, &refused) || refused.Index != index || out != nil {
						t.Fatalf("got %+v, %v; want change %d refused", out, err, index)
					}
					if d.dirty != begun {
						t.Errorf("dirty: %v", d.dirty)
					}
					// What comes after it is as if it had never been.
					e, err := r.enqueue("mail", arrivalOf("after", queue.Refuse))
					r.is(err, nil)
					if want := (generation{d.st.commit, before.index}).String(); e.Generation != want {
						t.Errorf("the next generation is %s, want %s", e.Generation, want)
					}
					c, err := r.claim("mail", taking{max: 1, lease: time.Minute})
					if r.is(err, nil); len(c.Deliveries) != 1 || c.Deliveries[0].Fence != before.fence+1 {
						t.Errorf("claimed %+v, want the fence %d", c, before.fence+1)
					}
					r.commit()
				})
			}
		}
	}
}

// What is wrong with a change by itself is refused before anything is decided.
func TestTransitionUpdateChecks(t *testing.T) {
	r := newRig(t)
	x := r.stand("leased")
	long := time.Duration(1<<63 - 1)
	for i, c := range []struct {
		change queue.Change
		err    error
	}{
		{nil, queue.ErrInvalid},
		{enqueueOf("mail", "no/id"), queue.ErrInvalidName},
		{queue.EnqueueChange{Queue: "mail", Message: queue.Message{ID: "n", Payload: []byte("{")}}, queue.ErrInvalidPayload},
		{queue.EnqueueChange{Queue: "..", Message: queue.Message{ID: "n", Payload: []byte("1")}}, queue.ErrInvalidName},
		{claimOn("mail", queue.MaxClaim+1), queue.ErrInvalid},
		{queue.ReleaseChange{Receipt: x, Options: queue.ReleaseOptions{Delay: -1}}, queue.ErrInvalid},
		{queue.RetryChange{Receipt: x, Options: queue.RetryOptions{Delay: long}}, queue.ErrInvalid},
		{queue.ExtendChange{Receipt: x, Lease: -5}, queue.ErrInvalid},
		{queue.FailChange{Receipt: x, Options: queue.FailOptions{As: "a~b"}}, queue.ErrInvalidName},
		{queue.CursorChange{Queue: "mail", Cursor: strings.Repeat("c", queue.MaxCursorBytes+1)}, queue.ErrTooLarge},
	} {
		r.commit()
		_, err := r.update(queue.AckChange{Receipt: x}, c.change)
		var refused *queue.UpdateError
		if r.is(err, c.err); !errors.As(err, &refused) || refused.Index != 1 || r.d != nil {
			t.Errorf("change %d: %v", i, err)
		}
	}
	r.is(r.ack(x), nil)
}

// Several changes of one message: each is decided on what those before it made.
func TestTransitionUpdateSameMessage(t *testing.T) {
	r := newRig(t)
	x := r.stand("leased")
	out, err := r.update(
		queue.RetryChange{Receipt: x, Options: queue.RetryOptions{Cause: "smtp: 450"}},
		claimOn("mail", 9),
	)
	r.is(err, nil)
	if d := out[1].Claimed.Deliveries; len(d) != 2 || d[1].Receipt.ID != "m" || d[1].Receipt.Attempt != 2 || d[1].Failures != 1 || d[1].LastError != "smtp: 450" {
		t.Errorf("claimed %+v", out[1])
	}
	r.commit()
	x.Attempt = 2
	_, err = r.update(queue.ExtendChange{Receipt: x, Lease: time.Hour}, queue.AckChange{Receipt: x}, enqueueOf("mail", "m"), queue.AckChange{Receipt: x})
	var refused *queue.UpdateError
	if r.is(err, queue.ErrGone); !errors.As(err, &refused) || refused.Index != 3 {
		t.Errorf("%v", err)
	}
	r.lost(refused.Err, x, queue.ErrGone, 0)
	r.is(r.ack(x), nil)
	r.commit()
}
