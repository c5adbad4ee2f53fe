//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// Pauses, failed namespaces and cursors take no room that accepted messages need to be
// claimed and to fail.
func TestControlLeavesRoomToSettle(t *testing.T) {
	long := strings.Repeat(strings.Repeat("n", 120)+"/", 8)
	for _, c := range []struct {
		name string
		fill func(s *Store, i int) error
	}{
		{"pause", func(s *Store, i int) error { return s.Pause(t.Context(), fmt.Sprint("typo", i)) }},
		{"namespaces of the queues", func(s *Store, i int) error {
			return s.SetFailedNamespace(t.Context(), fmt.Sprint("q", i), long+fmt.Sprint(i))
		}},
		{"namespaces of new queues", func(s *Store, i int) error {
			return s.SetFailedNamespace(t.Context(), fmt.Sprint("new", i), long+fmt.Sprint(i))
		}},
		{"cursors", func(s *Store, i int) error {
			_, err := s.Update(t.Context(), queue.CursorChange{Queue: fmt.Sprint("q", i), Cursor: strings.Repeat("\x01", queue.MaxCursorBytes)})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := newTestStore(t, &Options{MaxStateBytes: leastStateBytes})
			n := 0
			for ; ; n++ {
				_, err := s.Enqueue(t.Context(), fmt.Sprint("q", n), small("m"))
				if errors.Is(err, queue.ErrFull) || n == 100 {
					break
				}
				mustDo(t, err)
			}
			refused := 0
			for i := 0; refused < 3 && i < 10000; i++ {
				if err := c.fill(s, i); errors.Is(err, queue.ErrFull) {
					refused++
				} else {
					mustDo(t, err)
				}
			}
			if refused == 0 {
				t.Fatal("never refused")
			}
			for i := range n {
				d := mustClaim(t, s, fmt.Sprint("q", i), queue.ClaimOptions{})
				if _, err := s.Retry(t.Context(), d[0].Receipt, queue.RetryOptions{MaxFailures: 1, Cause: strings.Repeat("x", 2000)}); err != nil {
					t.Fatalf("settling %d of %d: %v", i, n, err)
				}
			}
		})
	}
}

// A wait is not answered by the failed commit of others, though it waited for that.
func TestWaitBesideAFailedCommit(t *testing.T) {
	for name, plan := range map[string]crashtest.Plan{
		"before the rename": crashtest.FailMatching(isStateSync, unix.EIO, 1),
		"uncertain":         crashtest.FailMatching(lastSync(), unix.EIO, 1),
	} {
		t.Run(name, func(t *testing.T) {
			d, s, w := onDisk(t)
			mustEnqueue(t, s, "other", small("x"))
			if name == "uncertain" {
				loseSpares(s)
			}
			w.Arm(plan)
			errs := together(t, d, s,
				func() error { _, err := s.Enqueue(t.Context(), "mail", small("a")); return err },
				func() error { _, err := s.Wait(t.Context(), queue.WaitOptions{Queues: []string{"third"}}); return err },
				func() error { return s.WaitDue(t.Context(), "other") },
				func() error { _, err := s.Status(t.Context(), queue.StatusOptions{}); return err },
			)
			if !errors.Is(errs[0], unix.EIO) || errs[1] != nil || errs[2] != nil || !errors.Is(errs[3], unix.EIO) {
				t.Errorf("enqueue %v; wait %v; due %v; status %v", errs[0], errs[1], errs[2], errs[3])
			}
		})
	}
}

// A message that is held back by nothing but one that is not due is left aside as that
// one is.
func TestWaitForAMessageBehindASnoozedOne(t *testing.T) {
	s, _ := newTestStore(t, nil)
	mustEnqueue(t, s, "mail", queue.Message{ID: "a", Key: "k", Payload: []byte("1")})
	d := mustClaim(t, s, "mail", queue.ClaimOptions{})
	mustDo(t, s.Release(t.Context(), d[0].Receipt, queue.ReleaseOptions{Delay: time.Hour}))
	mustEnqueue(t, s, "mail", queue.Message{ID: "b", Key: "k", Payload: []byte("1")})
	for _, id := range []string{"a", "b"} {
		_, err := s.Wait(t.Context(), queue.WaitOptions{Queues: []string{"mail"}, Message: id, IgnoreScheduled: true})
		mustDo(t, err)
	}
}

