//go:build unix

package holdfast

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A Store is an open store. All methods are safe for concurrent use; any number of
// handles, in one process or many, may be open on one directory.
type Store struct {
	dir      string
	opts     Options
	readOnly bool
	fs       fsguard.FS
	clock    clock
	rand     randReader
	id       token
	wake     *waker

	mu            sync.Mutex
	idle          *sync.Cond // running became false, or the wait for the lock began
	waiting       []*call
	running       bool // run is alive
	lockWait      bool // and waits for the lock
	needExclusive bool
	closed        bool

	// Owned by run, and by open and Close while it is not alive.
	pins       *pins
	known      *identities
	cached     *cachedState
	runs       *runFiles
	seen       outcome          // the newest state that was current under the lock
	text       []byte           // buffer of the encoded state
	open       *uncertainCommit // ours, not resolved yet
	retired    []*cachedState   // spares that are held open, without their states, the one known longest first
	noExchange bool             // it was refused here: commits replace
	crowded    bool             // there was no room for spares: commits replace until one enqueues
	blankLater []string         // owner tokens of records of ours, of which one could not be blanked
	swept      string           // name of the file at which the last sweep of holders/ stopped
	pool       pool             // objects that were made ahead
	company    company          // who may join the next commit

	followed atomic.Bool // state.json is the newest state: see successor.go

	commits, parses atomic.Int64 // of Stats
	counted         counters     // and the rest of it
}

var _ queue.Store = (*Store)(nil)

// identities are what a store was when it was opened. The lock is one of them: under
// another lock file than its other processes, a store would have two owners at once.
type identities struct{ root, space, lock fsguard.Identity }

func (p *pins) ids() identities { return identities{p.rootID, p.spaceID, p.lockID} }

// still says which of them is another than it was, or nil.
func (was *identities) still(dir string, is identities) error {
	for _, x := range []struct {
		name    string
		was, is fsguard.Identity
	}{{dir, was.root, is.root}, {namespaceDir, was.space, is.space}, {lockFile, was.lock, is.lock}} {
		if x.was != x.is {
			return fmt.Errorf("%s is another than when the store was opened: %w", x.name, ErrReplaced)
		}
	}
	return nil
}

// newStore fills in what the options leave out.
func newStore(dir string, o *Options, readOnly bool) (*Store, error) {
	dir, err := filepath.Abs(dir) // the store stays where it is when the process moves
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, readOnly: readOnly}
	if o != nil {
		s.opts = *o
	}
	if err := s.opts.fill(); err != nil {
		return nil, err
	}
	s.fs, s.clock, s.rand = s.opts.fs, s.opts.clock, s.opts.rand
	s.noExchange = s.opts.plain
	s.pool.after = s.opts.prepare
	s.idle = sync.NewCond(&s.mu)
	s.wake = newWaker(s)
	s.runs = newRunFiles(func() fsguard.Dir { return s.pins.objects })
	return s, nil
}

// The range of Options.MaxStateBytes: a small one leaves no room beside what recovery
// needs, and readers take twice the large one.
const (
	leastStateBytes = 64 << 10
	mostStateBytes  = 1 << 40
)

func (o *Options) fill() error {
	for _, bound := range []struct {
		name string
		v    *int64
		def  int64
	}{{"MaxStateBytes", &o.MaxStateBytes, DefaultMaxStateBytes}, {"LookAfter", (*int64)(&o.LookAfter), 0}} {
		if *bound.v < 0 {
			return fmt.Errorf("%s is negative: %w", bound.name, queue.ErrInvalid)
		}
		if *bound.v == 0 {
			*bound.v = bound.def
		}
	}
	if o.MaxStateBytes < leastStateBytes || o.MaxStateBytes > mostStateBytes {
		return fmt.Errorf("MaxStateBytes is %d: from %d to %d: %w", o.MaxStateBytes, leastStateBytes, int64(mostStateBytes), queue.ErrInvalid)
	}
	if o.MaxPayloadBytes < 0 || o.MaxPayloadDepth < 0 {
		return fmt.Errorf("MaxPayloadBytes or MaxPayloadDepth is negative: %w", queue.ErrInvalid)
	}
	if o.MaxPayloadBytes == 0 {
		o.MaxPayloadBytes = DefaultMaxPayloadBytes
	}
	if o.MaxPayloadDepth == 0 {
		o.MaxPayloadDepth = DefaultMaxPayloadDepth
	}
	if o.MinFreeBytes == 0 {
		o.MinFreeBytes = DefaultMinFreeBytes
	}
	if o.OnDeadOwner == "" {
		o.OnDeadOwner = Stop
	}
	if o.fs == nil {
		o.fs = fsguard.OS()
	}
	if o.clock == nil {
		o.clock = systemClock{}
	}
	if o.rand == nil {
		o.rand = rand.Reader
	}
	if o.prepare == 0 {
		o.prepare = preparesAfter
	}
	if o.gather == 0 {
		o.gather = gatherIdle
	}
	if o.holders == nil {
		o.holders = &processHolders
	}
	return Settings{OnDeadOwner: o.OnDeadOwner}.check()
}

