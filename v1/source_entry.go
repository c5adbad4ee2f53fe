//go:build unix

package holdfast

import (
	"crypto/sha256"
	"errors"

	"example.com/holdfast/internal/fsguard"
)

// Same reports whether both are one file with one content, as far as identity, size and
// modification time tell.
func (e Entry) Same(other Entry) bool {
	return e.Dev == other.Dev && e.Ino == other.Ino && e.Size == other.Size && e.Modified.Equal(other.Modified)
}

// Device is the device number of the directory in which entries of that state stand. A
// filesystem may come back with another one after a restart of the system; the numbers of
// its files then change alike. Zero: there is no such directory.
func (x *Source) Device(state EntryState) uint64 {
	if d := x.directory(state); d != nil {
		return d.id.Dev
	}
	return 0
}

func (x *Source) directory(state EntryState) *directory {
	if state == EntryFailed {
		return x.s.fail
	}
	return x.s.queue
}

// File names the file of an entry as a survey does.
func (x *Source) File(id string, state EntryState) string {
	name := namesOf(id).entry(state)
	if state == EntryFailed {
		return x.failedPath(name)
	}
	return name
}

// at runs f in the directory of an entry, with its name there.
func (x *Source) at(e Entry, f func(dir fsguard.Dir, name string) error) error {
	if err := checkID(e.ID); err != nil {
		return err
	}
	d := x.directory(e.State)
	if d == nil {
		return ErrNoFailedDir
	}
	return d.within(func(dir fsguard.Dir) error { return f(dir, namesOf(e.ID).entry(e.State)) })
}

// Read reads the file of an entry if it still is the one that the survey found:
// ErrChanged if not, ErrNotFound if it is gone. Other errors about the entry are
// ErrTooLarge, ErrNotFile and, with other links, ErrPathMismatch.
func (x *Source) Read(e Entry) (payload []byte, err error) {
	err = x.at(e, func(dir fsguard.Dir, name string) error {
		var file fsguard.File
		if file, payload, err = x.readSame(dir, name, e); err != nil {
			return err
		}
		return file.Close()
	})
	return payload, err
}

// readSame reads the file at name, which comes back open, if it is the file of e.
func (x *Source) readSame(dir fsguard.Dir, name string, e Entry) (fsguard.File, []byte, error) {
	file, payload, err := readEntry(dir, name, x.s.opts.MaxEntryBytes)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Info()
	if err == nil {
		var now Entry
		if now.look(info); !now.Same(e) {
			err = &Error{File: e.File, What: ErrChanged, Why: "it is another file than the one that was found first"}
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, payload, nil
}

// Remove removes the file of an entry if it still is that file and has this SHA-256:
// ErrChanged if not, and it stays. False: it was gone already. The name is gone durably
// after Sync.
func (x *Source) Remove(e Entry, sum [sha256.Size]byte) (removed bool, err error) {
	err = x.at(e, func(dir fsguard.Dir, name string) error {
		file, payload, err := x.readSame(dir, name, e)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		defer file.Close()
		if sha256.Sum256(payload) != sum {
			return &Error{File: e.File, What: ErrChanged, Why: "its content is another"}
		}
		// Held open until here: no other file can have its identity.
		err = removeIf(dir, name, file)
		removed = err == nil
		return err
	})
	return removed, err
}
