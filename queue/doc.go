// Package queue is the contract of a durable JSON queue: the values that pass
// between a program and an engine, the errors that both understand, and the
// [Store] interface that every engine implements.
//
// # The life of a message
//
// A message is enqueued into a queue of a store and is pending. A claim leases
// it to one worker: it is processing, and the worker holds a [Receipt]. The
// worker settles it: Ack removes it, Release and Retry return it, Fail moves it
// to the failed messages, where it stays as evidence until it is reprocessed or
// purged. A lease that is not settled is ended by Reap, once its deadline has
// passed or its holder is proven dead, or by a Load that takes it over. A claim
// alone never gives out a message that is leased, not even an overdue one.
//
//	enqueue ──▶ pending ──claim──▶ processing ──ack──▶ (gone)
//	               ▲                   │
//	               └─release, retry, ──┤
//	                      reap         └─fail──▶ failed ──purge──▶ (gone)
//	               ▲                               │
//	               └──────────reprocess────────────┘
//
// # What holds in every engine
//
// One generation of an ID is in flight at a time. An attempt is the fencing
// token of a claim: it only grows within a generation, and a settlement that
// carries an older one is refused with [ErrStale]. A queue is complete when one
// snapshot shows that nothing is pending and nothing is processing; counters
// and process-local knowledge take no part in that.
//
// Delivery is at least once: a side effect may repeat when the process dies
// before the settlement is durable.
//
// This package imports no engine, and nothing else of this module.
package queue
