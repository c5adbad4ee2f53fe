//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"example.com/holdfast/queue"
)

// minReserve is the reserve of a small store. XFS makes no file while less than about 160 KiB
// are free, so giving up less would not let anything be settled there.
const minReserve = 256 << 10

// isFull reports whether err is the disk's word that it has no room, said before
// anything was committed: an uncertain commit is never tried again. EMLINK is that
// word for a directory that can hold no further one.
func isFull(err error) bool {
	return !isUncertain(err) && isAny(err, unix.ENOSPC, unix.EDQUOT, unix.EMLINK)
}

// noRoom is isFull, or that the state or the process has no room: without the calls
// that take it, the others of the commit can still go through.
func noRoom(err error) bool {
	return isFull(err) || !isUncertain(err) && isAny(err, queue.ErrFull, unix.EMFILE, unix.ENFILE)
}

func isUncertain(err error) bool {
	var open *uncertainCommit
	return errors.As(err, &open)
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// room says why nothing may be enqueued now, or nil.
func (s *Store) room(p *pins) error {
	floor := s.opts.MinFreeBytes
	if floor < 0 {
		return nil
	}
	space, err := p.space.Space()
	if err != nil {
		return err
	}
	if space.Free < uint64(floor) {
		return fmt.Errorf("the disk has %d bytes left, the floor is %d: %w", space.Free, floor, queue.ErrFull)
	}
	return nil
}

// roomFor is what the calls of a commit take room for.
type roomFor int

const (
	settlingOnly roomFor = iota
	claiming             // or loading, or replacing a payload
	enqueuing
)

// provide sees to it that what this commit adds can be settled later on a full disk: by
// a reserve that holds the state as it is and as it may become when everything in it is
// claimed and failed. Enqueues make one where there is none; whatever else adds to the
// state makes a larger one when it outgrows it, but no settlement is refused for that.
// Where the reserve was given up, claims go on for as long as the disk has room for
// the state twice: the new one and the one that settles it.
func (w *writing) provide(s *Store, d *draft, size int64, room roomFor) error {
	switch {
	case room == settlingOnly && (size <= s.cached.size || d.tight):
		return nil
	case room == claiming && d.tight:
		space, err := w.p.space.Space()
		if err == nil && space.Free < uint64(2*size+recoveryRoom) {
			err = fmt.Errorf("the disk has %d bytes left, and no reserve: %w", space.Free, unix.ENOSPC)
		}
		return err
	}
	return w.growReserve(s, size+d.owed(), room)
}

// growReserve makes a reserve of at least size. It grows by doubling, so that few
// commits pay for it. What is no enqueue is content with any reserve that is large enough:
// one below the minimum, of an earlier program, may stand on a disk that has no room for more.
func (w *writing) growReserve(s *Store, size int64, room roomFor) error {
	want := int64(minReserve)
	for want < size {
		want *= 2
	}
	enough := want
	if room != enqueuing {
		enough = size
	}
	if stands, err := reserveHolds(w.p, enough); stands || err != nil {
		return err
	}
	tok, err := newToken(s.rand)
	if err != nil {
		return err
	}
	name := reserveTemp(tok)
	file, err := w.p.space.Create(name)
	if err != nil {
		return err
	}
	w.reserve = name
	w.open = append(w.open, unsynced{file: file})
	if err := file.Allocate(want); err != nil {
		return err
	}
	w.targets = append(w.targets, file)
	return nil
}

// reserveHolds reports whether there is a reserve of that size. Where a smaller size is told
// it is read: a filesystem may tell wrong ones.
func reserveHolds(p *pins, size int64) (bool, error) {
	info, err := p.space.Lstat(reserveFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = admitPlain(reserveFile, info)
	}
	if err != nil || info.Size >= size {
		return err == nil, err
	}
	file, err := openFile(p.space.Open, reserveFile)
	if err != nil {
		return false, err
	}
	defer file.Close() // only read
	_, err = readFull(file, make([]byte, 1), size-1)
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// reserved reports whether the reserve stands.
func reserved(p *pins) (bool, error) {
	_, err := p.space.Lstat(reserveFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// giveUpReserve frees the reserve for a commit that settles, and reports whether
// there was one. It is rebuilt before the next enqueue is accepted. No sync: a
// reserve that comes back after a power loss is only larger than need be.
func (s *Store) giveUpReserve(p *pins) bool {
	return p.space.Remove(reserveFile) == nil
}
