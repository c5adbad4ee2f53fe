//go:build unix

package crashtest

import (
	"errors"
	"os"
	"syscall"

	"example.com/holdfast/internal/fsguard"
)

// ErrStopped is what every operation gets once the process has died by a plan.
var ErrStopped = errors.New("the process has stopped")

// A Mode is what a plan does.
type Mode int

const (
	Nothing        Mode = iota // every operation is performed
	FailingAt                  // operation N is not performed and returns Err
	FailingAfter               // operation N is performed and then returns Err
	FailingFrom                // operation N and all later ones are not performed and return Err
	FailingMatch               // the first Times operations that Match are not performed and return Err
	StoppingBefore             // the process dies before operation N
	StoppingAfter              // the process dies after operation N
)

// A Plan says what a Wrapper does to the operations that pass through it. The zero
// value only counts.
//
// A close that is to fail is performed all the same, as kernels do. A sync that is
// to fail is, on a simulated disk, a failed sync there: what it covered is doomed.
type Plan struct {
	Mode Mode
	N    int // the number of an operation, from 1
	Err  error

	// Match is given the kind and the path below the root: "." for the root, the
	// new name of a rename, move or link, the second of an exchange.
	Match func(op fsguard.Op, path string) bool
	Times int // how many matching operations fail; 0 means all

	// Die lets the process die before that operation, beside whatever else is planned. 0 is
	// never.
	Die int

	// Reads makes the operations that change nothing count too: openroot, stat,
	// space, info, lstat, readdir, opendir, open, read, dup, watch
	// and close.
	Reads bool

	// Spell makes WriteFile several operations: itself, then the create, write,
	// sync and rename that it consists of. For inner filesystems that have a
	// WriteFile of their own it is done without that.
	Spell bool

	// OnStop runs once when the process dies, before the operation returns.
	OnStop func()
}

// FailAt fails the n-th operation without performing it.
func FailAt(n int, err error) Plan { return Plan{Mode: FailingAt, N: n, Err: err} }

// FailAfter performs the n-th operation and lets it return err: the rename that
// happened but could not say so.
func FailAfter(n int, err error) Plan { return Plan{Mode: FailingAfter, N: n, Err: err} }

// FailAlwaysFrom fails the n-th operation and every one after it.
func FailAlwaysFrom(n int, err error) Plan { return Plan{Mode: FailingFrom, N: n, Err: err} }

// FailMatching fails the first times operations that match, all of them if times
// is 0. It sees operations that are not numbered too.
func FailMatching(match func(op fsguard.Op, path string) bool, err error, times int) Plan {
	return Plan{Mode: FailingMatch, Match: match, Err: err, Times: times}
}

// StopBefore lets the process die before the n-th operation, StopAfter after it.
func StopBefore(n int) Plan { return Plan{Mode: StoppingBefore, N: n} }
func StopAfter(n int) Plan  { return Plan{Mode: StoppingAfter, N: n} }

// KillSelf is an OnStop for a real process: SIGKILL.
func KillSelf() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

// An action is what a plan decides about one operation.
type action int

const (
	perform action = iota
	failBefore
	failAfter
	stopBefore
	stopAfter
)

// decide says what to do to operation number n (0: not numbered). matched is how
// many have matched before.
func (p Plan) decide(n int, op fsguard.Op, path string, matched *int) action {
	switch hit := n != 0 && n == p.N; {
	case n != 0 && n == p.Die:
		return stopBefore
	case p.Mode == FailingMatch:
		if p.Match(op, path) && (p.Times == 0 || *matched < p.Times) {
			*matched++
			return failBefore
		}
	case p.Mode == FailingFrom && n != 0 && n >= p.N:
		return failBefore
	case !hit:
	case p.Mode == FailingAt:
		return failBefore
	case p.Mode == FailingAfter:
		return failAfter
	case p.Mode == StoppingBefore:
		return stopBefore
	case p.Mode == StoppingAfter:
		return stopAfter
	}
	return perform
}

// syncs reports whether op makes something durable, and nothing else.
func syncs(op fsguard.Op) bool {
	return op == fsguard.OpSync || op == fsguard.OpSyncData || op == fsguard.OpSyncDir
}

// changes reports whether op is numbered even without Plan.Reads: whether it
// changes the disk, what is durable, or a lock.
func changes(op fsguard.Op) bool {
	switch op {
	case fsguard.OpMkdir, fsguard.OpCreate, fsguard.OpWriteFile, fsguard.OpRename,
		fsguard.OpMove, fsguard.OpMoveNew, fsguard.OpExchange, fsguard.OpLink,
		fsguard.OpRemove, fsguard.OpRemoveDir, fsguard.OpSyncDir, fsguard.OpWrite,
		fsguard.OpAllocate, fsguard.OpSync, fsguard.OpSyncData, fsguard.OpLock, fsguard.OpUnlock:
		return true
	}
	return false
}
