package worker

import "time"

// How much the clocks may part between two turns of the loop before it is a jump.
// Slewing by a time daemon stays far below.
const maxSlip = time.Second

// maxDelays is how many times in a row reaping is put off. A phone that dozes more
// often than a lease is long would else never reap.
const maxDelays = 3

// tick reads the clocks at the begin of a turn and looks for a jump. There are two
// kinds. The wall clock went another way than the monotonic one: it was set, or the
// machine was suspended, which stops the monotonic clock. Or the loop woke long after
// the time that it had set itself: the process was stopped.
func (w *worker) tick() {
	now := time.Now()
	seen := w.o.seams.wall(now).Round(0) // without the monotonic clock
	slip := seen.Sub(w.seen) - now.Sub(w.now)
	var late time.Duration
	if !w.wake.IsZero() {
		late = now.Sub(w.wake)
	}
	w.now, w.seen = now, seen
	switch {
	case slip >= w.maxSlip() || -slip >= w.maxSlip():
		w.jump(slip)
	case late >= w.lease/3:
		w.putOff(late)
	}
}

func (w *worker) maxSlip() time.Duration { return min(maxSlip, w.lease/3) }

// jump deals with a clock that went on without us: by it, leases may be over whose
// holders live. So this worker renews its own before anything else, those that a call
// under way is claiming among them, and reaps later.
func (w *worker) jump(by time.Duration) {
	w.jumps++
	w.justRenewed = false
	for _, m := range w.held {
		m.leased = time.Time{}
	}
	w.putOff(by)
}

// putOff gives the other workers one lease to renew theirs before this one reaps. Its
// own leases need no more: it counted their time by the clock that went on.
func (w *worker) putOff(by time.Duration) {
	if later := w.now.Add(w.lease); w.delays < maxDelays && later.After(w.reapAt) {
		w.reapAt = later
		w.delays++
	}
	w.tell(Event{Kind: EventJumped, Delay: by, Count: len(w.held)}, "")
}

// A mark is when a store call began.
type mark struct {
	at    time.Time
	jumps int // seen so far
}

func (w *worker) mark() mark { return mark{w.now, w.jumps} }

// leasedSince gives the time from which a lease is counted that a call gave: when the
// call began, for the store read its clock later than that. Zero, which asks to renew
// at once, where a jump was seen since.
func (w *worker) leasedSince(began mark) time.Time {
	if w.jumps > began.jumps {
		return time.Time{}
	}
	return began.at
}
