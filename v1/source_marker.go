//go:build unix

package holdfast

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// maxMarkerBytes bounds a marker: it names every entry that was handed over.
const maxMarkerBytes = 1 << 30

// Marker gives the content of the marker that says that the directory was handed over, or
// is being handed over. False: there is none.
func (x *Source) Marker() (text []byte, there bool, err error) { return x.s.queue.marker() }

// FailedMarker gives that of the failed directory. Without one there is none.
func (x *Source) FailedMarker() (text []byte, there bool, err error) { return x.s.fail.marker() }

func (d *directory) marker() (text []byte, there bool, err error) {
	if d == nil {
		return nil, false, nil
	}
	err = d.within(func(dir fsguard.Dir) error {
		var file fsguard.File
		file, text, err = readEntry(dir, markerFile, maxMarkerBytes)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		there = true
		return file.Close()
	})
	return text, there && err == nil, err
}

// SetMarker writes the marker, or another one in its place. A reader sees the old one or
// the new one. On nil it is durable, and Open refuses the directory. With ErrUncertain it
// is visible; after any other error, or a crash, the old one stands. Call again.
func (x *Source) SetMarker(text []byte) error { return x.setMarker(x.s.queue, text) }

// SetFailedMarker writes that of the failed directory, in the same way. Open does not look
// at it: queues that share the directory go on. ErrNoFailedDir: there is no such directory.
func (x *Source) SetFailedMarker(text []byte) error { return x.setMarker(x.s.fail, text) }

func (x *Source) setMarker(d *directory, text []byte) error {
	if d == nil {
		return ErrNoFailedDir
	}
	return d.within(func(dir fsguard.Dir) error {
		temp, err := writeTemp(dir, x.s.opts.TempPrefix, text)
		if err != nil {
			return err
		}
		defer temp.Close()
		if err := dir.Rename(temp.Name(), markerFile); err != nil {
			return errors.Join(err, removeIf(dir, temp.Name(), temp))
		}
		return syncDir(dir, d.path)
	})
}

// RemoveMarker removes the marker: the directory is a queue again. On nil that is
// durable; without a marker it is so already.
func (x *Source) RemoveMarker() error { return x.s.queue.removeMarker() }

// RemoveFailedMarker removes that of the failed directory, if there is one.
func (x *Source) RemoveFailedMarker() error { return x.s.fail.removeMarker() }

func (d *directory) removeMarker() error {
	if d == nil {
		return nil
	}
	return d.within(func(dir fsguard.Dir) error {
		if err := dir.Remove(markerFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return syncDir(dir, d.path)
	})
}

// IsLockFile reports whether a file of that name is a transfer lock, or a .reclaim beside
// one.
func IsLockFile(name string) bool { return isLock(strings.TrimSuffix(name, reclaimSuffix)) }

// heldLock tells of the lock, or the .reclaim, at name. False: let go just now.
func (x *Source) heldLock(q fsguard.Dir, name string) (HeldLock, bool, error) {
	if strings.HasSuffix(name, reclaimSuffix) {
		info, there, err := lstat(q, name)
		created := time.Unix(0, info.MtimeNanos)
		return HeldLock{Lock: Lock{File: name, Created: created, Age: x.s.opts.now().Sub(created)}, Reclaim: true}, there, err
	}
	lock, err := x.s.lockAt(q, name)
	if errors.Is(err, fs.ErrNotExist) {
		return HeldLock{}, false, nil
	}
	return HeldLock{Lock: lock}, err == nil, err
}

// RemoveLock removes a transfer lock, or a .reclaim, that the operator has named, whatever
// its age: that its owner is gone is the operator's word. It tells what it removed. A
// name that is no lock's is ErrInvalidPath; ErrNotFound: none stands. On nil it is
// durably gone.
func (x *Source) RemoveLock(file string) (lock HeldLock, err error) {
	if !IsLockFile(file) {
		return lock, &Error{File: file, What: ErrInvalidPath, Why: "not the name of a transfer lock"}
	}
	err = x.s.queue.within(func(q fsguard.Dir) error {
		var there bool
		if lock, there, err = x.heldLock(q, file); err != nil {
			return err
		}
		if !there {
			return &Error{File: file, What: ErrNotFound}
		}
		if lock.ID, err = x.lockedID(q, file); err != nil {
			return err
		}
		info, _, err := lstat(q, file)
		if err != nil {
			return err
		}
		if info.Mode.IsDir() { // as the npm package makes a .reclaim
			err = q.RemoveDir(file)
		} else {
			err = q.Remove(file)
		}
		if err != nil {
			return err
		}
		return syncDir(q, x.Dir())
	})
	return lock, err
}

// lockedID tells which entry the lock, or the .reclaim, at name is for. Empty: none that
// stands.
func (x *Source) lockedID(q fsguard.Dir, name string) (string, error) {
	listed, err := q.ReadDir()
	if err != nil {
		return "", err
	}
	records, err := x.records(q)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, other := range listed {
		if id, _, entry := cutEntry(other); entry {
			ids = append(ids, id)
		}
	}
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	for _, id := range ids {
		if namesOf(id).lock == strings.TrimSuffix(name, reclaimSuffix) {
			return id, nil
		}
	}
	return "", nil
}