// What another program wrote leads to no state that nobody can read, and to no panic.
func TestForeignStates(t *testing.T) {
	st := &state{store: namedToken("store"), commit: namedToken("commit"), revision: 1, settings: Settings{OnDeadOwner: Stop}}
	claimOf := func(edit func(r *ref)) *claim {
		c := &claim{ref: ref{gen: generation{namedToken("g"), 0}, object: namedToken("o"), size: 1, attempts: 1}}
		edit(&c.ref)
		return c
	}
	for name, c := range map[string]*claim{
		"reaped, no lapse":         {ref: claimOf(func(*ref) {}).ref, returned: reaped},
		"leased, all excused":      claimOf(func(r *ref) { r.excused = 1 }),
		"leased, all lapsed":       claimOf(func(r *ref) { r.lapses = 1 }),
		"leased, none left of 3":   claimOf(func(r *ref) { r.attempts, r.excused, r.lapses = 3, 1, 2 }),
		"reaped, lapse is missing": {ref: claimOf(func(r *ref) { r.attempts, r.excused = 3, 1 }).ref, returned: reaped},
	} {
		t.Run(name, func(t *testing.T) {
			bad := *st
			bad.queues = []*queueState{{name: "mail", next: 1, slots: []*slot{{id: "m", claimed: c}}}}
			if _, err := decodeState(encodeState(nil, &bad), stateFile, st.store); !errors.Is(err, ErrCorrupt) {
				t.Errorf("decoded: %v", err)
			}
		})
	}
	t.Run("the last attempt", func(t *testing.T) {
		good := *st
		c := claimOf(func(r *ref) { r.attempts = maxNumber })
		c.returned = released
		good.queues = []*queueState{{name: "mail", next: 1, slots: []*slot{{id: "m", claimed: c}}}}
		good.queues[0].buildLine()
		d := newDraft(&good, namedToken("next"), instant{}, 0)
		load := func(*ref) ([]byte, string, error) { return []byte("1"), "", nil }
		if _, err := d.claim("mail", taking{max: 1}, load); !errors.Is(err, queue.ErrFull) {
			t.Errorf("claim: %v", err)
		}
		if _, err := d.load("mail", "m", taking{max: 1}, load, nil); !errors.Is(err, queue.ErrFull) {
			t.Errorf("load: %v", err)
		}
	})
	t.Run("the made name is taken", func(t *testing.T) {
		good := *st
		c := claimOf(func(*ref) {})
		other := func(name string) *failedEntry {
			return &failedEntry{name: name, queue: "mail", id: "m", ref: ref{gen: generation{namedToken(name), 0}, object: namedToken(name), size: 1}}
		}
		good.failed = []*failedSpace{{entries: []*failedEntry{other("m"), other("m~" + c.gen.String()), other("m~" + c.gen.String() + "-2")}}}
		good.queues = []*queueState{{name: "mail", next: 1, slots: []*slot{{id: "m", claimed: c}}}}
		good.queues[0].buildLine()
		d := newDraft(&good, namedToken("next"), instant{}, 0)
		got, err := d.retry(d.receipt("mail", "m", c), queue.RetryOptions{MaxFailures: 1})
		if want := "m~" + c.gen.String() + "-3"; err != nil || got.FailedName != want || queue.CheckFailedName(want) != nil {
			t.Errorf("%+v %v, want %s", got, err, want)
		}
		if _, err := decodeState(encodeState(nil, d.st), stateFile, st.store); err != nil {
			t.Errorf("and back: %v", err)
		}
	})
}
