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
func (x *Source) Marker() (text []byte, there bool, err error) {
	err = x.s.queue.within(func(q fsguard.Dir) error {
		var file fsguard.File
		file, text, err = readEntry(q, markerFile, maxMarkerBytes)
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
func (x *Source) SetMarker(text []byte) error {
	return x.s.queue.within(func(q fsguard.Dir) error {
		temp, err := writeTemp(q, x.s.opts.TempPrefix, text)
		if err != nil {
			return err
		}
		defer temp.Close()
		if err := q.Rename(temp.Name(), markerFile); err != nil {
			return errors.Join(err, removeIf(q, temp.Name(), temp))
		}
		return syncDir(q, x.Dir())
	})
}

// RemoveMarker removes the marker: the directory is a queue again. On nil that is
// durable; without a marker it is so already.
func (x *Source) RemoveMarker() error {
	return x.s.queue.within(func(q fsguard.Dir) error {
		if err := q.Remove(markerFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return syncDir(q, x.Dir())
	})
}

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
	if !isLock(strings.TrimSuffix(file, reclaimSuffix)) {
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
