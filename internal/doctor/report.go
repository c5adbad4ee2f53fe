//go:build unix

package doctor

import (
	"errors"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/fsguard"
)

// An Outcome is what came of a try.
type Outcome string

const (
	Works    Outcome = "works"
	Refused  Outcome = "refused"   // it was answered with an error
	Broken   Outcome = "broken"    // it was answered as done, and is not what was asked for
	NotTried Outcome = "not tried" // Seen says why
	Told     Outcome = "told"      // a fact; there was nothing to try
)

// A Weight is what a finding means for a v2 store.
type Weight string

const (
	Fit     Weight = "fit"
	Warning Weight = "warning" // a store works here, with what Seen says
	Unfit   Weight = "unfit"   // a store would be refused here, or could not keep its promise
)

// A Check is one thing that was looked into.
type Check struct {
	Name    string  `json:"check"`
	Tried   string  `json:"tried"`
	For     string  `json:"for"`    // what Holdfast uses it for
	Needed  bool    `json:"needed"` // by v2
	Outcome Outcome `json:"outcome"`
	Errno   string  `json:"errno"` // such as EACCES; empty: there was none
	Seen    string  `json:"seen"`  // empty: nothing more to say
	Weight  Weight  `json:"weight"`
}

// Mechanisms are what a store would work by here. An empty one: there is none.
type Mechanisms struct {
	Lock    string `json:"lock"`
	Publish string `json:"publish"` // of a commit
	Wake    string `json:"wake"`    // of who waits for a change
	Leases  string `json:"leases"`  // the clock that they count by
	V1      string `json:"v1"`      // how the v1 store can claim
}

// A Report is all that was found.
type Report struct {
	Dir        string     `json:"dir"`    // that was asked about
	Place      string     `json:"place"`  // where it was tried: Dir, or its parent where Dir is not there
	Exists     bool       `json:"exists"` // Dir is there
	Filesystem string     `json:"filesystem"`
	FreeBytes  uint64     `json:"free_bytes"`
	FloorBytes uint64     `json:"floor_bytes"` // of free space, below which nothing is enqueued
	Mount      *Mount     `json:"mount"`       // nil: it could not be told
	Checks     []Check    `json:"checks"`
	Mechanisms Mechanisms `json:"mechanisms"`

	// Leftovers are directories of tests that were killed, that run just now, or that
	// found something wrong; and that of a power test, which is meant to stay.
	Leftovers []string `json:"leftovers"`

	// Holds is the first other name in Dir; empty: there is none. Where there is no store
	// it keeps one from being made.
	Holds string `json:"holds"`
}

// A Verdict says whether a v2 store can stand here.
type Verdict string

const (
	Yes      Verdict = "yes"
	Warnings Verdict = "with warnings"
	No       Verdict = "no"
)

// Verdict is that of the gravest finding.
func (r Report) Verdict() Verdict {
	switch {
	case len(r.Weighing(Unfit)) > 0:
		return No
	case len(r.Weighing(Warning)) > 0:
		return Warnings
	}
	return Yes
}

// Weighing gives the checks of one weight.
func (r Report) Weighing(w Weight) (some []Check) {
	for _, c := range r.Checks {
		if c.Weight == w {
			some = append(some, c)
		}
	}
	return some
}

// Check gives the check of that name.
func (r Report) Check(name string) (Check, bool) {
	for _, c := range r.Checks {
		if c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

func (r Report) works(name string) bool {
	c, _ := r.Check(name)
	return c.Outcome == Works
}

// A finding is what a try gives back.
type finding struct {
	outcome Outcome
	errno   string
	seen    string
	weight  Weight // empty: see settle
}

func works(seen string) finding  { return finding{outcome: Works, seen: seen} }
func broken(seen string) finding { return finding{outcome: Broken, seen: seen} }

func told(seen string) finding { return finding{outcome: Told, seen: seen} }

func notTried(why string) finding { return finding{outcome: NotTried, seen: why} }

// refused keeps the errno beside the words: that is what a bug report needs.
func refused(err error) finding {
	return finding{outcome: Refused, errno: errnoOf(err), seen: plain(err)}
}

func (f finding) weighing(w Weight) finding {
	f.weight = w
	return f
}

// settle puts a finding into its check. What v2 needs and does not have makes the place
// unfit; what it needs and nobody tried is a warning; the rest decides nothing.
func (c *Check) settle(f finding) {
	c.Outcome, c.Errno, c.Seen, c.Weight = f.outcome, f.errno, f.seen, f.weight
	switch {
	case c.Weight != "":
	case c.Needed && (c.Outcome == Refused || c.Outcome == Broken):
		c.Weight = Unfit
	case c.Needed && c.Outcome == NotTried:
		c.Weight = Warning
	default:
		c.Weight = Fit
	}
}

func errnoOf(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	return unix.ErrnoName(errno)
}

// plain gives an error in one line, the scratch names that nobody knows left out.
func plain(err error) string {
	if e, ok := err.(*fsguard.Error); ok { // not one that stands deeper: what is said around it counts
		err = e.Err
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported) && errnoOf(err) == "":
		return "this system has no such call"
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}
