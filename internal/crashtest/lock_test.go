//go:build unix

package crashtest

import (
	"io/fs"
	"runtime"
	"syscall"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

func try(t *testing.T, l fsguard.Locker, mode fsguard.LockMode, want bool) {
	t.Helper()
	if got := must(l.TryLock(mode))(t); got != want {
		t.Errorf("TryLock got %v, want %v", got, want)
	}
}

// awaitWaiter returns once a Lock waits.
func awaitWaiter(d *Disk) {
	for d.Waiting() == 0 {
		runtime.Gosched()
	}
}

func TestProcessesExcludeEachOther(t *testing.T) {
	d, p, a := store(t)
	q := d.Process()
	b := openRoot(t, q)
	ok(t, a.Lock(fsguard.Exclusive))
	try(t, b, fsguard.Exclusive, false)
	try(t, b, fsguard.Shared, false)
	try(t, openRoot(t, p), fsguard.Shared, false) // another description of the same process
	try(t, a, fsguard.Exclusive, true)            // the same one

	got := make(chan error)
	go func() { got <- b.Lock(fsguard.Exclusive) }()
	awaitWaiter(d)
	p.Kill()
	ok(t, <-got)
	try(t, openRoot(t, q), fsguard.Shared, false)
	ok(t, b.Close())
	try(t, openRoot(t, q), fsguard.Shared, true)
}

func TestSharedLocksAndConversion(t *testing.T) {
	_, p, a := store(t)
	b := openRoot(t, p)
	try(t, a, fsguard.Shared, true)
	try(t, b, fsguard.Shared, true)
	try(t, a, fsguard.Exclusive, false) // and has lost its shared lock, as on Linux
	try(t, b, fsguard.Exclusive, true)
	ok(t, b.Lock(fsguard.Shared))
	try(t, a, fsguard.Shared, true)
	ok(t, b.Unlock())
	ok(t, b.Unlock()) // not held: no error
	try(t, a, fsguard.Exclusive, true)
}

// A Lock that waits ends with its process, and with its description.
func TestWaitingLockEnds(t *testing.T) {
	d, _, a := store(t)
	ok(t, a.Lock(fsguard.Exclusive))
	q := d.Process()
	b, c := openRoot(t, q), openRoot(t, q)
	got := make(chan error)
	go func() { got <- b.Lock(fsguard.Shared) }()
	awaitWaiter(d)
	ok(t, b.Close())
	err := <-got
	wantErr(t, err, fsguard.OpLock, fs.ErrClosed)
	wantErr(t, err, fsguard.OpLock, syscall.EBADF)
	go func() { got <- c.Lock(fsguard.Shared) }()
	awaitWaiter(d)
	q.Kill()
	wantErr(t, <-got, fsguard.OpLock, ErrKilled)
	try(t, openRoot(t, d.Process()), fsguard.Shared, false)
	ok(t, a.Close())
	try(t, openRoot(t, d.Process()), fsguard.Shared, true)
}
