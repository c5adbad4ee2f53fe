package worker

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"
	"time"
)

// attempt runs a handler in a goroutine of its own and hands its verdict to done,
// exactly once and whatever the handler does: a panic, runtime.Goexit, or an error
// whose methods panic while it is judged.
func attempt(ctx context.Context, run func(context.Context) error, p RetryPolicy, failures uint64, done func(verdict)) {
	go func() {
		var v verdict
		judged := false
		defer func() {
			if v.action == "" { // the value of a panic ended the goroutine when it was read
				v = failed(&PanicError{Goexit: true}, "the handler panicked with a value that cannot be read", p, failures).capped(failures)
				v.panicked = true
			}
			done(v)
		}()
		defer func() {
			// Goexit leaves nothing to recover; a panic always does, for panic(nil)
			// panics with a *runtime.PanicNilError.
			if value := recover(); !judged {
				v = judgePanic(&PanicError{Value: value, Goexit: value == nil, Stack: callStack()}, p, failures)
			}
		}()
		v = judge(ctx, run(ctx), p, failures)
		judged = true
	}()
}

// limited gives the context of one attempt.
func limited(parent context.Context, timeout time.Duration) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if timeout == 0 {
		return ctx, cancel
	}
	ctx, stop := context.WithTimeoutCause(ctx, timeout, ErrTimeout)
	return ctx, func(cause error) { cancel(cause); stop() }
}

// maxCalls is how much of a stack is kept: about what a last error has room for.
const maxCalls = 8

// callStack gives the innermost calls that led to the panic or Goexit whose deferred
// calls are running, one a line. Files are named without their directories, which say
// more about a machine than about a fault.
func callStack() string {
	counters := make([]uintptr, 64)
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters)])
	var calls []string
	led := false
	for more := true; more && len(calls) < maxCalls; {
		var f runtime.Frame
		f, more = frames.Next()
		switch {
		case f.Function == "runtime.gopanic" || f.Function == "runtime.Goexit":
			led = true // what came before is the worker's own
		case led && f.Function != "" && !strings.HasPrefix(f.Function, "runtime."):
			calls = append(calls, fmt.Sprintf("%s (%s:%d)", f.Function, path.Base(f.File), f.Line))
		}
	}
	return strings.Join(calls, "\n")
}
