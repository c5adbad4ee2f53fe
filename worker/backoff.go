package worker

import "time"

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
