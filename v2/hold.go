//go:build unix

package holdfast

import (
	"errors"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A held is the state of one revision, and the objects that it names, for whoever reads
// them after the transfer lock is given up. Work goes on meanwhile: a commit changes no
// object, and leaves those alone that an earlier state named. Only a collection removes
// them, and that takes the lock on objects/ exclusively, without waiting; a held has it
// shared, on a description of its own, from before the transfer lock is released.
type held struct {
	st      *state // its runs are read through this
	objects fsguard.Dir
	now     instant
	settled bool
	owner   *queue.Owner
}

// errMoved is the answer of a look without the lock that the state has gone past.
var errMoved = errors.New("the state moved on")

// hold keeps what v looks at: the committed state, whatever else enters its commit. It is
// to be released.
func (v *view) hold() (*held, error) {
	objects, err := v.pins.shareObjects()
	if err != nil {
		return nil, err
	}
	h := &held{objects: objects, now: v.draft.now, settled: v.settled, owner: v.owner}
	if v.unlocked != nil {
		if err := v.unmoved(); err != nil {
			h.release()
			return nil, err
		}
	}
	h.st = h.reading(v.draft.base)
	return h, nil
}

// unmoved reports errMoved unless the state that was read is in state.json still: a
// look without the transfer lock may have read it before a collection that is over.
func (v *view) unmoved() error {
	file, err := openState(v.pins)
	if err != nil {
		return err
	}
	defer file.Close() // only read
	st := v.unlocked
	same, err := beginsWith(file, appendHead(nil, head{st.commit, st.store, st.revision}))
	if err == nil && !same {
		err = errMoved
	}
	return err
}

// reading gives st with a reader of its own: that of a store is its pipeline's.
func (h *held) reading(st *state) *state {
	own := *st
	own.reader = newRunFiles(func() fsguard.Dir { return h.objects })
	return &own
}

// release lets collections in again. Unlocking says so at once: a child that this process
// is just starting has the descriptor too, until its exec. It may be called on nil.
func (h *held) release() {
	if h != nil {
		_ = h.objects.Unlock() // closing does it too, but for that child
		_ = h.objects.Close()  // only read
	}
}
