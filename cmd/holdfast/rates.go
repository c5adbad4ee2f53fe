//go:build unix

package main

import (
	"fmt"

	"example.com/holdfast/queue"
)

// flow is how many messages a second came into a queue and left it between two looks, by
// its counters. In less out is what pending and processing grew by.
type flow struct {
	In  *float64 `json:"in_per_second"` // null: not known
	Out *float64 `json:"out_per_second"`
}

// flowOf compares two surveys. Nothing is known at the first, nor where a counter went
// back: an unsettled look may have seen what then was not, and a store may be restored.
func flowOf(before, now *survey, name string) flow {
	if before == nil {
		return flow{}
	}
	then, known := before.status.Queues[name]
	seconds := now.at.Sub(before.at).Seconds()
	if !known && !before.status.Settled || seconds <= 0 {
		return flow{}
	}
	was, is := then.Counters, now.status.Queues[name].Counters
	if wentBack(was, is) {
		return flow{}
	}
	in := float64(came(is)-came(was)) / seconds
	out := float64(left(is)-left(was)) / seconds
	return flow{&in, &out}
}

func came(c queue.Counters) uint64 { return c.Enqueued + c.Reprocessed }

func left(c queue.Counters) uint64 { return c.Superseded + c.Completed + c.Failed + c.Cleared }

func wentBack(was, is queue.Counters) bool {
	return is.Enqueued < was.Enqueued || is.Reprocessed < was.Reprocessed || is.Superseded < was.Superseded ||
		is.Completed < was.Completed || is.Failed < was.Failed || is.Cleared < was.Cleared
}

// moved reports whether two flows differ to somebody who reads them. One that is not
// known and one that is zero are the same to them.
func (f flow) moved(other flow) bool {
	return value(f.In) != value(other.In) || value(f.Out) != value(other.Out)
}

func value(rate *float64) float64 {
	if rate == nil {
		return 0
	}
	return *rate
}

// rateText tells a rate in at most five cells.
func rateText(rate *float64) string {
	switch {
	case rate == nil:
		return "-"
	case *rate == 0:
		return "0"
	case *rate < 0.05:
		return "<0.1"
	case *rate < 9.95:
		return fmt.Sprintf("%.1f", *rate)
	case *rate < 9999.5:
		return fmt.Sprintf("%.0f", *rate)
	}
	return fmt.Sprintf("%.0fk", *rate/1000)
}
