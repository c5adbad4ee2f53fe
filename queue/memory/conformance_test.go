package memory

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/holdfast/queue/queuetest"
)

func TestConformance(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queuetest.Engine {
		clock := &confClock{now: time.UnixMilli(1_764_500_000_000)}
		s := New(&Options{Now: clock.Now})
		t.Cleanup(func() { s.Close() })
		return queuetest.Engine{
			Store: s,
			Now:   clock.Now,
			Advance: func(d time.Duration) {
				clock.advance(d)
				s.Recheck()
			},
			Parked: confParked,
		}
	})
}

// A confClock stands where it was moved.
type confClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *confClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *confClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// confParked counts the goroutines that stand in the select of sleep.
func confParked() int {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	n := 0
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		head, rest, _ := strings.Cut(g, "\n")
		if strings.Contains(head, "[select") && strings.Contains(rest, "memory.sleep(") {
			n++
		}
	}
	return n
}
