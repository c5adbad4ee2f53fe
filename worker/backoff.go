package worker

import (
	"time"

	"example.com/holdfast/queue"
)

// RetryPolicy says when a message that failed is tried again, and how often.
//
// The delay after a failure is drawn uniformly from 0 to the smaller of Max and
// Base·2ⁿ, both ends included, where n counts the message's failures before this
// one: full jitter. With the defaults the first delay is at most 2 s, the second at
// most 4 s, and from the twelfth on at most 1 h.
type RetryPolicy struct {
	Base time.Duration // zero: 2 s
	Max  time.Duration // zero: 1 h, or Base where that is longer

	// MaxFailures is the number of failures at which a message goes to failed. Zero:
	// 20. Snoozes, releases and lapses are none.
	MaxFailures uint64

	// MaxLapses is the number of claims of a message ended by reaping at which it goes
	// to failed: it may be what kills its workers. Zero: 10.
	MaxLapses uint64
}

func (p RetryPolicy) checked() (RetryPolicy, error) {
	if err := atLeast("base delay", &p.Base, DefaultBase, time.Millisecond); err != nil {
		return p, err
	}
	if err := atLeast("longest delay", &p.Max, max(DefaultMaxDelay, p.Base), p.Base); err != nil {
		return p, err
	}
	if p.MaxFailures == 0 {
		p.MaxFailures = queue.DefaultMaxFailures
	}
	if p.MaxLapses == 0 {
		p.MaxLapses = queue.DefaultMaxLapses
	}
	return p, nil
}

// longest gives the longest delay after a failure that n failures came before:
// the smaller of Max and Base·2ⁿ.
func (p RetryPolicy) longest(n uint64) time.Duration { return doubled(p.Base, p.Max, n) }

// doubled gives the smaller of most and base·2ⁿ.
func doubled(base, most time.Duration, n uint64) time.Duration {
	for ; n > 0 && base < most; n-- {
		if base > most/2 {
			return most
		}
		base *= 2
	}
	return min(base, most)
}

// How a store call that failed is repeated.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 30 * time.Second
)

// patience counts the failures in a row of one kind of store call, and says from
// when on it may be made again. The zero value is full of it.
type patience struct {
	failures int
	after    time.Time
}

// fail notes one more failure and gives the pause until the next call: from half of
// 100 ms·2ⁿ to all of it, at most 30 s, so that workers that failed together part.
func (p *patience) fail(now time.Time, s seams) time.Duration {
	pause := doubled(firstPause, longestPause, uint64(p.failures))
	pause -= s.draw(pause / 2)
	p.failures++
	p.after = now.Add(pause)
	return pause
}

// reset forgets the failures: a call succeeded.
func (p *patience) reset() { *p = patience{} }
