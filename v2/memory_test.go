//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// heap gives the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestBacklog measures an open store with 100,000 pending messages of 16-byte IDs:
// what it takes in memory, and on the disk for each.
func TestBacklog(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 messages: not with -short")
	}
	total, batch := 100_000, 25_000
	if raceDetector() {
		total, batch = 20_000, 10_000 // it slows this down and has memory of its own
	}
	s, dir := newTestStore(t, nil)
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, namespaceDir, stateFile))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	empty, before := size(), heap()
	for first := 0; first < total; first += batch {
		ms := make([]queue.Message, batch)
		for i := range ms {
			ms[i] = queue.Message{ID: fmt.Sprintf("message-%08d", first+i), Payload: []byte(`{"n":1}`)}
		}
		if _, err := s.EnqueueBatch(t.Context(), "mail", ms); err != nil {
			t.Fatal(err)
		}
	}
	writer := heap() - before
	slot := float64(size()-empty) / float64(total)
	t.Logf("state.json: %d bytes, %.1f for each pending message of a 16-byte ID", size(), slot)
	if slot > 160 {
		t.Errorf("%.1f bytes for each pending slot, the budget is 160", slot)
	}

	before = heap()
	other, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	reader := heap() - before
	t.Logf("heap of an open store with %d pending: %.1f MB after Open, %.1f MB in the handle that enqueued them (its buffer of the encoded state included)",
		total, float64(reader)/1e6, float64(writer)/1e6)
	st, err := other.Status(t.Context(), queue.StatusOptions{})
	if err != nil || st.Queues["mail"].Ready != uint64(total) {
		t.Fatalf("%+v %v", st, err)
	}
	if _, err := s.Clear(t.Context(), "mail", queue.ClearOptions{}); err != nil { // quicker to verify
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}

// T01: the same bytes at every stage.
func TestTrial01PayloadBytes(t *testing.T) {
	s, dir := newTestStore(t, nil)
	ctx := t.Context()
	payload := `{ "b":9007199254740993, "a":1.0, "z":-0, "e":1e400, "s":"<a&b>` + "\u2028" + `" }`
	same := func(stage string, got []byte) {
		t.Helper()
		if string(got) != payload {
			t.Errorf("%s: %q, want %q", stage, got, payload)
		}
	}
	for _, beside := range []int{0, 2} { // alone in its object, and in an array with others
		ms := append(smalls(beside), queue.Message{ID: "x", Payload: []byte(payload)})
		if _, err := s.EnqueueBatch(ctx, "mail", ms); err != nil {
			t.Fatal(err)
		}
		peeked, err := s.Peek(ctx, "mail", 3)
		if err != nil {
			t.Fatal(err)
		}
		same("peek", peeked[beside].Payload)
		shown, err := s.Show(ctx, "mail", "x")
		if err != nil {
			t.Fatal(err)
		}
		same("show", shown[0].Payload)
		c, err := s.Claim(ctx, "mail", queue.ClaimOptions{Max: 3})
		if err != nil {
			t.Fatal(err)
		}
		d := c.Deliveries[beside]
		same("claim", d.Payload)
		if err := s.Release(ctx, d.Receipt, queue.ReleaseOptions{}); err != nil {
			t.Fatal(err)
		}
		other, err := Open(ctx, dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d, err = other.Load(ctx, "mail", "x", queue.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		same("load, from another handle", d.Payload)
		as := fmt.Sprint("x", beside)
		if _, err := other.Fail(ctx, d.Receipt, queue.FailOptions{As: as}); err != nil {
			t.Fatal(err)
		}
		failed, err := other.ShowFailed(ctx, as, queue.FailedOptions{})
		if err != nil {
			t.Fatal(err)
		}
		same("show failed", failed.Payload)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// T22: one ID while pending, claimed and failed, and sixteen who race for it.
func TestTrial22OneID(t *testing.T) {
	s, dir := newTestStore(t, nil)
	other, err := Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	race := func(id string, x queue.IfExists) (won []queue.Enqueued, kept int) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				m := small(id)
				m.IfExists = x
				e, err := []*Store{s, other}[i%2].Enqueue(t.Context(), "mail", m)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					won = append(won, e)
					if e.Kept {
						kept++
					}
				case x == queue.Keep || !errors.Is(err, queue.ErrDuplicate):
					t.Errorf("%s: %v", x, err)
				}
			})
		}
		wg.Wait()
		return won, kept
	}
	if won, _ := race("refuse", queue.Refuse); len(won) != 1 {
		t.Errorf("%d of 16 won", len(won))
	}
	won, kept := race("keep", queue.Keep)
	if len(won) != 16 || kept != 15 {
		t.Errorf("keep: %d succeeded, %d were told that it was there", len(won), kept)
	}
	for _, e := range won {
		if e.Generation != won[0].Generation {
			t.Errorf("two generations: %+v, %+v", e, won[0])
		}
	}
	// Claimed it is as live as pending; failed it is not.
	d, err := s.Load(t.Context(), "mail", "refuse", queue.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if won, _ := race("refuse", queue.Refuse); len(won) != 0 {
		t.Errorf("while claimed: %d of 16 won", len(won))
	}
	if _, err := s.Fail(t.Context(), d.Receipt, queue.FailOptions{}); err != nil {
		t.Fatal(err)
	}
	if won, _ := race("refuse", queue.Refuse); len(won) != 1 || won[0].Generation == d.Receipt.Generation {
		t.Errorf("while failed: %+v", won)
	}
}

