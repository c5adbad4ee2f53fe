package queuetest_test

import (
	"errors"
	"slices"
	"testing"

	"example.com/holdfast/queue"
	"example.com/holdfast/queue/queuetest"
)

// The matrix has a cell for each event and call, in the order of its pages.
func TestMatrixIsWhole(t *testing.T) {
	calls := []string{"ack", "retry", "release", "extend", "fail", "replace payload", "reap"}
	if got := queuetest.Calls(); !slices.Equal(got, calls) {
		t.Errorf("calls %q, want %q", got, calls)
	}
	var events []string
	for i, c := range queuetest.Matrix() {
		if i%len(calls) == 0 {
			events = append(events, c.Event)
		}
		if c.Call != calls[i%len(calls)] || c.Event != events[len(events)-1] {
			t.Errorf("cell %d is %s: %s", i, c.Event, c.Call)
		}
	}
	if slices.Sort(events); len(slices.Compact(events)) < 15 || len(queuetest.Matrix()) != len(calls)*len(slices.Compact(events)) {
		t.Errorf("events %q", events)
	}
}

// What every cell must say, whatever it is.
func TestMatrixSaysWhatItMust(t *testing.T) {
	for _, c := range queuetest.Matrix() {
		stale, gone := errors.Is(c.Refused, queue.ErrStale), errors.Is(c.Refused, queue.ErrGone)
		word := "ok"
		switch {
		case stale:
			word = "ErrStale"
		case gone:
			word = "ErrGone"
		case c.Refused != nil:
			t.Errorf("%s: %s is refused with %v", c.Event, c.Call, c.Refused)
		}
		if c.Answer() != word {
			t.Errorf("%s: %s answers %s, want %s", c.Event, c.Call, c.Answer(), word)
		}
		if stale != (c.Current > 0) || stale && (c.After.State == "" || c.After.State == queue.Failed) || gone && c.After.Attempts > 0 && c.After.State != queue.Failed {
			t.Errorf("%s: %s: %+v", c.Event, c.Call, c)
		}
		if c.After.Excused+c.After.Lapses > c.After.Attempts {
			t.Errorf("%s: %s: more attempts are excused and lapsed than there were: %+v", c.Event, c.Call, c.After)
		}
	}
}

// Some cells in words, so that the rules which fill the matrix cannot all be wrong.
func TestMatrixCells(t *testing.T) {
	for _, want := range []queuetest.Cell{
		{Event: "leased", Call: "ack"},
		{Event: "overdue", Call: "retry", After: queuetest.Standing{State: queue.Ready, Returned: "retried", Attempts: 1}},
		{Event: "reaped", Call: "ack"},
		{Event: "reaped", Call: "retry", After: queuetest.Standing{State: queue.Ready, Returned: "retried", Attempts: 1}},
		{Event: "reaped", Call: "release", After: queuetest.Standing{State: queue.Ready, Returned: "released", Attempts: 1, Excused: 1}},
		{Event: "reaped", Call: "extend", After: queuetest.Standing{State: queue.Processing, Attempts: 1}},
		{Event: "reaped", Call: "fail", After: queuetest.Standing{State: queue.Failed, Attempts: 1, Lapses: 1}},
		{Event: "reaped", Call: "replace payload", After: queuetest.Standing{State: queue.Ready, Returned: "reaped", Attempts: 1, Lapses: 1}},
		{Event: "reaped", Call: "reap", Refused: queue.ErrStale, Current: 1,
			After: queuetest.Standing{State: queue.Ready, Returned: "reaped", Attempts: 1, Lapses: 1}},
		{Event: "taken over by load", Call: "ack", Refused: queue.ErrStale, Current: 2,
			After: queuetest.Standing{State: queue.Processing, Attempts: 2, Lapses: 1}},
		{Event: "snoozed", Call: "ack", Refused: queue.ErrStale, Current: 1,
			After: queuetest.Standing{State: queue.Scheduled, Returned: "released", Attempts: 1, Excused: 1}},
		{Event: "failed, reprocessed", Call: "fail", Refused: queue.ErrStale, Current: 1,
			After: queuetest.Standing{State: queue.Ready, Returned: "reprocessed", Attempts: 1, Excused: 1}},
		{Event: "failed", Call: "extend", Refused: queue.ErrGone, After: queuetest.Standing{State: queue.Failed, Attempts: 1}},
		{Event: "acked", Call: "reap", Refused: queue.ErrGone},
	} {
		if !slices.Contains(queuetest.Matrix(), want) {
			t.Errorf("the matrix does not say %+v", want)
		}
	}
}
