//go:build unix

package crashtest

import (
	"fmt"
	"strings"
)

// finding describes what came up in a run.
func (x *interleaver) finding(r *run, s schedule, d *Disk, err error) error {
	var b strings.Builder
	fmt.Fprintf(&b, "interleaving %s: %v: %v\n", x.s.Name, s, err)
	e := &explorer{t: x.t, s: Scenario{Name: x.s.Name}}
	fmt.Fprintf(&b, "replay:\n  %s\n", e.hint([]string{s.String()}))
	fmt.Fprintf(&b, "seed: %d\n", x.o.Seed)
	section(&b, "the power loss", d.Story())
	section(&b, "the steps", r.story())
	for _, c := range r.clients {
		section(&b, "operations of "+c.name, tail(c.FS.Trace(), 80))
	}
	section(&b, "the disk in the end", d.Tree())
	return &findingError{b.String(), err}
}

// replay does what a finding's line says, and gives the finding again.
func (x *interleaver) replay(text string) error {
	rest, mine := strings.CutPrefix(text, x.s.Name+" ")
	if !mine {
		x.t.Logf("interleaving %s: left out, CRASHTEST_REPLAY is of another", x.s.Name)
		return nil
	}
	s, err := parseSchedule(rest)
	if err != nil {
		return err
	}
	r := x.run(s, s.choose, s.off != 0)
	switch {
	case r.err != nil || s.off == 0:
		err = x.live(r, s)
	default:
		at := r.end
		for _, c := range r.cuts {
			if c.step+1 == s.off {
				at = c
			}
		}
		if at.disk, err = at.disk.Image(s.image); err == nil {
			err = x.check(r, s, at, true)
		}
	}
	if err == nil {
		x.t.Logf("interleaving %s: replayed without a finding: %s\n%s", x.s.Name, s, r.story())
	}
	return err
}
