// Package memory is the engine that keeps everything in memory: for tests, and for
// programs whose messages may end with their process.
//
// It implements the whole of [queue.Store], and it is written to be read: every
// transition stands in a few lines, decided and applied under one mutex. Where
// another engine and this one differ, one of them is wrong.
//
// # What holds
//
// On nil a change is seen by every later call. Nothing is durable: a store ends
// with its process, and so do its messages. There are no holders, so no claim is
// ever ended by proof of death: a lease without deadline is ended by settlement, by
// Load, or by the operator. No payload is ever damaged. On an error nothing changed.
//
// # Reading
//
//   - state.go: what is kept; draft.go: how a call changes it, whole or not at all
//   - keys.go: where each message stands, and so what a claim may take
//   - enqueue.go, claim.go, settle.go, back.go, reap.go, failed.go, operator.go,
//     update.go: the transitions
//   - look.go, status.go: what can be seen; wait.go: how callers park
//
// # Cost
//
// A change moves as many pointers as its queue has messages at most. A claim looks at
// the messages in front of those that it takes: leased, scheduled and blocked ones;
// a fair one, and a look at a queue, at all of them.
//
// # Goroutines
//
// The package starts none. A Wait or WaitDue parks in its caller, on a channel that
// every change renews and on a timer to the next time at which a message is due.
package memory
