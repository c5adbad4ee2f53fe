//go:build unix

package main

import (
	"fmt"
	"io"
	"sync"
)

// A tally is what this command changed and has not yet told on stdout. When
// stdout fails, it is told on stderr: the change happened all the same.
type tally struct {
	verb     string
	what     string // the first
	n        int64
	receipts []string
}

// did notes a change before its line is printed.
func (a *app) did(verb, what string) {
	if a.undone.n == 0 {
		a.undone.verb, a.undone.what = verb, what
	}
	a.undone.n++
}

// flush writes what was printed. Once it is out, nothing is left to be told.
func (a *app) flush() error {
	err := a.out.Flush()
	if err == nil {
		a.undone = tally{}
	}
	return err
}

// unwritten is the error for output that could not be written.
func (t *tally) unwritten(err error) error {
	f := facts{outside: true, receipts: t.receipts}
	switch t.n {
	case 0:
		return about(err, f)
	case 1:
		return about(fmt.Errorf("%s %s, but this could not be written: %w", t.verb, t.what, err), f)
	}
	return about(fmt.Errorf("%s %s, the first %s, but not all of this could be written: %w",
		t.verb, plural(t.n, "message"), t.what, err), f)
}

// A lockedWriter is a stream on which a command and the one who watches it write
// whole lines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Fd is that of the stream; where it has none, one that nobody has.
func (l *lockedWriter) Fd() uintptr {
	if f, ok := l.w.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}
