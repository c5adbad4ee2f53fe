//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A holder is what stands for this process in a store: an empty file in holders/ of
// its own, under a fresh token, open and locked from the first claim until the process
// ends. Leases name the token. Whoever can take the lock knows from the kernel that
// every descriptor on the file is closed: that the process is gone, and with it every
// child that was given a duplicate.
//
// The file is made, and removed again when it cannot be locked, by whoever holds the
// transfer lock exclusively. So while that lock is held, a file in holders/ that is
// not locked has nobody any more, and never will have: its token is not used again.
// It is never synced. After a loss of power it may be there or not: no process of
// before lives, and the boot id in the lease says so too.
type holder struct {
	name  token
	file  fsguard.File
	space fsguard.Dir // held open, so that holderKey.space can name no other directory
}

// A holderKey is a store as a process sees it.
type holderKey struct {
	fs    fsguard.FS
	space fsguard.Identity // of the namespace
	store token
}

// A holderSet has the holders of a process. They are not a handle's: closing one
// handle while its claims live, and those of others, proves nobody dead. Nothing
// leaves the set, for a lease may name a holder as long as the process lives.
type holderSet struct {
	mu   sync.Mutex
	made map[holderKey]*holder
}

// processHolders are those of this process.
var processHolders holderSet

func (h *holderSet) get(key holderKey) *holder {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.made[key]
}

func (h *holderSet) put(key holderKey, made *holder) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.made == nil {
		h.made = map[holderKey]*holder{}
	}
	h.made[key] = made
}

func (s *Store) holderKey(p *pins) holderKey { return holderKey{s.fs, p.spaceID, s.id} }

// holder gives the token of this process, and makes its file if this is the first time
// for this store. Called under the exclusive lock, which keeps another handle of this
// process from making a second one meanwhile. On an error no file is left, or one that
// nobody names and a sweep removes.
func (s *Store) holder(p *pins) (token, error) {
	key := s.holderKey(p)
	if h := s.opts.holders.get(key); h != nil {
		return h.name, nil
	}
	h, err := makeHolder(p, s.rand)
	if err != nil {
		err = fmt.Errorf("making the file of this process in %s/: %w", holdersDir, err)
		if isFull(err) { // as a claim that finds no room for its commit
			err = fmt.Errorf("%w: %w", queue.ErrFull, err)
		}
		return token{}, err
	}
	s.opts.holders.put(key, h)
	return h.name, nil
}

func makeHolder(p *pins, rand randReader) (*holder, error) {
	name, err := newToken(rand)
	if err != nil {
		return nil, err
	}
	dir, err := openHolders(p)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // only passed through
	space, err := p.space.OpenDir(".")
	if err != nil {
		return nil, err
	}
	file, err := dir.Create(name.String())
	if errors.Is(err, fs.ErrExist) { // not ours to remove
		return nil, errors.Join(err, space.Close())
	}
	if err == nil {
		if err = lockHolder(file); err == nil {
			return &holder{name, file, space}, nil
		}
		_ = file.Close() // nothing was written to it
	}
	_ = dir.Remove(name.String()) // even if it was not created: that may be what could not be said
	_ = space.Close()             // only looked at
	return nil, err
}

func lockHolder(file fsguard.File) error {
	free, err := file.TryLock(fsguard.Exclusive)
	if err == nil && !free {
		return fmt.Errorf("%s/%s was locked by somebody else as soon as it was made: %w", holdersDir, file.Name(), ErrUnsafe)
	}
	return lockError(err)
}

// openHolders opens holders/, which creation makes.
func openHolders(p *pins) (fsguard.Dir, error) {
	d, err := openDir(p.space, holdersDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &CorruptError{File: holdersDir, Offset: -1, Reason: "missing"}
	}
	return d, err
}

// Holder gives a file that stands for this process, for programs that run a command
// for each message: a child that inherits it (exec.Cmd.ExtraFiles) counts as alive for
// this process's claims. So if this process is killed and its child goes on with the
// message, no other worker gets that message by proof of death; only the deadline ends
// the lease. A child that does not inherit it keeps nothing alive.
//
// The kernel's lock on it belongs to the open file description, which this process and
// its children share: it lives until the last descriptor is closed (flock(2)). All
// claims of this process are kept by it, not only the one that the child works on, and
// also a process that the child leaves behind keeps them, if it inherits the
// descriptor in turn. Nobody may unlock it: that would count as the death of all.
//
// The caller closes the file when it has started the child, or keeps it for the next
// ones: what stands for this process itself stays open when the store is closed. On
// an error there is no file. Errors: as of a claim; ErrCorrupt when holders/ is missing.
func (s *Store) Holder(ctx context.Context) (*os.File, error) {
	var key holderKey
	err := s.submit(ctx, &call{writes: true, decide: func(v *view) error {
		key = s.holderKey(v.pins)
		_, err := s.holder(v.pins)
		return err
	}})
	if err != nil {
		return nil, err
	}
	return s.opts.holders.get(key).file.Dup()
}
