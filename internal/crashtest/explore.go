//go:build unix

package crashtest

import (
	"fmt"
	"path"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// A Scenario is a piece of work on a disk, and what must be true after it was cut
// short anywhere. Its functions are called many times, Run and Check by several
// goroutines at once, each call with another disk.
type Scenario struct {
	Name string

	// Setup makes the starting point. It is called once; the disk is then settled
	// (see Disk.Settle) and each run gets a copy.
	Setup func(t testing.TB, d *Disk)

	// Run does the work, with the same operations every time, and records into the
	// journal what it began and what was acknowledged. Operations may fail, with
	// ErrStopped when the process has died; Run must then return. The process is
	// killed after Run has returned.
	Run func(fs fsguard.FS, j *Journal)

	// Check is a new process that finds what is left. It opens, recovers, and
	// compares with the journal: what was acknowledged is there, what was begun is
	// there or not, nothing else. What it acknowledges itself it may record too: it
	// must hold if the power goes after it. An error, or a failure of t, is a
	// finding. What it finds must rest on nothing but the disk and the journal.
	Check func(t testing.TB, fs fsguard.FS, j *Journal) error
}

// Options bound an exploration. The zero value is a thorough one for a scenario of
// some dozens of operations.
type Options struct {
	// MaxImages bounds the images that are checked per power loss; see Disk.Images.
	// Default 64.
	MaxImages int

	// AfterCheck bounds the images of the disk that Check has recovered, after a
	// SIGKILL and after a second crash. Default 16; negative is none.
	AfterCheck int

	// SecondCrash is at how many points, spread evenly, two outcomes (the disk as it
	// is, and one image) are recovered with a second crash before and after each
	// operation of Check. Default 0: none.
	SecondCrash int

	// Seed draws the images of samples and the image of SecondCrash. Default 0.
	Seed uint64

	// Every takes of the points each n-th only, the same ones each time: a sample, where
	// what matters is the code that runs and not what is left. Default 1: all.
	Every int

	// Reads crashes before and after operations that change nothing too.
	// ExploreErrors always fails them too.
	Reads bool

	// Errnos are what ExploreErrors injects. Default: the first six of EveryErrno.
	Errnos []syscall.Errno

	// Persistent lets ExploreErrors also fail every operation from each one on.
	Persistent bool

	// Uneven admits a Run whose operations differ from run to run. A point that is
	// then not reached is counted in Stats.Missed instead of being a failure.
	Uneven bool

	// Timeout is how long one Run or Check may take before it counts as hung.
	// Default one minute.
	Timeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.MaxImages == 0 {
		o.MaxImages = 64
	}
	if o.AfterCheck == 0 {
		o.AfterCheck = 16
	}
	if o.Errnos == nil {
		o.Errnos = EveryErrno[:6]
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	return o
}

// EveryErrno are the errors that any operation may end in: the medium's, no room, not to be
// written, no descriptor, no permission; then a full table of the system's, no memory, a
// call cut short by a signal.
var EveryErrno = []syscall.Errno{
	syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMFILE, syscall.EACCES,
	syscall.ENFILE, syscall.ENOMEM, syscall.EINTR,
}

// Stats tells what an exploration did.
type Stats struct {
	Ops        int  // operations of an undisturbed Run
	Points     int  // runs that came to it: one per operation, side and error, and an undisturbed one
	Images     int  // power-loss images of them
	Exhaustive bool // these were all possible ones, at every point
	Second     int  // second crashes, during Check
	Checks     int  // completed calls of Check
	Alike      int  // outcomes that were not checked because their like had been
	Missed     int  // points not reached; only with Options.Uneven
}

func (s Stats) String() string {
	kind := "sampled"
	if s.Exhaustive {
		kind = "exhaustive"
	}
	text := fmt.Sprintf("%d operations, %d points, %d images (%s), %d second crashes, %d checks, %d alike",
		s.Ops, s.Points, s.Images, kind, s.Second, s.Checks, s.Alike)
	if s.Missed > 0 {
		text += fmt.Sprintf(", %d points missed", s.Missed)
	}
	return text
}

// Explore runs the scenario undisturbed, and then once for every operation and
// side of it, with the process dying there. Each time Check must be content
//
//   - on every image that a power loss at that moment may leave;
//   - on the same disk, as after SIGKILL, and then on every image that a power loss
//     just after that Check may leave.
//
// The first finding, in the order of the operations, fails the test, with a line
// that replays exactly it.
func Explore(t testing.TB, s Scenario, o Options) Stats {
	t.Helper()
	return explore(t, s, o, false, func(clean []Event, o Options) (plans []string) {
		for _, e := range clean {
			if e.N > 0 {
				plans = append(plans, fmt.Sprint("stop-before-", e.N), fmt.Sprint("stop-after-", e.N))
			}
		}
		return plans
	})
}

// ExploreErrors is Explore with errors instead of death: each operation, reads
// included, fails with each errno, once without being performed and, if it changes
// anything, once after it was. Run goes on with the error and returns; Check is
// made as in Explore.
func ExploreErrors(t testing.TB, s Scenario, o Options) Stats {
	t.Helper()
	o.Reads = true
	return explore(t, s, o, true, func(clean []Event, o Options) (plans []string) {
		for _, e := range clean {
			for _, errno := range o.Errnos {
				at := fmt.Sprint(e.N, "-", errnoName(errno))
				plans = append(plans, "fail-at-"+at)
				if changes(e.Op) {
					plans = append(plans, "fail-after-"+at)
				}
				if o.Persistent {
					plans = append(plans, "fail-from-"+at)
				}
			}
		}
		return plans
	})
}

// ExploreUncertain is Explore with commits that nobody can be sure of: a rename or an exchange has
// happened, and the sync of its directory fails, without or after having made it durable.
// commit tells which are meant, by the new name of a rename and either of an exchange. Each time the process goes on
// with the error, and each time anew dies before one of the next operations: before it has
// left word of the doubt, before anybody was told, and while it finds out what became of it.
func ExploreUncertain(t testing.TB, s Scenario, o Options, commit func(path string) bool) Stats {
	t.Helper()
	return explore(t, s, o, true, func(clean []Event, o Options) []string { return uncertain(clean, o, commit) })
}

// uncertain gives the plans. One whose process is done before it was to die is no point.
func uncertain(clean []Event, o Options, commit func(path string) bool) (plans []string) {
	const on = 20 // operations after the failure: until the doubt is resolved, about
	dir := ""
	for _, e := range clean {
		switch {
		case e.Op == fsguard.OpRename && commit(e.Path),
			e.Op == fsguard.OpExchange && (commit(e.Path) || commit(e.From)):
			dir = path.Dir(e.Path)
		case e.Op == fsguard.OpSyncDir && e.Path == dir:
			dir = ""
			for _, errno := range o.Errnos {
				for _, how := range []string{"at", "after"} {
					fail := fmt.Sprintf("fail-%s-%d-%s", how, e.N, errnoName(errno))
					plans = append(plans, fail)
					for die := e.N + 1; die <= e.N+on; die++ {
						plans = append(plans, fmt.Sprint(fail, "-die-", die))
					}
				}
			}
		}
	}
	return plans
}
