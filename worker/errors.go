package worker

import (
	"errors"
	"fmt"

	"example.com/holdfast/queue"
)

// A handler finds these with context.Cause, beside an error that wraps queue.ErrLost
// when the claim of its message is no longer its own.
var (
	// ErrTimeout is the cause of a context that was cancelled because the time limit of
	// the handler is over. What the handler then returns counts like any answer.
	ErrTimeout = errors.New("the handler's time limit is over")

	// ErrDraining is the cause of a context that was cancelled because the worker ends.
	// A handler that then returns the error of its context has its message released:
	// excused, and due at once.
	ErrDraining = errors.New("the worker is ending")
)

// A StoreError is returned by Run when it gave up because of the store. It unwraps
// to the store's error.
type StoreError struct {
	Op       string // claim, settle, renew, reap or wait
	Failures int    // in a row; of reaping 1, for only a fatal error of it ends a worker
	Err      error
}

func (e *StoreError) Error() string {
	if e.Failures <= 1 {
		return fmt.Sprintf("the worker cannot go on, %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("the worker gave up, %s failed %d times in a row: %v", e.Op, e.Failures, e.Err)
}

func (e *StoreError) Unwrap() error { return e.Err }

// An UnsettledError is returned by Run when the store took no settlement of these
// claims before the worker had to end. Their messages come back when their leases
// end; what their handlers did may then happen again. It unwraps to why Run ended and
// to the last refusal of a settlement.
type UnsettledError struct {
	Receipts []queue.Receipt
	Err      error // the last that a settlement met
	Cause    error // why Run ended; nil: its context was cancelled
}

func (e *UnsettledError) Error() string {
	text := fmt.Sprintf("%d messages were not settled and come back when their leases end: %v", len(e.Receipts), e.Err)
	if e.Cause != nil {
		return e.Cause.Error() + "; " + text
	}
	return text
}

// Unwrap gives the errors that are set.
func (e *UnsettledError) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Cause, e.Err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// A PanicError is what becomes of a handler that panicked or ended its goroutine.
// It counts as one failure.
type PanicError struct {
	Value  any    // of the panic; nil when Goexit
	Goexit bool   // the handler called runtime.Goexit, as testing's FailNow does
	Stack  string // the innermost calls, the panicking one first
}

func (e *PanicError) Error() string {
	if e.Goexit {
		return "the handler called runtime.Goexit\n" + e.Stack
	}
	value := fmt.Sprint(e.Value)
	if len(value) > maxPanicBytes { // leave room for the stack in a last error
		value = value[:maxPanicBytes] + "…"
	}
	return "the handler panicked: " + value + "\n" + e.Stack
}

const maxPanicBytes = 300

// Unwrap gives the value of the panic where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
