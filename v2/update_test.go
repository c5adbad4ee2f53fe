//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// On a full disk an update goes on that only settles, extends, reaps and purges, and
// takes the reserve for it.
func TestUpdateSettlesOnAFullDisk(t *testing.T) {
	f := newFullStore(t, Options{MinFreeBytes: -1, plain: true})
	f.disk.SetFree(0)
	out, err := f.Update(t.Context(),
		queue.ExtendChange{Receipt: f.held[0], Lease: time.Hour},
		queue.AckChange{Receipt: f.held[1]},
		queue.ReleaseChange{Receipt: f.held[2]},
		queue.RetryChange{Receipt: f.held[3], Options: queue.RetryOptions{Cause: "no"}},
		queue.FailChange{Receipt: f.held[4], Options: queue.FailOptions{Cause: "no"}},
		queue.ReapChange{Receipt: f.held[5], MaxLapses: 1},
		queue.PurgeChange{FailedName: "bad"},
	)
	mustDo(t, err)
	if out[4].Failed != f.held[4].ID || out[5].Returned.FailedName != f.held[5].ID {
		t.Errorf("outcomes %+v", out)
	}
	if f.hasReserve() {
		t.Error("the reserve was not given up")
	}
	st, err := f.Status(t.Context(), queue.StatusOptions{})
	mustDo(t, err)
	if q := st.Queues["mail"]; q.Processing != 1 || q.Pending != 6 || q.Failed != 2 || q.Counters.Completed != 1 || q.Counters.Purged != 1 {
		t.Errorf("status %+v", q)
	}
}

// fullChanges are the changes that need room; a holds a claim.
var fullChanges = map[string]func(a queue.Receipt) queue.Change{
	"enqueue": func(queue.Receipt) queue.Change { return queue.EnqueueChange{Queue: "mail", Message: small("more")} },
	"claim":   func(queue.Receipt) queue.Change { return queue.ClaimChange{Queue: "mail"} },
	"load":    func(queue.Receipt) queue.Change { return queue.LoadChange{Queue: "mail", ID: "m009"} },
	"replace payload": func(a queue.Receipt) queue.Change {
		return queue.ReplacePayloadChange{Receipt: a, Payload: []byte("2")}
	},
	"reprocess": func(queue.Receipt) queue.Change { return queue.ReprocessChange{FailedName: "bad"} },
	"cursor":    func(queue.Receipt) queue.Change { return queue.CursorChange{Queue: "mail", Cursor: "1"} },
}

// One change that needs room, and the whole update is refused, the settlement beside it
// too; by itself that is made.
func TestUpdateNeedsRoomOnAFullDisk(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(fullChanges)) {
		t.Run(name, func(t *testing.T) {
			f := newFullStore(t, Options{MinFreeBytes: -1, plain: true})
			f.disk.SetFree(0)
			before := f.disk.ReadRaw(inSim(stateFile))
			ack, other := queue.AckChange{Receipt: f.held[0]}, fullChanges[name](f.held[1])
			for _, changes := range [][]queue.Change{{other}, {ack, other}, {other, ack}} {
				_, err := f.Update(t.Context(), changes...)
				if !errors.Is(err, queue.ErrFull) || !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("%d changes: %v, want ErrFull", len(changes), err)
				}
			}
			if after := f.disk.ReadRaw(inSim(stateFile)); string(after) != string(before) || !f.hasReserve() {
				t.Errorf("a refused update left a trace; reserve %v", f.hasReserve())
			}
			mustDo(t, second(f.Update(t.Context(), ack)))
			f.disk.SetFree(1 << 20)
			mustEnqueue(t, f.Store, "mail", small("again"))
			mustDo(t, second(f.Update(t.Context(), other)))
		})
	}
}

// A load of a damaged message refuses nothing: the message goes to failed in the commit
// of the other changes, and with them it stays where it was when one is refused.
func TestUpdateLoadDamaged(t *testing.T) {
	r := newRig(t)
	x := r.stand("leased") // m
	for _, id := range []string{"hurt", "whole"} {
		r.put(id)
	}
	hurt, _ := r.base.queue("mail").find("hurt")
	r.damage(hurt.pending)
	load := func(id string) queue.Change {
		return queue.LoadChange{Queue: "mail", ID: id, Options: queue.LoadOptions{WithoutHolder: true}}
	}
	_, err := r.update(load("hurt"), queue.AckChange{Receipt: x}, queue.AckChange{Receipt: x})
	r.is(err, queue.ErrGone)
	if s, _ := r.st().queue("mail").find("hurt"); s == nil || r.d.dirty {
		t.Error("the damaged message moved in an update that was refused")
	}
	out, err := r.update(load("hurt"), load("whole"), queue.AckChange{Receipt: x})
	r.is(err, nil)
	if c := out[0].Claimed; len(c.Deliveries) != 0 || len(c.Damaged) != 1 || c.Damaged[0].ID != "hurt" || c.Damaged[0].FailedName != "hurt" {
		t.Errorf("loaded %+v, want the damage", c)
	}
	if c := out[1].Claimed; len(c.Deliveries) != 1 || len(c.Damaged) != 0 || c.Deliveries[0].Receipt.ID != "whole" {
		t.Errorf("loaded %+v", c)
	}
	r.commit()
	if r.base.failedEntry("", "hurt") == nil {
		t.Error("no evidence")
	}
}

