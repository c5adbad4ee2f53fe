//go:build unix

package holdfast

import (
	"errors"
	"io/fs"

	"example.com/holdfast/internal/fsguard"
)

// A writing is everything that one commit has put on the disk before its commit point.
type writing struct {
	p       *pins
	commit  token
	temp    string   // the name of the file that becomes state.json
	file    unsynced // that file
	length  int64    // of it
	spare   bool     // it is a spare
	fresh   bool     // that this commit has made: its name is not durable
	used    int64    // how far that is used by an older text
	names   bool     // this commit changes names besides, or rests on names that may not be durable
	reserve string   // the temp of a new reserve; empty: none
	made    []object
	open    []unsynced
	targets []fsguard.Syncer
	syncs   int // that succeeded

	taken    *preparedObject // holds what this commit brings
	prepared *preparedObject // for commits to come
}

// write puts objects, a new reserve and the state on the disk, unsynced; in place of the
// state, where it is to be exchanged, it opens the spare.
func (w *writing) write(s *Store, d *draft, objects []object, room roomFor, exchange bool) error {
	fresh, missed := 0, false
	for _, o := range objects {
		if o.ready != nil {
			// It was made and synced at this length. What fdatasync leaves out is not needed
			// to read the data back (fdatasync(2)).
			if err := o.ready.put(o.data); err != nil {
				return err
			}
			w.targets = append(w.targets, fsguard.DataOf(o.ready.file))
			continue
		}
		fresh++
		missed = missed || o.file == payloadFile && len(o.data) <= smallPayload
		u, err := writeObject(w.p.objects, o)
		if !errors.Is(err, fs.ErrExist) { // else it is another's
			w.made = append(w.made, o)
		}
		w.open = append(w.open, u)
		if err != nil {
			return err
		}
		w.targets = append(w.targets, u.file, u.dir)
	}
	if missed && room == enqueuing {
		w.prepare(s)
	}
	if fresh > 0 {
		w.targets = append(w.targets, w.p.objects)
	}
	if err := w.provide(s, d, int64(len(s.text)), room); err != nil {
		return err
	}
	if exchange && w.openSpare(s, d.st.revision) {
		if room == enqueuing {
			if err := w.lengthen(s); err != nil {
				return err
			}
		}
		w.names = w.names || w.reserve != "" || d.doubted()
		return nil
	}
	if err := w.fill(s.text, d.st.exchange); err != nil {
		return err
	}
	w.targets = append(w.targets, w.file.file)
	return nil
}

// fill makes a fresh file of the text, unsynced.
func (w *writing) fill(text []byte, pad bool) error {
	var err error
	if w.file.file, err = w.p.space.Create(w.temp); err != nil {
		return err
	}
	w.length = int64(len(text))
	if pad {
		w.length = toBlocks(w.length)
	}
	_, err = w.file.file.WriteAt(padded(text, w.length)[:w.length], 0)
	return err
}

// sync makes durable what was written.
func (w *writing) sync(s *Store) error {
	if len(w.targets) == 0 {
		return nil
	}
	if err := s.fs.SyncAll(w.targets...); err != nil {
		w.p.spent = true
		return syncError(err)
	}
	w.syncs += len(w.targets)
	return nil
}

// replaceReserve puts a new reserve in place of the old one.
func (w *writing) replaceReserve() error {
	if w.reserve == "" {
		return nil
	}
	return w.p.space.Rename(w.reserve, reserveFile)
}

func (w *writing) closeObjects() {
	for _, u := range w.open {
		u.close()
	}
	for _, x := range []*preparedObject{w.taken, w.prepared} {
		if x != nil {
			x.close()
			x.unsynced = unsynced{}
		}
	}
	w.open = nil
}

// take gives the prepared object to this commit, which puts it back or gives it up.
func (w *writing) take(s *Store, size int64) *preparedObject {
	w.taken = s.pool.take(w.p.objects, size)
	return w.taken
}

// drop takes back what was written before a commit point that did not come. What cannot
// be removed stays: temps go with Recover, objects are orphans.
func (w *writing) drop() {
	w.file.close()
	w.closeObjects()
	if !w.spare {
		_ = w.p.space.Remove(w.temp)
	}
	if w.reserve != "" {
		_ = w.p.space.Remove(w.reserve)
	}
	w.dropObjects()
}

func (w *writing) dropObjects() {
	w.closeObjects()
	for _, o := range w.made {
		dropObject(w.p.objects, o.name, o.file)
	}
	for _, x := range []*preparedObject{w.taken, w.prepared} {
		if x != nil {
			x.giveUp(w.p.objects)
		}
	}
	w.made, w.taken, w.prepared = nil, nil, nil
}
