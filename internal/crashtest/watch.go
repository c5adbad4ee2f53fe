//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

// A watch is the testing.TB that Check and Setup get: it collects failures
// instead of failing the test, because the explorer has more to say about each,
// and because they run in other goroutines. Skipping is a failure.
type watch struct {
	testing.TB

	mu       sync.Mutex
	lines    []string
	failed   bool
	cleanups []func()
}

func (w *watch) note(fail bool, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, strings.TrimSuffix(text, "\n"))
	w.failed = w.failed || fail
}

func (w *watch) Helper()                   {}
func (w *watch) Log(args ...any)           { w.note(false, fmt.Sprintln(args...)) }
func (w *watch) Logf(f string, a ...any)   { w.note(false, fmt.Sprintf(f, a...)) }
func (w *watch) Error(args ...any)         { w.note(true, fmt.Sprintln(args...)) }
func (w *watch) Errorf(f string, a ...any) { w.note(true, fmt.Sprintf(f, a...)) }
func (w *watch) Fatal(args ...any)         { w.Error(args...); runtime.Goexit() }
func (w *watch) Fatalf(f string, a ...any) { w.Errorf(f, a...); runtime.Goexit() }
func (w *watch) Fail()                     { w.note(true, "failed") }
func (w *watch) FailNow()                  { w.Fail(); runtime.Goexit() }
func (w *watch) Skip(args ...any)          { w.Fatal(append([]any{"skipped:"}, args...)...) }
func (w *watch) Skipf(f string, a ...any)  { w.Fatalf("skipped: "+f, a...) }
func (w *watch) SkipNow()                  { w.Fatal("skipped") }
func (w *watch) Skipped() bool             { return false }

func (w *watch) Failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

func (w *watch) Cleanup(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cleanups = append(w.cleanups, f)
}

// guard runs body in a goroutine of its own and returns what went wrong: an error,
// a failure reported to the watch, a panic, or no end within the limit.
func guard(t testing.TB, limit time.Duration, body func(t testing.TB) error) error {
	w, done := &watch{TB: t}, make(chan error, 1)
	go func() {
		err := errors.New("ended by Fatal")
		defer func() {
			if r := recover(); r != nil {
				err = &brokenError{fmt.Sprintf("panic: %v\n%s", r, debug.Stack())}
			}
			done <- err
		}()
		defer w.cleanUp()
		err = body(w)
	}()
	select {
	case err := <-done:
		if w.Failed() {
			w.mu.Lock()
			defer w.mu.Unlock()
			return errors.Join(errors.New(strings.Join(w.lines, "\n")), err)
		}
		return err
	case <-time.After(limit):
		stacks := make([]byte, 1<<20)
		return &brokenError{fmt.Sprintf("did not return within %v:\n%s", limit, stacks[:runtime.Stack(stacks, true)])}
	}
}

// A brokenError is a panic or a hang: wrong even where an error is to be expected.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

func (w *watch) cleanUp() {
	for {
		w.mu.Lock()
		last := len(w.cleanups) - 1
		if last < 0 {
			w.mu.Unlock()
			return
		}
		f := w.cleanups[last]
		w.cleanups = w.cleanups[:last]
		w.mu.Unlock()
		f()
	}
}
