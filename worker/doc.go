// Package worker consumes the messages of a store under supervision: it claims what
// a handler has room for, keeps the leases alive, settles what the handler answers,
// and ends the leases of workers that died.
//
//	err := worker.Run(ctx, queue.New[Mail](store, "mail"), send, worker.Options{})
//
// # What is promised
//
// A message whose handler returned nil is acked; when [Run] goes on to the next one,
// that ack is durable in the sense of the engine. Whatever happens to the process in
// between, the message is delivered again: at least once, so a handler must bear
// being run twice for one message. Its Fence grows with every claim, for guards
// downstream.
//
// No answer of a handler is dropped in silence. It is settled, or found to be late
// ([EventLost], [EventDropped]), or the worker ended before the store would take it
// ([UnsettledError]); each is logged and given to Options.Observe.
//
// What a handler enqueues itself may so be enqueued twice. What it hands over with
// [AckWith] is not: that is made in one commit with the ack, all or nothing, and a chain
// of queues loses and doubles nothing between its links.
//
// # The life of a message in the worker
//
//	claimed ──▶ handler ──▶ answer ──▶ settled, in one commit with the next claim
//	              │  ▲
//	              │  └ its lease is renewed at a third of it, all of them in one commit
//	              │
//	              ├─ lease lost       its context is cancelled, its answer dropped
//	              ├─ time limit over  its context is cancelled, its answer counts
//	              └─ ignores that     reported as stuck, renewals end, the slot stays taken
//
// What an answer comes to: [Handler].
//
// # Goroutines
//
// Run has one loop that owns all state. Handlers run in a goroutine each, as many as
// Concurrency says. At most one store call that changes something is under way, in a
// goroutine of its own, so that a slow disk holds up no timer; one more parks in
// Store.WaitDue while nothing is due. What is ready meanwhile is settled by the next one,
// together; with several slots that waits a moment, half a commit at most, for handlers
// that were just started and are quick as a rule. Nothing polls: an idle worker wakes for its
// reaping and for nothing else.
//
// A panic in a goroutine that a handler started itself ends the program; Go gives
// nobody a way to catch it. The messages then come back by their leases.
package worker