// Open opens an existing store; an empty dir is the current directory. It creates nothing and repairs nothing. Errors:
// ErrNoStore, ErrInterruptedInit, ErrInterruptedRestore, ErrUnsafe, ErrFilesystem,
// ErrVersion, ErrCorrupt. A store whose last owner did not finish opens; calls that change it
// then answer ErrStaleLock until Recover.
func Open(ctx context.Context, dir string, o *Options) (*Store, error) {
	return open(ctx, dir, o, false)
}

// OpenReadOnly opens a store for looking: status, list, show, peek and verify. It
// writes nothing, needs no write permission and works on a read-only mount. Calls
// that would change the store answer ErrReadOnly.
func OpenReadOnly(ctx context.Context, dir string, o *Options) (*Store, error) {
	return open(ctx, dir, o, true)
}

// OpenOrCreate opens the store at dir, or creates it where there is none. A store
// that is there in part is an error all the same.
func OpenOrCreate(ctx context.Context, dir string, o *Options) (*Store, error) {
	s, err := Open(ctx, dir, o)
	if !errors.Is(err, ErrNoStore) {
		return s, err
	}
	s, err = Create(ctx, dir, o)
	if errors.Is(err, ErrExists) { // another process was first
		return Open(ctx, dir, o)
	}
	return s, err
}

func open(ctx context.Context, dir string, o *Options, readOnly bool) (*Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := newStore(dir, o, readOnly)
	if err != nil {
		return nil, err
	}
	err = s.admit()
	if incomplete(err) {
		// Perhaps a Create or a Restore is at work. It holds the root's lock until it is done.
		s.drop()
		if err = whole(ctx, s.fs, s.dir, &s.opts, readOnly); err == nil {
			err = s.admit()
		}
	}
	if err != nil {
		s.drop()
		return nil, err
	}
	return s, nil
}

// admit pins and checks the store. The lock is not needed for that: a reader finds a
// whole state without it.
func (s *Store) admit() error {
	p, err := pin(s.fs, s.dir, &s.opts, s.readOnly)
	if err != nil {
		return err
	}
	s.pins = p
	ids := p.ids()
	s.known = &ids
	if ok, err := p.lock.TryLock(fsguard.Shared); err != nil {
		return lockError(err) // flock does not work here: say so now, not at the first call
	} else if ok {
		if err := p.lock.Unlock(); err != nil {
			return lockError(err)
		}
	}
	c, err := s.readUnlocked(p)
	if err != nil {
		return err
	}
	s.id = c.st.store
	s.cached = c
	if !s.readOnly {
		// A directory sync that does not work here is met now, not inside the first
		// commit. The root's names are durable since it was created and never change,
		// so a failure here spoils nothing that another process has still to sync.
		if err := p.root.Sync(); err != nil {
			return syncError(err)
		}
	}
	return nil
}

// incomplete reports whether err is what a store in the making answers.
func incomplete(err error) bool {
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		return corrupt.Reason == "missing"
	}
	if errors.Is(err, ErrInterruptedRestore) { // perhaps it is at work
		return true
	}
	return errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrNoStore)
}

// Dir is the directory that the store was opened at, absolute.
func (s *Store) Dir() string { return s.dir }

// ID gives the store's id: random, made by Create, part of every receipt.
func (s *Store) ID() string { return s.id.String() }

// Close ends the use of the store. Commits under way are finished and answered;
// calls that have not entered one answer queue.ErrClosed. Claims stay as they are, and
// this process goes on counting as their live holder. Closing twice is no error.
func (s *Store) Close() error {
	s.wake.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, c := range s.waiting {
		c.err = queue.ErrClosed
		close(c.done)
	}
	s.waiting = nil
	// A run that waits for the lock is not waited for: it lets the lock go as soon
	// as it obtains it, and then gives up the descriptors.
	for s.running && !s.lockWait {
		s.idle.Wait()
	}
	if !s.running {
		s.drop()
	}
	return nil
}
