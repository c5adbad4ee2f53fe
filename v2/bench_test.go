//go:build unix

package holdfast

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/queue"
)

// What a message costs, from the enqueue to the ack. TMPDIR chooses the filesystem; the
// peers stand beside it in bench/.
func BenchmarkMessage(b *testing.B) {
	for _, callers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("goroutines=%d", callers), func(b *testing.B) { benchMessages(b, callers, 0) })
	}
	b.Run("goroutines=64/pending=500", func(b *testing.B) { benchMessages(b, 64, 500) })
}

// An enqueue by one caller, into objects that were made ahead and without them; the second
// "made" is the control.
func BenchmarkEnqueue(b *testing.B) {
	for _, how := range []struct {
		name    string
		prepare int
	}{{"made", -1}, {"made again", -1}, {"prepared", 1}} {
		b.Run(how.name, func(b *testing.B) {
			dir, err := os.MkdirTemp("", "holdfast-bench-")
			if err != nil {
				b.Fatal(err)
			}
			defer os.RemoveAll(dir)
			s, err := Create(b.Context(), dir+"/store", &Options{prepare: how.prepare})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			payload := []byte(`"` + strings.Repeat("x", 510) + `"`)
			for b.Loop() {
				if _, err := s.Enqueue(b.Context(), "mail", queue.Message{Payload: payload}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchMessages(b *testing.B, callers, pending int) {
	ctx := b.Context()
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := Create(ctx, dir+"/store", &Options{holders: &holderSet{}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	payload := []byte(`"` + strings.Repeat("x", 510) + `"`)
	for i := range pending {
		if _, err := s.Enqueue(ctx, "mail", queue.Message{ID: fmt.Sprint("pending-", i), Payload: payload}); err != nil {
			b.Fatal(err)
		}
	}
	commits := s.commits.Load()
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	began := usage(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := s.Enqueue(ctx, "mail", queue.Message{Payload: payload}); err != nil {
					b.Error(err)
					return
				}
				c, err := s.Claim(ctx, "mail", queue.ClaimOptions{})
				if err != nil || len(c.Deliveries) != 1 {
					b.Error(len(c.Deliveries), err)
					return
				}
				if err := s.Ack(ctx, c.Deliveries[0].Receipt); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric((usage(b)-began)/float64(b.N), "cpu-µs/message")
	b.ReportMetric(float64(s.commits.Load()-commits)/float64(b.N), "commits/message")
}

// usage gives the processor time that this process has used, in microseconds.
func usage(b *testing.B) float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1000
}
