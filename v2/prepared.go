//go:build unix

package holdfast

import (
	"bytes"
	"slices"

	"example.com/holdfast/internal/fsguard"
)

// A preparedObject is an object made ahead: its directory, its file full of spaces and its edge
// in objects/ are durable, and nothing names it. The commit that takes it writes its
// payloads over the beginning, which leaves ordinary JSON with spaces behind it, and syncs
// the data alone. No name and no length changes then, and the blocks were written before,
// so that the filesystem's journal need not be waited for: an enqueue costs three syncs
// instead of five, and these cost less.
//
// A power loss before that commit may leave any mixture of spaces and payload: no state
// names it. It is used once. What its commit does not keep is thrown away, for after a
// failed sync nobody knows what the disk has.
//
// Both descriptors are held, so that their inode numbers can mean nothing else until it
// is admitted by path under the lock. Whoever collected it meanwhile took an orphan; then
// a new object is made.
type preparedObject struct {
	unsynced      // its descriptors; its content is durable as long as nobody writes
	name          token
	size          int64
	dirID, fileID fsguard.Identity
}

// Bounds of what a handle keeps prepared. Its objects are orphans to everybody else, and
// remain such when the process is killed.
const (
	maxPrepared      = 16
	maxPreparedBytes = 1 << 20
	preparedUnit     = 4096 // their sizes are multiples of it

	// preparesAfter enqueue commits: a command that enqueues once or a few times shall
	// not prepare what it will never use.
	preparesAfter = 8

	// preparedFree is what must be free above the floor: the room belongs to messages.
	preparedFree = 16 << 20
)

// A pool has the prepared objects of a handle, of about one size. It is run's own.
//
// It is filled by an enqueue commit that has to make an object anyway: the further ones
// are made beside it, under the lock, and synced at the same time as all that it syncs. So
// the journal is paid once for all of them; at another time they would cost a journal commit
// of their own, in the way of those of others. And were they made outside the lock, their names
// in objects/ could be among those that the failed sync of another process had to make
// durable: older kernels tell of such a failure once, and our own sync would answer nil.
type pool struct {
	ready  []*preparedObject
	after  int      // misses before the first filling; negative: there is none
	misses int      // commits that had to make an object that could have been prepared
	target int      // how many the last filling made
	sizes  [8]int64 // of the objects that were asked for last
	asked  int
}

// take gives a prepared object that holds size bytes, admitted under the lock; nil: there
// is none, and one is to be made.
func (o *pool) take(objects fsguard.Dir, size int64) *preparedObject {
	if o.after < 0 || size > smallPayload {
		return nil
	}
	o.sizes[o.asked%len(o.sizes)] = size
	o.asked++
	for i := len(o.ready) - 1; i >= 0; i-- {
		x := o.ready[i]
		if x.size < size {
			continue
		}
		o.ready = slices.Delete(o.ready, i, i+1)
		if x.stands(objects) {
			return x
		}
		x.close() // what stands there now is not ours
	}
	return nil
}

// stands reports whether the paths still name what was made.
func (x *preparedObject) stands(objects fsguard.Dir) bool {
	dir, err := objects.Lstat(x.name.String())
	if err != nil || dir.Identity != x.dirID {
		return false
	}
	file, err := x.dir.Lstat(payloadFile)
	return err == nil && file.Identity == x.fileID && file.Plain() && file.Size == x.size
}

// want says how many objects of what size a commit prepares that had to make one: none for
// a handle's first enqueues, then two, and twice as many each time they are used up.
func (o *pool) want() (n int, size int64) {
	if o.after < 0 {
		return 0, 0
	}
	if o.misses++; o.misses <= o.after {
		return 0, 0
	}
	size = (slices.Max(o.sizes[:]) + preparedUnit - 1) / preparedUnit * preparedUnit
	o.target = min(max(2, 2*o.target), maxPrepared, int(maxPreparedBytes/size))
	return o.target, size
}

// giveUp throws away what is left and begins anew, as a handle does that was just opened.
func (o *pool) giveUp(objects fsguard.Dir) {
	for _, x := range o.ready {
		x.close()
		dropObject(objects, x.name, payloadFile)
	}
	o.ready, o.misses, o.target = nil, 0, 0
}

// prepare makes objects for the commits to come, unsynced. What fails is left out: this
// commit needs none of them.
func (w *writing) prepare(s *Store) {
	n, size := s.pool.want()
	if n == 0 {
		return
	}
	space, err := w.p.space.Space()
	if err != nil || space.Free < uint64(max(0, s.opts.MinFreeBytes))+preparedFree {
		s.pool.giveUp(w.p.objects)
		return
	}
	for _, x := range s.pool.ready { // these did not fit
		x.close()
		dropObject(w.p.objects, x.name, payloadFile)
	}
	s.pool.ready = nil
	spaces := bytes.Repeat([]byte(" "), int(size))
	for range n {
		name, err := newToken(s.rand)
		if err != nil {
			return
		}
		x := &preparedObject{name: name, size: size}
		if err := x.write(w.p.objects, spaces); err != nil {
			x.close()
			dropObject(w.p.objects, name, payloadFile)
			return
		}
		w.prepared = append(w.prepared, x)
		w.targets = append(w.targets, x.file, x.dir)
	}
}

func (x *preparedObject) write(objects fsguard.Dir, spaces []byte) (err error) {
	if x.unsynced, err = writeObject(objects, object{name: x.name, file: payloadFile, data: spaces}); err != nil {
		return err
	}
	dir, err := x.dir.Info()
	if err != nil {
		return err
	}
	file, err := x.file.Info()
	x.dirID, x.fileID = dir.Identity, file.Identity
	return err
}
