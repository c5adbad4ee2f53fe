//go:build unix

package doctor

import (
	"errors"

	"example.com/holdfast/internal/fsguard"
)

// lockTests try flock, on what the store locks.
var lockTests = []test{
	{Check: Check{
		Name: "file_lock", Needed: true,
		Tried: "lock a file (flock) that is open twice",
		For:   "one writer at a time; and the proof that a worker is dead",
	}, inside: true, run: (*exam).fileLock},
	{Check: Check{
		Name: "directory_lock", Needed: true,
		Tried: "lock a directory (flock) that is open twice",
		For:   "one creation at a time",
	}, inside: true, run: (*exam).directoryLock},
}

func (e *exam) fileLock() finding {
	first, err := e.scratch.Create("locked")
	if err != nil {
		return refused(err)
	}
	defer first.Close()
	second, err := e.scratch.OpenWrite("locked")
	if err != nil {
		return refused(err)
	}
	defer second.Close()
	return exclude(first, second, first.Close)
}

func (e *exam) directoryLock() finding {
	first, err := e.scratch.OpenDir(".")
	if err != nil {
		return refused(err)
	}
	defer first.Close()
	second, err := e.scratch.OpenDir(".")
	if err != nil {
		return refused(err)
	}
	defer second.Close()
	return exclude(first, second, first.Close)
}

// exclude tries whether a lock keeps another description out, lets it in when it is
// given up, and when it is closed.
func exclude(first, second fsguard.Locker, closeFirst func() error) finding {
	try := func(l fsguard.Locker, mode fsguard.LockMode, want bool, wrong string) error {
		got, err := l.TryLock(mode)
		if err == nil && got != want {
			err = wrongLock(wrong)
		}
		return err
	}
	for _, step := range []func() error{
		func() error { return first.Lock(fsguard.Exclusive) },
		func() error { return try(second, fsguard.Exclusive, false, "two hold it exclusively at once") },
		func() error { return try(second, fsguard.Shared, false, "one shares what another holds exclusively") },
		first.Unlock,
		func() error { return try(second, fsguard.Shared, true, "it is held after it was given up") },
		func() error { return try(first, fsguard.Shared, true, "two cannot share it") },
		second.Unlock,
		closeFirst,
		func() error { return try(second, fsguard.Exclusive, true, "it is held after it was closed") },
	} {
		err := step()
		var wrong wrongLock
		switch {
		case errors.As(err, &wrong):
			return broken(string(wrong))
		case err != nil:
			return refused(err)
		}
	}
	return works("")
}

// A wrongLock says how a lock did not do what locks do.
type wrongLock string

func (w wrongLock) Error() string { return string(w) }
