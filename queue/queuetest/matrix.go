package queuetest

import (
	"errors"

	"example.com/holdfast/queue"
)

// A Standing is where a generation stands.
type Standing struct {
	State    queue.State // empty: it is gone
	Returned string      // as in queue.Entry
	Attempts uint64
	Excused  uint64
	Lapses   uint64
}

// A Cell says what one call answers that is made with the receipt of a claim, the
// first of its generation, to which something has happened.
type Cell struct {
	Event string // what has happened to the claim
	Call  string // what is called with its receipt

	// Refused is the refusal: nil, queue.ErrStale or queue.ErrGone. A refused call
	// changes nothing; its *queue.LostError has Current.
	Refused error
	Current uint64

	// After is where the generation stands then.
	After Standing
}

// Answer is the answer in a word, as a page shows it: ok, ErrStale or ErrGone.
func (c Cell) Answer() string {
	switch {
	case errors.Is(c.Refused, queue.ErrStale):
		return "ErrStale"
	case errors.Is(c.Refused, queue.ErrGone):
		return "ErrGone"
	}
	return "ok"
}

// Calls are the columns of [Matrix], in order.
func Calls() []string {
	var names []string
	for _, c := range matrixCalls {
		names = append(names, c.name)
	}
	return names
}

// Matrix is the table of what a receipt may still do: for each thing that can have
// happened to a claim, in order, each of [Calls].
func Matrix() []Cell {
	var cells []Cell
	for _, event := range matrixEvents {
		for _, call := range matrixCalls {
			c := Cell{Event: event.name, Call: call.name, Refused: event.refused, Current: event.current, After: event.stands}
			switch {
			case c.Refused != nil:
			case call.name == "reap" && event.stands.Returned == "reaped":
				// The lease that it would end has ended.
				c.Refused, c.Current = queue.ErrStale, event.stands.Attempts
			default:
				c.After = call.after(event.stands)
			}
			cells = append(cells, c)
		}
	}
	return cells
}

// leased is how a claimed generation stands.
func leased(attempts, excused, lapses uint64) Standing {
	return Standing{queue.Processing, "", attempts, excused, lapses}
}

func returned(how string, attempts, excused, lapses uint64) Standing {
	return Standing{queue.Ready, how, attempts, excused, lapses}
}

func (x Standing) scheduled() Standing {
	x.State = queue.Scheduled
	return x
}

// matrixCalls are the columns: the call, and where a generation goes by it that the
// receipt is good for.
var matrixCalls = []struct {
	name  string
	after func(x Standing) Standing
}{
	{"ack", func(Standing) Standing { return Standing{} }},
	{"retry", func(x Standing) Standing { return returned("retried", x.Attempts, x.Excused, x.settledLapses()) }},
	{"release", func(x Standing) Standing { return returned("released", x.Attempts, x.Excused+1, x.settledLapses()) }},
	{"extend", func(x Standing) Standing { return leased(x.Attempts, x.Excused, x.settledLapses()) }},
	{"fail", func(x Standing) Standing { return Standing{queue.Failed, "", x.Attempts, x.Excused, x.Lapses} }},
	{"replace payload", func(x Standing) Standing { return x }},
	{"reap", func(x Standing) Standing { return returned("reaped", x.Attempts, x.Excused, x.Lapses+1) }},
}

// settledLapses are the lapses once the claim was settled or goes on: a reaping that
// its worker answers was no lapse.
func (x Standing) settledLapses() uint64 {
	if x.Returned == "reaped" {
		return x.Lapses - 1
	}
	return x.Lapses
}
