// Package queuetest is the conformance suite of [queue.Store]: what every engine must
// do, whatever it keeps its messages in. A program passes the same way over any engine
// that passes it.
//
//	func TestConformance(t *testing.T) {
//		queuetest.Run(t, func(t *testing.T) queuetest.Engine {
//			clock := newClock()
//			return queuetest.Engine{Store: open(t, clock), Now: clock.Now, Advance: clock.Advance}
//		})
//	}
//
// Each subtest opens an empty store of its own. After it the suite looks at the whole
// store once more: its listings, gauges and counters must agree with each other, and
// with what the rules of keys and generations say of every message.
//
// Left to the tests of an engine: what a crash, a damaged payload, a full disk or the
// death of a holder does, for these the suite cannot bring about.
//
// [Matrix] is the table of what a receipt may still do, as data; docs/states.md shows
// it, and the suite has one subtest for each cell.
package queuetest
