//go:build unix

package holdfast

import (
	"sync"
	"testing"
	"time"

	"example.com/holdfast/queue/queuetest"
)

func TestConformance(t *testing.T) {
	queuetest.Run(t, func(t *testing.T) queuetest.Engine {
		clock := &confClock{at: instant{
			Wall: time.UnixMilli(1_764_500_000_000), BootID: "11111111-2222-3333-4444-555555555555", Boot: time.Hour,
		}}
		s, _ := newTestStore(t, &Options{clock: clock})
		return queuetest.Engine{
			Store: s,
			Now:   func() time.Time { return clock.Now().Wall },
			Advance: func(d time.Duration) {
				clock.advance(d)
				s.wake.all() // its timers go by the machine's clock
			},
			Parked: func() int { return confJoined(s.wake) },
		}
	})
}

// A confClock stands where it was moved: both clocks together, as within one boot.
type confClock struct {
	mu sync.Mutex
	at instant
}

func (c *confClock) Now() instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *confClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at.Wall = c.at.Wall.Add(d)
	c.at.Boot += d
}

// confJoined counts the calls that wait and have seen the store once: whatever
// happens from then on they are told.
func confJoined(w *waker) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for p := range w.waiters {
		if p.last.file.Size > 0 {
			n++
		}
	}
	return n
}
