package history

import (
	"fmt"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"

	"example.com/holdfast/queue"
)

// at records a call with its beginning and its end.
func at(begin, end int64, st Step, a Answer) porcupine.Operation {
	return porcupine.Operation{Input: st, Output: a, Call: begin, Return: end}
}

// The calls of these tests: one queue, one message, one process that dies.
var (
	enqueueA = Step{Op: Enqueue, Queue: "mail", IDs: []string{"a"}}
	accepted = Answer{Gens: []string{"g.0"}, Kept: []bool{false}, Revision: 2}
	claimA   = Step{Op: Claim, Queue: "mail", N: 1, Holder: "p"}
	nothing  = Answer{}
	unknown  = Answer{Unknown: true}
	dieP     = Step{Op: Die, Holder: "p"}
	reapAll  = Step{Op: Reap}
	byProof  = Answer{Reaped: []Reaped{{Queue: "mail", ID: "a", Attempt: 1, Cause: queue.ByProof, Lapses: 1}}}
	listMail = Step{Op: List, Queue: "mail"}
)

// inTurn is a history that begins with some calls.
func inTurn(calls []porcupine.Operation, rest ...porcupine.Operation) []porcupine.Operation {
	return append(slices.Clone(calls), rest...)
}

// given is the answer of a claim of attempt n of a generation.
func given(gen string, n uint64) Answer {
	return Answer{Deliveries: []Delivered{{Receipt: fmt.Sprintf("s:mail:a:%s:%d", gen, n), Fence: n}}}
}

// seen is the answer of a list while a is pending.
func seen(gen string) Answer {
	return Answer{Seen: []Sight{{Queue: "mail", ID: "a", Gen: gen, State: queue.Ready}}}
}

// Which histories of a few calls have an order, and which have none.
func TestCheck(t *testing.T) {
	ack := Step{Op: Ack, Receipt: "s:mail:a:g.0:1"}
	stale := Answer{Refused: queue.ErrStale.Error(), Current: 2}
	loadA := Step{Op: Load, Queue: "mail", IDs: []string{"a"}}
	second := Answer{Deliveries: []Delivered{{Receipt: "s:mail:a:g.0:2", Fence: 2, Lapses: 1}}}
	type ops = []porcupine.Operation
	there := ops{at(1, 2, enqueueA, accepted)}
	taken := append(there, at(3, 4, claimA, given("g.0", 1)))
	cutOff := ops{at(1, 2, enqueueA, unknown)}
	for _, tt := range []struct {
		name string
		ops  ops
		want bool
	}{
		{"one after another", inTurn(taken, at(5, 6, ack, nothing)), true},
		{"claimed before it was enqueued", ops{at(1, 2, claimA, given("g.0", 1)), at(3, 4, enqueueA, accepted)}, false},
		{"claimed while it was enqueued", ops{at(1, 3, claimA, given("g.0", 1)), at(2, 4, enqueueA, accepted)}, true},
		{"not claimed although it was there", inTurn(there, at(3, 4, claimA, nothing)), false},
		{"one claim given twice", inTurn(there, at(3, 6, claimA, given("g.0", 1)), at(4, 5, claimA, given("g.0", 1))), false},
		{"acked twice", inTurn(taken, at(5, 8, ack, nothing), at(6, 7, ack, nothing)), false},
		{"a generation given twice", inTurn(taken, at(5, 6, ack, nothing), at(7, 8, enqueueA, accepted)), false},
		{"a revision that is older", inTurn(there, at(3, 4, Step{Op: ListFailed}, Answer{Revision: 1})), false},

		{"cut off, and it happened", inTurn(cutOff, at(3, 4, claimA, given("g.7", 1))), true},
		{"cut off, and it did not happen", inTurn(cutOff, at(3, 4, claimA, nothing)), true},
		{"cut off, and it happened after the death", inTurn(cutOff, at(3, 4, claimA, nothing), at(5, 6, claimA, given("g.7", 1))), false},
		{"cut off, and it happened and then not", inTurn(cutOff, at(3, 4, listMail, seen("g.7")), at(5, 6, listMail, nothing)), false},
		{"cut off, and it shows two generations", inTurn(cutOff, at(3, 4, listMail, seen("g.7")), at(5, 6, listMail, seen("g.8"))), false},

		{"reaped before the death", inTurn(taken, at(5, 6, reapAll, byProof), at(7, 8, dieP, nothing)), false},
		{"reaped while it died", inTurn(taken, at(5, 8, dieP, nothing), at(6, 7, reapAll, byProof)), true},
		{"not reaped while it died", inTurn(taken, at(5, 8, dieP, nothing), at(6, 7, reapAll, nothing)), true},
		{"not reaped after the death", inTurn(taken, at(5, 6, dieP, nothing), at(7, 8, reapAll, nothing)), false},
		{"reaped twice", inTurn(taken, at(5, 6, dieP, nothing), at(7, 10, reapAll, byProof), at(8, 9, reapAll, byProof)), false},
		{"a claim that was cut off, reaped", inTurn(there, at(3, 6, claimA, unknown), at(5, 7, dieP, nothing), at(8, 9, reapAll, byProof)), true},
		{"a claim that was cut off, not reaped", inTurn(there, at(3, 6, claimA, unknown), at(5, 7, dieP, nothing), at(8, 9, reapAll, nothing)), true},
		{"a late ack is taken, and the message given again", inTurn(taken, at(5, 6, dieP, nothing), at(7, 8, reapAll, byProof), at(9, 12, loadA, second), at(10, 13, ack, nothing)), false},
		{"a late ack is refused beside the next claim", inTurn(taken, at(5, 6, dieP, nothing), at(7, 8, reapAll, byProof), at(9, 12, loadA, second), at(10, 13, ack, stale)), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Record{ops: tt.ops}
			if err := r.Check(&Model{Timeless: true}); (err == nil) != tt.want {
				t.Errorf("explained: %t, want %t: %v", err == nil, tt.want, err)
			}
		})
	}
}
