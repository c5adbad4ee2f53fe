//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"example.com/holdfast/queue"
)

// In a state that is full to the last message, claims bring back as many as there is room
// for, in order, and one always: what was accepted can be worked off.
func TestRunsInAFullState(t *testing.T) {
	for _, max := range []int{1, 100} {
		t.Run(fmt.Sprint("claims of ", max), func(t *testing.T) {
			s, _ := newTestStore(t, &Options{MaxStateBytes: 64 << 10, clock: &handClock{rigStart}, block: 8})
			ctx := t.Context()
			want := idsOfSmalls(0, 100)
			if _, err := s.EnqueueBatch(ctx, "mail", smalls(100)); err != nil {
				t.Fatal(err)
			}
			if _, sealed := runsOf(t, s, "mail"); sealed < 60 {
				t.Fatalf("%d messages are sealed", sealed)
			}
			for { // of keys, so that they stay inline
				id := fmt.Sprintf("k%05d", len(want))
				_, err := s.Enqueue(ctx, "mail", queue.Message{ID: id, Key: id, Payload: []byte(`1`)})
				if errors.Is(err, queue.ErrFull) {
					break
				}
				mustDo(t, err)
				want = append(want, id)
			}
			var got []string
			for len(got) < len(want) {
				d := mustClaim(t, s, "mail", queue.ClaimOptions{Max: max, WithoutHolder: true})
				if len(d) == 0 {
					t.Fatalf("nothing to claim after %d of %d", len(got), len(want))
				}
				got = append(got, idsOf(d)...)
				for _, d := range d {
					mustDo(t, s.Ack(ctx, d.Receipt))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("claimed %v", got)
			}
		})
	}
}

// While what came back is not settled, no more room is found for others than is there.
func TestRunsAskForRoom(t *testing.T) {
	s, _ := newTestStore(t, &Options{MaxStateBytes: 64 << 10, clock: &handClock{rigStart}, block: 8})
	ctx := t.Context()
	if _, err := s.EnqueueBatch(ctx, "mail", smalls(100)); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		_, err := s.Enqueue(ctx, "mail", queue.Message{Key: fmt.Sprint(i), Payload: []byte(`1`)})
		if errors.Is(err, queue.ErrFull) {
			break
		}
		mustDo(t, err)
	}
	var held []queue.Delivery
	for len(held) < 50 {
		c, err := s.Claim(ctx, "mail", queue.ClaimOptions{WithoutHolder: true})
		if errors.Is(err, queue.ErrFull) {
			break
		}
		mustDo(t, err)
		held = append(held, c.Deliveries...)
	}
	if len(held) != 9 { // the first block, and the one that there is room for
		t.Errorf("%d were claimed before there was no room", len(held))
	}
	if _, err := s.Load(ctx, "mail", "m060", queue.LoadOptions{WithoutHolder: true}); !errors.Is(err, queue.ErrFull) {
		t.Errorf("loaded without room: %v", err)
	}
	mustDo(t, s.Ack(ctx, held[0].Receipt))
	if d := mustClaim(t, s, "mail", queue.ClaimOptions{WithoutHolder: true}); len(d) != 1 || d[0].Receipt.ID != "m009" {
		t.Errorf("after an ack: %v", idsOf(d))
	}
}

// Evidence fills a state too: when it does, what lies in runs waits until some is purged,
// and what was claimed can be settled to the last.
func TestRunsBehindEvidence(t *testing.T) {
	s, _ := newTestStore(t, &Options{MaxStateBytes: 64 << 10, clock: &handClock{rigStart}, block: 8, noSpill: true})
	ctx := t.Context()
	for i := range 8 {
		ms := smalls(100)
		for j := range ms {
			ms[j].ID = fmt.Sprintf("%d-%s", i, ms[j].ID)
		}
		if _, err := s.EnqueueBatch(ctx, "mail", ms); err != nil {
			t.Fatal(err)
		}
	}
	failed := 0
	for {
		c, err := s.Claim(ctx, "mail", queue.ClaimOptions{Max: 3, WithoutHolder: true})
		if errors.Is(err, queue.ErrFull) {
			break
		}
		mustDo(t, err)
		for _, d := range c.Deliveries {
			if _, err := s.Fail(ctx, d.Receipt, queue.FailOptions{Cause: "no", As: d.Receipt.ID + "-as-a-long-name-of-evidence-that-takes-room-in-the-state-itself"}); err != nil {
				t.Fatalf("after %d: %v", failed, err)
			}
			failed++
		}
		if len(c.Deliveries) == 0 {
			t.Fatalf("all %d could be failed: the test shows nothing", failed)
		}
	}
	page, err := s.ListFailed(ctx, queue.FailedOptions{}, queue.ListOptions{Limit: 20})
	mustDo(t, err)
	for _, e := range page.Entries {
		mustDo(t, s.Purge(ctx, e.FailedName, queue.PurgeOptions{}))
	}
	if d := mustClaim(t, s, "mail", queue.ClaimOptions{WithoutHolder: true}); len(d) != 1 {
		t.Errorf("after a purge: %v", idsOf(d))
	}
}
