//go:build unix

package holdfast

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

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
	const total, batch = 100_000, 10_000
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
	slot := float64(size()-empty) / total
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
	if err != nil || st.Queues["mail"].Ready != total {
		t.Fatalf("%+v %v", st, err)
	}
	if _, err := s.Clear(t.Context(), "mail", queue.ClearOptions{}); err != nil { // quicker to verify
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}
