//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// play lets a new process Run or Check on a copy of w.disk under a plan, kills it,
// and returns what it left. An error is a finding.
func (e *explorer) play(w world, step string, run bool) (world, *Wrapper, error) {
	plan, err := parsePlan(step)
	if err != nil {
		return w, nil, err
	}
	disk, j := w.disk.Clone(), w.journal.copy()
	p := disk.Process()
	plan.Spell, plan.Reads = true, e.o.Reads
	plan.OnStop = func() { j.close(); p.Kill() }
	wr := Wrap(p, plan)
	err = guard(e.t, e.o.Timeout, func(t testing.TB) error {
		if run {
			e.s.Run(wr, j)
			return nil
		}
		return e.s.Check(t, wr, j)
	})
	p.Kill()
	j.close()

	who := "Check"
	if run {
		who = "Run"
	}
	out := w.after(disk, j, step)
	out.played = append(slices.Clip(w.played), played{who + ", " + step, wr})
	var broken *brokenError
	if err != nil && (plan.Mode == Nothing || errors.As(err, &broken)) {
		return out, wr, e.finding(w, out, fmt.Errorf("%s: %w", who, err))
	}
	if v := wr.Violations(); len(v) > 0 {
		return out, wr, e.finding(w, out, fmt.Errorf("%s broke a rule: %s", who, strings.Join(v, "; ")))
	}
	return out, wr, nil
}

func tail(text string, lines int) string {
	all := strings.SplitAfter(text, "\n")
	if len(all) > lines {
		all = append([]string{"  …\n"}, all[len(all)-lines:]...)
	}
	return strings.Join(all, "")
}
