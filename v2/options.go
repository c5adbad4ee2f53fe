//go:build unix

package holdfast

import (
	"fmt"
	"time"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// Bounds that hold when Options say nothing else.
const (
	DefaultMaxPayloadBytes = queue.DefaultMaxPayloadBytes
	DefaultMaxPayloadDepth = queue.DefaultMaxPayloadDepth
	DefaultMaxStateBytes   = 64 << 20
	DefaultMinFreeBytes    = 8 << 20
)

// Options shape how a store is created or opened. A nil *Options is the zero
// value, and the zero value works. There is no option that turns syncing off.
type Options struct {
	// MaxPayloadBytes bounds one payload. Zero: 16 MiB. A payload that was accepted
	// under a higher bound is still delivered.
	MaxPayloadBytes int

	// MaxPayloadDepth bounds how deeply arrays and objects may nest in a payload
	// that is enqueued. Zero: 512.
	MaxPayloadDepth int

	// MaxStateBytes bounds state.json: an enqueue that would pass it, or that would
	// leave no room to claim and fail everything that stands in it (about 320 bytes and
	// the queue's name for each message), is refused with queue.ErrFull; so is a claim
	// that has no room to bring messages back from a run until others are settled or
	// purged; everything else goes on. Programs that share a store should agree on it: one whose bound is less
	// than half of what another fills answers ErrBound. Zero: 64 MiB, room for some
	// 200,000 messages that stand in it: leased, returned, failed or with a key. Other
	// pending ones of a deep queue lie in runs, and some hundred million have room.
	// From 64 KiB to 1 TiB.
	MaxStateBytes int64

	// MinFreeBytes is the free space below which an enqueue is refused with
	// queue.ErrFull. Zero: 8 MiB. Negative: no floor.
	MinFreeBytes int64

	// AllowUnsafeRoot accepts a directory that belongs to another user or can be
	// written by others. Files that this process makes are its own, mode 0600: the
	// directory's owner may then be locked out of the store. Zero: it is refused with
	// ErrUnsafe. A look (OpenReadOnly) asks only that others cannot write it.
	AllowUnsafeRoot bool

	// OnDeadOwner is kept in the store by Create; Open ignores it. Zero: Stop.
	OnDeadOwner OnDeadOwner

	// LookAfter is for OpenReadOnly: how long a look waits for the lock before it
	// shows the last committed state, marked as unsettled. Zero: it waits for as
	// long as the context lets it.
	LookAfter time.Duration

	fs    fsguard.FS // nil: the operating system
	clock clock      // nil: the system's
	rand  randReader // nil: the system's

	block   int  // messages to a block of runs; zero: by the backlog; negative: none is sealed
	plain   bool // commits replace state.json; Create makes a store without the feature "spares"
	noSpill bool // claims seal no evidence: for tests of a state that it fills
	pollOff bool // whoever waits is woken by events, commits and due times alone

	prepare int // objects that a handle makes before it prepares some; zero: preparesAfter; negative: it never does

	gather time.Duration // of gatherIdle's; negative: no commit waits for company

	holders *holderSet // nil: this process's; tests play several processes in one
}

// OnDeadOwner is what a process does when it finds that the last owner of the
// transfer lock died inside a transition.
type OnDeadOwner string

const (
	// Stop answers ErrStaleLock until an operator calls Recover.
	Stop OnDeadOwner = "stop"

	// AutoRecover recovers and goes on: the operator's consent given in advance.
	// The proof of death is that the kernel released the lock.
	AutoRecover OnDeadOwner = "recover"
)

// Settings are kept in the store, so that every process agrees on them.
type Settings struct {
	OnDeadOwner OnDeadOwner `json:"on_dead_owner"`
}

func (s Settings) check() error {
	switch s.OnDeadOwner {
	case Stop, AutoRecover:
		return nil
	}
	return fmt.Errorf("on_dead_owner %q is not stop or recover: %w", s.OnDeadOwner, queue.ErrInvalid)
}
