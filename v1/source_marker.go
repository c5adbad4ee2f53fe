//go:build unix

package holdfast

import (
	"errors"
	"io/fs"

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