// A payload that cannot be read now refuses the whole update.
func TestUpdateLoadUnreadable(t *testing.T) {
	r := newRig(t)
	x := r.stand("leased")
	r.put("b")
	b, _ := r.base.queue("mail").find("b")
	r.broken[spot{b.pending.object, b.pending.off}] = errUnreadable
	_, err := r.update(queue.AckChange{Receipt: x}, queue.LoadChange{Queue: "mail", ID: "b", Options: queue.LoadOptions{WithoutHolder: true}})
	var refused *queue.UpdateError
	if r.is(err, errUnreadable); !errors.As(err, &refused) || refused.Index != 1 || r.d.dirty {
		t.Errorf("got %v, want change 1 refused", err)
	}
	r.is(r.ack(x), nil)
}

// An uncertain update carries the outcome of every change, and all of them are there
// once it is known to have happened.
func TestUpdateUncertain(t *testing.T) {
	_, s, w := onDisk(t)
	mustEnqueue(t, s, "mail", smalls(6)...)
	d := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 5})
	for i, id := range []string{"p", "q"} {
		mustDo(t, second(s.Fail(t.Context(), d[i].Receipt, queue.FailOptions{As: id})))
	}
	loseSpares(s)
	w.Arm(crashtest.FailMatching(lastSync(), syscall.EIO, 1))
	_, err := s.Update(t.Context(),
		queue.LoadChange{Queue: "mail", ID: "m005"},
		queue.ReplacePayloadChange{Receipt: d[2].Receipt, Payload: []byte("2")},
		queue.ReapChange{Receipt: d[3].Receipt},
		queue.ReprocessChange{FailedName: "p"},
		queue.PurgeChange{FailedName: "q"},
		queue.RetryChange{Receipt: d[4].Receipt, Options: queue.RetryOptions{MaxFailures: 1}},
	)
	w.Arm(crashtest.Plan{})
	var u *queue.UncertainError
	if !errors.As(err, &u) || len(u.Outcomes) != 6 {
		t.Fatalf("got %v with %+v, want an uncertain commit", err, u)
	}
	if yes, err := s.Resolve(t.Context(), u); !yes || err != nil {
		t.Fatalf("resolve: %v, %v", yes, err)
	}
	loaded := u.Outcomes[0].Claimed.Deliveries
	if len(loaded) != 1 || loaded[0].Receipt.ID != "m005" || u.Outcomes[2].Returned.Cause != queue.ByOperator || u.Outcomes[5].Returned.FailedName != "m004" {
		t.Errorf("outcomes %+v", u.Outcomes)
	}
	mustDo(t, s.Ack(t.Context(), loaded[0].Receipt), s.Release(t.Context(), d[2].Receipt, queue.ReleaseOptions{}))
	got := ""
	for _, d := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: 9}) {
		got += fmt.Sprintf("%s=%s ", d.Receipt.ID, d.Payload)
	}
	if want := `m000={"id":"m000"} m002=2 m003={"id":"m003"} `; got != want {
		t.Errorf("left are %s, want %s", got, want)
	}
}

// However many messages it is for, an update costs the syncs of one of its calls.
func TestUpdateSyncBudget(t *testing.T) {
	s, w := counted(t)
	mustEnqueue(t, s, "mail", smalls(200)...)
	var held []queue.Delivery
	each := func(change func(i int) queue.Change) (changes []queue.Change) {
		for i := range 100 {
			changes = append(changes, change(i))
		}
		return changes
	}
	for _, step := range []struct {
		name   string
		change func(i int) queue.Change
		syncs  int
	}{
		{"load", func(i int) queue.Change { return queue.LoadChange{Queue: "mail", ID: smalls(100)[i].ID} }, 1},
		{"replace payload", func(i int) queue.Change {
			return queue.ReplacePayloadChange{Receipt: held[i].Receipt, Payload: []byte("2")}
		}, 4},
		{"reap", func(i int) queue.Change { return queue.ReapChange{Receipt: held[i].Receipt} }, 1},
		{"extend", func(i int) queue.Change { return queue.ExtendChange{Receipt: held[i].Receipt} }, 1},
		{"fail", func(i int) queue.Change { return queue.FailChange{Receipt: held[i].Receipt} }, 1},
		{"reprocess", func(i int) queue.Change { return queue.ReprocessChange{FailedName: held[i].Receipt.ID} }, 1},
		{"load again", func(i int) queue.Change { return queue.LoadChange{Queue: "mail", ID: held[i].Receipt.ID} }, 1},
		{"fail again", func(i int) queue.Change { return queue.FailChange{Receipt: held[i].Receipt} }, 1},
		{"purge", func(i int) queue.Change { return queue.PurgeChange{FailedName: held[i].Receipt.ID} }, 1},
		{"claim", func(int) queue.Change { return queue.ClaimChange{Queue: "mail"} }, 1},
		{"ack", func(i int) queue.Change { return queue.AckChange{Receipt: held[i].Receipt} }, 1},
	} {
		changes := each(step.change)
		w.Arm(crashtest.Plan{})
		out, err := s.Update(t.Context(), changes...)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := syncsBesideNames(s, w); got != step.syncs {
			t.Errorf("%s: %d syncs, want %d\n%s", step.name, got, step.syncs, w.Trace())
		}
		if len(out[0].Claimed.Deliveries) > 0 {
			held = nil
			for _, o := range out {
				held = append(held, o.Claimed.Deliveries...)
			}
		}
	}
	if st, err := s.Status(t.Context(), queue.StatusOptions{}); err != nil || !st.Complete() {
		t.Errorf("status %+v, %v; want complete", st, err)
	}
}
