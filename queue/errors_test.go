package queue

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// all is every sentinel of the package.
var all = map[string]error{
	"ErrInvalid": ErrInvalid, "ErrInvalidName": ErrInvalidName, "ErrInvalidPayload": ErrInvalidPayload,
	"ErrInvalidReceipt": ErrInvalidReceipt, "ErrTooLarge": ErrTooLarge, "ErrDuplicate": ErrDuplicate, "ErrFull": ErrFull,
	"ErrNotFound": ErrNotFound, "ErrLeased": ErrLeased, "ErrDamaged": ErrDamaged,
	"ErrLost": ErrLost, "ErrStale": ErrStale, "ErrGone": ErrGone,
	"ErrFailedExists": ErrFailedExists, "ErrNotFailed": ErrNotFailed, "ErrInFlight": ErrInFlight,
	"ErrUncertain": ErrUncertain, "ErrClosed": ErrClosed,
}

// is pins the whole answer of errors.Is: the named sentinels and no others.
func is(t *testing.T, err error, names ...string) {
	t.Helper()
	want := map[string]bool{}
	for _, name := range names {
		if all[name] == nil {
			t.Fatalf("no sentinel %s", name)
		}
		want[name] = true
	}
	for name, sentinel := range all {
		if got := errors.Is(err, sentinel); got != want[name] {
			t.Errorf("%v: is %s: %v; want %v", err, name, got, want[name])
		}
	}
}

func TestSentinels(t *testing.T) {
	wraps := map[string]string{
		"ErrInvalidName": "ErrInvalid", "ErrInvalidPayload": "ErrInvalid", "ErrInvalidReceipt": "ErrInvalid", "ErrTooLarge": "ErrInvalid",
		"ErrStale": "ErrLost", "ErrGone": "ErrLost",
	}
	for name, err := range all {
		if parent, ok := wraps[name]; ok {
			is(t, err, name, parent)
		} else {
			is(t, err, name)
		}
	}
}

func TestLostError(t *testing.T) {
	stale := &LostError{Queue: "inbox", ID: "a", Attempt: 1, Current: 2, Reason: "claimed again", Err: ErrStale}
	gone := &LostError{Queue: "inbox", ID: "a", Attempt: 1, Reason: "acked", Err: ErrGone}
	is(t, stale, "ErrStale", "ErrLost")
	is(t, gone, "ErrGone", "ErrLost")

	for err, want := range map[*LostError]string{
		stale: "inbox/a attempt 1: stale: claimed again (now at attempt 2)",
		gone:  "inbox/a attempt 1: gone: acked",
	} {
		if err.Error() != want {
			t.Errorf("text %q; want %q", err, want)
		}
		var lost *LostError
		if !errors.As(fmt.Errorf("ack: %w", err), &lost) || lost != err {
			t.Errorf("%v: errors.As gave %v", err, lost)
		}
	}
}

func TestDamagedError(t *testing.T) {
	err := &DamagedError{Queue: "inbox", ID: "a", FailedName: "a~g", Reason: "short by 3 bytes"}
	is(t, err, "ErrDamaged")
	const want = `inbox/a: damaged payload (short by 3 bytes); kept as failed "a~g"`
	if err.Error() != want {
		t.Errorf("text %q; want %q", err, want)
	}
	var damaged *DamagedError
	if !errors.As(fmt.Errorf("load: %w", err), &damaged) || damaged != err {
		t.Errorf("errors.As gave %v", damaged)
	}
}

func TestBatchError(t *testing.T) {
	err := &BatchError{Refused: []Refusal{
		{Index: 3, Err: fmt.Errorf("inbox/a is pending: %w", ErrDuplicate)},
		{Index: 7, Err: fmt.Errorf("payload of 9 bytes: at most 8: %w", ErrTooLarge)},
	}}
	is(t, err, "ErrDuplicate", "ErrTooLarge", "ErrInvalid")
	const want = "batch refused, nothing was enqueued: 2 refused, the first at index 3: inbox/a is pending: the ID is live already"
	if err.Error() != want {
		t.Errorf("text %q; want %q", err, want)
	}
	var batch *BatchError
	if !errors.As(fmt.Errorf("enqueue: %w", err), &batch) || batch != err {
		t.Errorf("errors.As gave %v", batch)
	}

	empty := &BatchError{}
	is(t, empty)
	if empty.Error() != "batch refused" {
		t.Errorf("text %q", empty)
	}

	// A struct inside a batch is found too.
	inner := &LostError{Err: ErrGone}
	var lost *LostError
	if !errors.As(&BatchError{Refused: []Refusal{{Err: inner}}}, &lost) || lost != inner {
		t.Errorf("errors.As into a batch gave %v", lost)
	}
}

func TestUncertainError(t *testing.T) {
	err := &UncertainError{
		Store: "s", Revision: 7, Commit: "c", Base: "b",
		Enqueued: []Enqueued{{Queue: "inbox", ID: "a"}},
		Err:      fmt.Errorf("sync: %w", io.ErrShortWrite),
	}
	is(t, err, "ErrUncertain")
	if !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("%v does not unwrap to its cause", err)
	}
	const want = "uncertain whether revision 7 happened: sync: short write"
	if err.Error() != want {
		t.Errorf("text %q; want %q", err, want)
	}
	var uncertain *UncertainError
	if !errors.As(fmt.Errorf("enqueue: %w", err), &uncertain) || uncertain != err {
		t.Errorf("errors.As gave %v", uncertain)
	}

	// The refusal that the call would have met is not the call's result: nobody
	// may take it for certain.
	refused := &UncertainError{Refused: ErrDuplicate, Err: io.ErrShortWrite}
	is(t, refused, "ErrUncertain")

	// One without a cause is still uncertain.
	is(t, &UncertainError{}, "ErrUncertain")
}

// Style: lower case, so that errors read on after a colon.
func TestErrorTexts(t *testing.T) {
	for name, err := range all {
		if text := err.Error(); text == "" || strings.ToLower(text[:1]) != text[:1] || strings.HasSuffix(text, ".") {
			t.Errorf("%s: text %q", name, text)
		}
	}
}
