package memory

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"sync"
	"time"

	"example.com/holdfast/queue"
)

var _ queue.Store = (*Store)(nil)

// Options shape a store. The zero value works.
type Options struct {
	// MaxPayloadBytes bounds one payload. Zero or less: 16 MiB.
	MaxPayloadBytes int

	// MaxPayloadDepth bounds how deeply arrays and objects may nest in a payload.
	// Zero or less: 512.
	MaxPayloadDepth int

	// Now tells the time; it is called with the store's mutex held. Nil: time.Now.
	// A clock that does not go at the pace of time is followed by [Store.Recheck].
	Now func() time.Time
}

// A Store is a [queue.Store] in memory. It is made with [New].
type Store struct {
	opts Options

	mu      sync.Mutex
	state   state
	closed  bool
	changed chan struct{} // closed, and another put in its place, by every change
}

// New makes an empty store. Nil options are the zero value.
func New(o *Options) *Store {
	s := &Store{changed: make(chan struct{})}
	if o != nil {
		s.opts = *o
	}
	if s.opts.MaxPayloadBytes <= 0 {
		s.opts.MaxPayloadBytes = queue.DefaultMaxPayloadBytes
	}
	if s.opts.MaxPayloadDepth <= 0 {
		s.opts.MaxPayloadDepth = queue.DefaultMaxPayloadDepth
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	s.state = state{id: newToken(), queues: map[string]*queueState{}, failed: map[failedName]*failed{}}
	return s
}

var tokenText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// newToken gives 128 random bits as 26 characters. It is never given twice.
func newToken() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return tokenText.EncodeToString(b[:])
}

// ID gives the store's id: random, made by New, part of every receipt.
func (s *Store) ID() string { return s.state.id }

// Close ends the use of the store: later calls answer queue.ErrClosed, and so do
// the callers that are parked. Claims stay as they are. Closing twice is no error.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.wake()
	return nil
}

// Recheck lets every parked Wait and WaitDue look at the store and at the clock
// again. Whoever gave the store a clock calls it after moving that clock; nobody else
// needs to.
func (s *Store) Recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
}

// wake wakes those who are parked.
func (s *Store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// change decides and applies one call. When decide refuses, nothing has changed.
func (s *Store) change(ctx context.Context, decide func(d *draft) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return queue.ErrClosed
	}
	d := s.state.draft(s.now())
	if err := decide(d); err != nil {
		d.drop()
		return err
	}
	if d.keep() {
		s.wake()
	}
	return nil
}

// look shows one snapshot to see, which changes nothing.
func (s *Store) look(ctx context.Context, see func(st *state, now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return queue.ErrClosed
	}
	return see(&s.state, s.now())
}

// now reads the wall clock alone, which is what deadlines and schedules are in.
func (s *Store) now() time.Time { return s.opts.Now().Round(0) }
