//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"io/fs"
	"slices"

	"example.com/holdfast/internal/fsguard"
)

// A preparedObject is an object made ahead for many commits: its directory, its file and its
// edge in objects/ are durable, and the commits of a handle put their payloads into it one
// after another, each into blocks of its own, and sync the data alone. No name and no length
// changes then, and the blocks were written before, so that the filesystem's journal need
// not be waited for: an enqueue costs three syncs instead of five, and these cost less.
//
// It is ordinary JSON at any time: an array with an element for each block, null where
// nothing was put yet, and spaces behind what was.
//
// No block is written a second time. A power loss before a commit may leave any mixture in
// the blocks that this commit wrote, and no state names them; the blocks of those before it
// stay, as of a file in which whole blocks of 4 KiB are written beside them. What a failed
// commit had is not used again, for after a failed sync nobody knows what the disk has.
//
// Both descriptors are held, so that their inode numbers can mean nothing else until it
// is admitted by path under the lock. Whoever collected it meanwhile took an orphan; then
// a new object is made.
type preparedObject struct {
	unsynced      // its descriptors; its content is durable as long as nobody writes
	name          token
	size          int64 // of the file
	told          int64 // what stat tells of it, which may be wrong
	next          int64 // where the next commit writes
	named         bool  // a committed state names a part of it
	dirID, fileID fsguard.Identity
}

// Bounds of what a handle prepares. Nobody else knows of what is not used yet, and it
// remains when the process is killed.
const (
	maxPreparedBytes = 1 << 20
	maxPrepared      = 64      // commits for which there is room
	preparedBlock    = 4 << 10 // a commit takes so many of these as it needs

	// preparesAfter enqueue commits: a command that enqueues once or a few times shall
	// not prepare what it will never use.
	preparesAfter = 8

	// preparedFree is what must be free above the floor: the room belongs to messages.
	preparedFree = 16 << 20

	preparedElement = "null" // what a block holds before it is used, behind a '[' or a ','
)

// A pool has the prepared object of a handle. It is run's own.
//
// It is filled by an enqueue commit that has to make an object anyway: the one for the commits
// to come is made beside it, under the lock, and synced at the same time as all that it
// syncs. So the journal is paid once for both; at another time it would cost a journal
// commit of its own, in the way of those of others. And were it made outside the lock, its name
// in objects/ could be among those that the failed sync of another process had to make
// durable: older kernels tell of such a failure once, and our own sync would answer nil.
type pool struct {
	ready  *preparedObject
	after  int      // misses before the first filling; negative: there is none
	misses int      // commits that had to make an object that could have been prepared
	target int      // for how many commits the last one was made
	sizes  [8]int64 // of what was asked for last
	asked  int
}

// take gives the prepared object if it has room for size bytes, admitted under the lock;
// nil: an object is to be made. Whoever takes it puts it back, or gives it up.
func (o *pool) take(objects fsguard.Dir, size int64) *preparedObject {
	if o.after < 0 || size > smallPayload {
		return nil
	}
	o.sizes[o.asked%len(o.sizes)] = size
	o.asked++
	x := o.ready
	if x == nil || !x.holds(size) {
		return nil
	}
	o.ready = nil
	if !x.stands(objects) {
		x.close() // what stands there now is not ours
		return nil
	}
	return x
}

// blocksFor is how many bytes a commit takes that puts size bytes there.
func blocksFor(size int64) int64 {
	return (1 + size + preparedBlock - 1) / preparedBlock * preparedBlock
}

// holds reports whether size bytes fit behind what is used: a byte before them and, in the
// last block, one behind them are the array's.
func (x *preparedObject) holds(size int64) bool {
	end := x.next + blocksFor(size)
	return end < x.size || end == x.size && x.next+1+size < end
}

// put writes data, unsynced, one byte behind next, and moves that on.
func (x *preparedObject) put(data []byte) error {
	at := x.next + 1
	x.next += blocksFor(int64(len(data)))
	// The last block may hold a whole element still that data covers a part of.
	if least := x.next - preparedBlock + 1 + int64(len(preparedElement)) - at; int64(len(data)) < least {
		data = padded(slices.Clone(data), least)[:least]
	}
	_, err := x.file.WriteAt(data, at)
	return err
}

// stands reports whether the paths still name what was made.
func (x *preparedObject) stands(objects fsguard.Dir) bool {
	dir, err := objects.Lstat(x.name.String())
	if err != nil || dir.Identity != x.dirID {
		return false
	}
	file, err := x.dir.Lstat(payloadFile)
	return err == nil && file.Identity == x.fileID && file.Plain() && file.Size == x.told
}

// giveUp closes it, and removes it where nothing names a part of it.
func (x *preparedObject) giveUp(objects fsguard.Dir) {
	x.close()
	if !x.named {
		dropObject(objects, x.name, payloadFile)
	}
}

// want says how large an object a commit prepares that had to make one: none for a handle's
// first enqueues, then one for two commits, and for twice as many each time it is used up.
func (o *pool) want() (size int64) {
	if o.after < 0 {
		return 0
	}
	if o.misses++; o.misses <= o.after {
		return 0
	}
	unit := blocksFor(slices.Max(o.sizes[:]) + 1)
	o.target = min(max(2, 2*o.target), maxPrepared)
	return min(int64(o.target)*unit, maxPreparedBytes/unit*unit)
}

// keep takes what a commit that happened used and prepared.
func (o *pool) keep(w *writing) {
	for _, x := range []*preparedObject{w.taken, w.prepared} {
		if x != nil {
			x.named = x == w.taken
			o.ready = x
		}
	}
	w.taken, w.prepared = nil, nil
}

// giveUp gives up what is left and begins anew, as a handle does that was just opened.
func (o *pool) giveUp(objects fsguard.Dir) {
	if o.ready != nil {
		o.ready.giveUp(objects)
	}
	o.ready, o.misses, o.target = nil, 0, 0
}

// prepare makes the object for the commits to come, unsynced. When that fails it is left
// out: this commit needs none.
func (w *writing) prepare(s *Store) {
	size := s.pool.want()
	if size == 0 || w.taken != nil {
		return
	}
	space, err := w.p.space.Space()
	if err != nil || space.Free < uint64(max(0, s.opts.MinFreeBytes))+preparedFree {
		s.pool.giveUp(w.p.objects)
		return
	}
	if s.pool.ready != nil { // it has no room left
		s.pool.ready.giveUp(w.p.objects)
		s.pool.ready = nil
	}
	name, err := newToken(s.rand)
	if err != nil {
		return
	}
	x := &preparedObject{name: name, size: size}
	if err := x.make(w.p.objects); err != nil {
		x.named = errors.Is(err, fs.ErrExist) // by another then
		x.giveUp(w.p.objects)
		return
	}
	w.prepared = x
	w.targets = append(w.targets, x.file, x.dir)
}

func (x *preparedObject) make(objects fsguard.Dir) (err error) {
	text := bytes.Repeat([]byte(" "), int(x.size))
	for i := 0; i < len(text); i += preparedBlock {
		text[i] = ','
		copy(text[i+1:], preparedElement)
	}
	text[0], text[len(text)-1] = '[', ']'
	if x.unsynced, err = writeObject(objects, object{name: x.name, file: payloadFile, data: text}); err != nil {
		return err
	}
	dir, err := x.dir.Info()
	if err != nil {
		return err
	}
	file, err := x.file.Info()
	x.dirID, x.fileID, x.told = dir.Identity, file.Identity, file.Size
	return err
}
