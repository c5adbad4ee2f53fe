//go:build unix

package crashtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// An Interleaving is what several processes do on one disk at the same time, and what
// must be true in the end, whatever the order of their operations and whoever dies on
// the way. Its functions are called many times, each run with a disk of its own.
type Interleaving struct {
	Name    string
	Clients int // at most 26: they are called a, b, c…

	// Setup makes the starting point. It is called once; the disk is then settled
	// (see Disk.Settle) and each run gets a copy.
	Setup func(t testing.TB, d *Disk)

	// Begin gives the oracle of one run.
	Begin func() Play
}

// A Play is one run: what each client does, and what the run proves. Its methods are
// called one at a time, but for Run, of which all run at once; of these only one goes
// on between two operations.
type Play interface {
	// Open is called for each client in turn, before the first step: nobody schedules
	// its operations.
	Open(c *Client) error

	// Run is the client's program. It returns when it is done, or when the client is
	// dead. Its descriptors stay open and its locks held until the run is over. An
	// error is a finding, unless the client died.
	Run(c *Client) error

	// Kill is told of each death: kill is the death itself, after which every call that
	// the client had under way has returned.
	Kill(c *Client, kill func())

	// Cut gives the check of what a new process finds if everybody is killed now, on
	// this disk, or with lost on what a power loss leaves of it. It may be called again
	// later, and checks are made when the run is over, each on its own disk.
	Cut() func(t testing.TB, fs fsguard.FS, lost bool) error
}

// InterleaveOptions bound an exploration of interleavings. The zero value is good for
// two clients of some dozens of operations.
type InterleaveOptions struct {
	// Preemptions is in up to how many places a client that could go on has to stand
	// still for another. Default 2; negative is none. Where a client waits for a lock or
	// is done, every way to go on is tried, whatever the number.
	Preemptions int

	// MaxSchedules bounds the schedules with each number of preemptions. If there are
	// more, the seed draws so many of them. Default 200.
	MaxSchedules int

	// Random is how many schedules with more preemptions than that the seed draws.
	// Default 30; negative is none.
	Random int

	// Kills is how many schedules, spread evenly over those that were explored, are run
	// again once for each step and client, to kill that client before the step, and
	// once for each step, to kill the client that made it after it. Default 2;
	// negative is none.
	Kills int

	// AfterKill bounds the images of the disk that the others left when they had run on
	// to their end; of each kill. Default 1; negative is none.
	AfterKill int

	// Losses is how many schedules, spread evenly, lose power before every step.
	// Default 2; negative is none.
	Losses int

	// MaxImages bounds the images of each such loss. Default 3. The first of several loses
	// everything that is not durable; the seed draws the others.
	MaxImages int

	// Seed draws what is drawn. Default 0.
	Seed uint64

	// Timeout is how long one check may take before it counts as hung. Default one
	// minute.
	Timeout time.Duration
}

func (o InterleaveOptions) withDefaults() InterleaveOptions {
	for _, x := range []struct {
		v   *int
		def int
	}{{&o.Preemptions, 2}, {&o.MaxSchedules, 200}, {&o.Random, 30}, {&o.Kills, 2}, {&o.AfterKill, 1}, {&o.Losses, 2}, {&o.MaxImages, 3}} {
		if *x.v == 0 {
			*x.v = x.def
		}
		*x.v = max(*x.v, 0)
	}
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	return o
}

// InterleaveStats tells what an exploration of interleavings did.
type InterleaveStats struct {
	Schedules []int // explored with 0, 1, 2… preemptions
	Possible  []int // how many there are, as far as those that were explored tell
	Random    int   // with more of them
	Steps     int   // of all runs
	Kills     int   // runs in which a client was killed
	Losses    int   // steps at which the power was lost
	Images    int   // of the disk after a power loss
	Checks    int   // histories that were checked
}

func (s InterleaveStats) String() string {
	var b strings.Builder
	for i, n := range s.Schedules {
		fmt.Fprintf(&b, "%d", n)
		if all := s.Possible[i]; all > n {
			fmt.Fprintf(&b, " of %d", all)
		}
		fmt.Fprintf(&b, " schedules of %d preemptions, ", i)
	}
	fmt.Fprintf(&b, "%d random ones, %d steps, %d kills, %d power losses, %d images, %d histories checked",
		s.Random, s.Steps, s.Kills, s.Losses, s.Images, s.Checks)
	return b.String()
}

// Interleave runs the clients under a scheduler that lets one operation of one of them
// through at a time, and lets everything come to rest before it chooses the next. What
// a client does between two operations belongs to the first of them. It explores the
// schedules that the options say, kills clients in some of them and takes the power
// away, and lets the play check what is left each time.
//
// The first finding fails the test, with a line that replays exactly it.
func Interleave(t *testing.T, s Interleaving, o InterleaveOptions) InterleaveStats {
	t.Helper()
	stats, err := interleave(t, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return stats
}
