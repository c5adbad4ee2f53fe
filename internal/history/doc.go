// Package history records what several callers of a store did at once, and checks
// that it could have been done by one caller after another, each call at one instant
// between its beginning and its end. Only tests import it.
//
// It has four parts:
//
//   - A [Step] is a call before it is made and an [Answer] what came of it; both are
//     plain data, so that they pass between processes. [Perform] makes the call.
//   - A [Model] is a store that makes one step after another. It is written to be
//     read against the contract in package queue, and shares no code with an engine.
//   - A [Mix] draws steps at random, a [Record] notes who made which when.
//   - [Check] searches for an order of the recorded calls that the model explains.
//
// # Why histories are short
//
// A checker is fast when a history falls into parts that know nothing of each other,
// as the keys of a map do. Here they do not: an Update couples queues, a key couples
// messages, a failed namespace couples queues, a status shows several queues in one
// snapshot, and the claim number is the whole store's. So the whole store is one part,
// and what keeps the search small is that each history is: some ten calls by each of a
// few callers, over two queues and three IDs. Many short histories then meet more
// interleavings than a long one, for one that is wrong anywhere is found out there.
//
// # Calls without an answer
//
// A caller that is killed inside a call never learns what came of it. Such a call
// happened wholly, at some instant before the death, or not at all; the checker
// follows both. What nobody was told, as the generation of a message, the model
// learns from the first answer that shows it.
//
// # Deaths and time
//
// The death of a process is a step of its own, [Die], between the signal and the
// moment at which the kernel reports that the process is gone. Before that instant no
// reaping may return its leases by proof, after it the next one must. Likewise the
// clock, where a test moves it, is moved by the step [Advance]. A model of a store
// whose clock the test cannot move is Timeless: a lease has a far deadline or none,
// a delay is far or none, and nothing ever becomes due.
package history
