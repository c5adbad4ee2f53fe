package history

import (
	"sync"
	"time"
)

// A Clock stands where it was moved.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Begin is where a Clock and a Model that follow one another begin.
const Begin int64 = 1_764_500_000_000 // Unix milliseconds

// NewClock gives one that stands at Begin.
func NewClock() *Clock { return &Clock{now: time.UnixMilli(Begin)} }

// Now reads it.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves it forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