// T30: within one boot the boot clock decides about a lease, whatever is done to the
// wall clock; without it the wall clock does. The deadline itself is over.
func TestTrial30Clocks(t *testing.T) {
	const lease = 10 * time.Minute
	wall := time.UnixMilli(1_700_000_000_000)
	for _, tt := range []struct {
		name        string
		boot, later string // boot ids at the claim and at the look
		wall, since time.Duration
		over        bool
	}{
		{"nothing moved", "b", "b", 0, 0, false},
		{"wall back one hour, boot before the deadline", "b", "b", -time.Hour, lease - time.Millisecond, false},
		{"wall back one hour, boot at the deadline", "b", "b", -time.Hour, lease, true},
		{"wall forward one hour, boot before the deadline", "b", "b", time.Hour, lease - time.Millisecond, false},
		{"wall forward one hour, boot at the deadline", "b", "b", time.Hour, lease, true},
		{"rebooted, wall back", "b", "c", -time.Hour, 0, true},
		{"no boot clock, before", "", "", lease - time.Millisecond, 0, false},
		{"no boot clock, at the deadline", "", "", lease, 0, true},
		{"no boot clock, wall back one hour", "", "", -time.Hour, lease, false},
		{"boot clock lost, before", "b", "", lease - time.Millisecond, 0, false},
		{"boot clock lost, at the deadline", "b", "", lease, 0, true},
		{"boot clock found, before", "", "b", lease - time.Millisecond, lease, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clock := &setClock{}
			clock.set(wall, tt.boot, time.Hour)
			s, _ := newTestStore(t, &Options{clock: clock})
			ctx := t.Context()
			later := small("later")
			later.NotBefore = wall.Add(time.Minute)
			if _, err := s.EnqueueBatch(ctx, "mail", []queue.Message{small("a"), later}); err != nil {
				t.Fatal(err)
			}
			c, err := s.Claim(ctx, "mail", queue.ClaimOptions{Max: 2, Lease: lease})
			if err != nil || len(c.Deliveries) != 1 || !c.Deliveries[0].Deadline.Equal(wall.Add(lease)) {
				t.Fatalf("claim: %+v %v", c, err)
			}
			clock.set(wall.Add(tt.wall), tt.later, time.Hour+tt.since)
			st, err := s.Status(ctx, queue.StatusOptions{})
			q := st.Queues["mail"]
			if err != nil || q.Processing != 1 || (q.Overdue == 1) != tt.over {
				t.Errorf("status: %+v %v", q, err)
			}
			// What is scheduled goes by the wall clock, and shows in the status.
			if due := tt.wall >= time.Minute; (q.Ready == 1) != due || (q.Scheduled == 1) == due {
				t.Errorf("scheduled: %+v", q)
			}
			d, err := s.Load(ctx, "mail", "a", queue.LoadOptions{})
			old := s.Release(ctx, c.Deliveries[0].Receipt, queue.ReleaseOptions{})
			if !tt.over {
				if !errors.Is(err, queue.ErrLeased) || old != nil {
					t.Errorf("not over: load %v, the receipt %v", err, old)
				}
				return
			}
			if err != nil || d.Receipt.Attempt != 2 || !errors.Is(old, queue.ErrStale) {
				t.Errorf("over: load %+v %v, the old receipt %v", d.Receipt, err, old)
			}
		})
	}
}
