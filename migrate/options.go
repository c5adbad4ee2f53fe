//go:build unix

package migrate

import (
	"cmp"

	v1 "example.com/holdfast/v1"

	"example.com/holdfast/queue"
)

// Options say what goes where.
type Options struct {
	// From is the v1 queue directory.
	From string

	// Failed is its failed directory. Empty: what failed stays where it is; once an
	// import was begun, the one that it was begun with. A failed directory that several
	// queues share goes with one of them: ErrFailedTaken for the others.
	Failed string

	// Queue is the v2 queue that takes the entries.
	Queue string

	// Fenced is the operator's word that every program which writes to or reads from the
	// v1 directories was stopped, and cannot come back. Without it only a dry run is made:
	// ErrNotFenced.
	Fenced bool

	// RemoveLocks names transfer locks to remove, by their file names. It is the
	// operator's word that their owners are gone. A lock that stands and is not named
	// stops the import; a name at which none stands is told in the report.
	RemoveLocks []string

	// DryRun looks and checks, and changes nothing anywhere.
	DryRun bool

	// SkipInvalid leaves the entries that cannot be imported where they are, and never
	// removes them. Without it one of them stops the import before it is opened.
	SkipInvalid bool

	// V1 is how the v1 directory is opened; its FailedDir is not used. Its ClaimBy is how
	// interrupted transitions are finished. Nil: by RenameNoReplace, which needs no hard
	// link whatever the old programs used, and so works where links are refused.
	V1 *v1.Options

	// MaxPayloadBytes and MaxPayloadDepth are those of the v2 store's options, so that
	// an entry which it would refuse is found before anything is opened. Zero: its defaults.
	MaxPayloadBytes, MaxPayloadDepth int

	// Progress is called now and then. Nil: nobody is told.
	Progress func(Progress)

	step  func(string) // called between the steps; tests stop there
	batch int          // messages of one commit; 0: batchMessages
}

// A Phase is a part of an import that takes a while.
type Phase string

const (
	Checking  Phase = "checking"
	Importing Phase = "importing"
	Removing  Phase = "removing"
)

// Progress tells how far a phase has come.
type Progress struct {
	Phase       Phase
	Done, Total int // entries
}

func (o *Options) v1() *v1.Options {
	out := v1.Options{ClaimBy: v1.RenameNoReplace}
	if o.V1 != nil {
		out = *o.V1
	}
	out.FailedDir = o.Failed
	return &out
}

func (o *Options) bounds() (bytes, depth int) {
	return cmp.Or(o.MaxPayloadBytes, queue.DefaultMaxPayloadBytes), cmp.Or(o.MaxPayloadDepth, queue.DefaultMaxPayloadDepth)
}

func (o *Options) at(step string) {
	if o.step != nil {
		o.step(step)
	}
}

func (o *Options) progress(p Phase, done, total int) {
	if o.Progress != nil && (done%64 == 0 || done == total) {
		o.Progress(Progress{p, done, total})
	}
}

// A Report tells what an import did, or a dry run would do. With an error it tells what
// was done before it.
type Report struct {
	Store, Queue string
	FailedDir    string // that goes with it; empty: none, and what failed is not imported
	Token        string // of the import; empty: none was begun
	DryRun       bool
	Resumed      bool // it went on with one that was begun before
	Closed       bool // the closing commit is durable: the v2 queue is the queue

	Claimed, Pending, Failed int   // entries that the import is of
	Bytes                    int64 // of them
	Added                    int   // messages that this run brought; the others had come before

	Recovered    []string      // IDs whose interrupted transition was finished (would be)
	LocksRemoved []v1.HeldLock // (would be)
	LocksMissing []string      // that were named, and did not stand
	Skipped      []Problem     // entries that stay where they are
	Delivered    []string      // markers of work that was done: no messages
	Temps        []string      // never part of the queue
	Strays       []string      // names that are no entries
}

// A Problem is one file and what is wrong with it.
type Problem struct {
	File string // in the v1 directory; one in the failed directory by its path
	Err  error
}
