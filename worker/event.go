package worker

import (
	"log/slog"
	"time"

	"example.com/holdfast/queue"
)

// An EventKind says what happened.
type EventKind string

// What happens to messages. One that was claimed comes to exactly one of acked,
// discarded, retried, failed, snoozed, released, lost and unsettled. Panicked and stuck
// come before one of these, dropped after lost or released.
const (
	EventClaimed   EventKind = "claimed"
	EventAcked     EventKind = "acked"
	EventDiscarded EventKind = "discarded" // acked without having been done
	EventRetried   EventKind = "retried"   // Err and Delay say why and when again
	EventFailed    EventKind = "failed"    // kept under FailedName
	EventSnoozed   EventKind = "snoozed"   // Delay says how long
	EventReleased  EventKind = "released"  // because the worker ends
	EventLost      EventKind = "lost"      // the claim is not ours any more
	EventUnsettled EventKind = "unsettled" // the worker ended before the store took the settlement
	EventPanicked  EventKind = "panicked"  // or called runtime.Goexit; Err is a *PanicError
	EventStuck     EventKind = "stuck"     // the handler ignores its cancelled context; renewals ended
	EventDropped   EventKind = "dropped"   // an answer that came too late; Action is what it asked for

	EventReaped  EventKind = "reaped"  // the lease of some worker ended; Err says how
	EventDamaged EventKind = "damaged" // went to failed instead of being delivered
)

// What happens to the worker.
const (
	EventRenewed     EventKind = "renewed"      // Count leases, in one commit
	EventStoreFailed EventKind = "store failed" // the call Op; it is made again after Delay
	EventUncertain   EventKind = "uncertain"    // whether the commit of the call Op happened
	EventJumped      EventKind = "jumped"       // the clock, by Delay; or the process stood still for so long
	EventDraining    EventKind = "draining"     // Count handlers are still running, and may for Delay
)

// An Event is one thing that happened. Fields that do not belong to the kind are zero.
type Event struct {
	Kind EventKind

	Queue   string
	ID      string
	Attempt uint64 // of the claim
	Fence   uint64

	Action     Action        // what the answer asked for; empty: none was given
	Failures   uint64        // real failures of the message, one that this event tells of among them
	Lapses     uint64        // of a reaped message
	Delay      time.Duration // until it is due again; until the next try; by how much a clock jumped
	FailedName string        // under which the message is kept now
	Elapsed    time.Duration // how long the handler ran
	Count      int           // of what the kind says; of failures in a row
	Op         string        // claim, settle, renew, reap or wait
	Err        error
}

// about begins an event of one message.
func about(kind EventKind, m *held) Event {
	r := m.d.Receipt
	return Event{Kind: kind, Queue: r.Queue, ID: r.ID, Attempt: r.Attempt, Fence: m.d.Fence, Failures: m.d.Failures}
}

// tell logs an event and gives it to the observer. A panic in either must not take
// the worker down with the messages in its hands.
func (w *worker) tell(e Event, cause string) {
	w.guard("log", func() {
		if level := e.level(); w.o.Logger.Enabled(w.base, level) { // most events of a busy worker are for debugging
			w.o.Logger.LogAttrs(w.base, level, "worker: "+string(e.Kind), e.attrs(cause)...)
		}
	})
	if w.o.Observe != nil {
		w.guard("observer", func() { w.o.Observe(e) })
	}
}

func (w *worker) guard(what string, f func()) {
	defer func() {
		if value := recover(); value != nil && what != "log" {
			w.guard("log", func() { w.o.Logger.Error("worker: the "+what+" panicked", "panic", value) })
		}
	}()
	f()
}

func (e Event) level() slog.Level {
	switch e.Kind {
	case EventFailed, EventUnsettled, EventPanicked, EventStuck, EventDamaged, EventStoreFailed, EventUncertain:
		return slog.LevelError
	case EventLost:
		if _, ok := e.Err.(*elsewhereError); ok {
			return slog.LevelInfo
		}
		return slog.LevelWarn
	case EventDropped, EventJumped:
		return slog.LevelWarn
	case EventReaped:
		if e.FailedName != "" {
			return slog.LevelError
		}
		return slog.LevelWarn
	case EventRetried, EventDiscarded, EventDraining:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// attrs gives what the log shows: cause is the text of e.Err where foreign code would
// have to be called for it.
func (e Event) attrs(cause string) []slog.Attr {
	var as []slog.Attr
	text := func(key, value string) {
		if value != "" {
			as = append(as, slog.String(key, value))
		}
	}
	number := func(key string, value uint64) {
		if value != 0 {
			as = append(as, slog.Uint64(key, value))
		}
	}
	span := func(key string, value time.Duration) {
		if value != 0 {
			as = append(as, slog.Duration(key, value))
		}
	}
	text("queue", e.Queue)
	text("id", e.ID)
	number("attempt", e.Attempt)
	text("call", e.Op)
	text("action", string(e.Action))
	number("failures", e.Failures)
	number("lapses", e.Lapses)
	number("count", uint64(e.Count))
	text("failed_name", e.FailedName)
	span("delay", e.Delay)
	span("elapsed", e.Elapsed)
	if cause == "" && e.Err != nil {
		cause = e.Err.Error()
	}
	text("error", cause)
	return as
}

// damaged tells of a message that the claim moved to failed.
func (w *worker) damaged(d *queue.DamagedError) {
	w.tell(Event{Kind: EventDamaged, Queue: d.Queue, ID: d.ID, FailedName: d.FailedName, Err: d}, "")
}
