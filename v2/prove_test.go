//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// What is no evidence stays none, and is left alone.
func TestAbsenceOfEvidence(t *testing.T) {
	b := osHolding(t)
	name := func(i byte) token { return token{0: i, 15: 1} }
	mustDo(t,
		os.Mkdir(b.at(name(2).String()), 0o700),
		os.Symlink("nowhere", b.at(name(3).String())),
		unix.Mkfifo(b.at(name(4).String()), 0o600),
		os.WriteFile(b.at(name(5).String()), nil, 0o600),
		os.Link(b.at(name(5).String()), b.at(name(6).String())),
		os.Symlink(name(5).String(), b.at(name(7).String())),
		os.WriteFile(b.at("notes"), nil, 0o600),
		os.WriteFile(b.at(strings.ToUpper(name(8).String())), nil, 0o600),
	)
	before := b.files(t)
	p := b.process(t)
	for _, c := range []struct {
		name token
		what string
	}{
		{token{}, "nobody"}, {name(1), "missing"}, {name(2), "a directory"}, {name(3), "a dangling link"}, {name(4), "a FIFO"},
		{name(5), "two links"}, {name(6), "the other link"}, {name(7), "a link"},
	} {
		if dead, err := holderDead(p.Store, c.name); dead || err != nil {
			t.Errorf("%s: %v, %v", c.what, dead, err)
		}
	}
	sweepHolders(t, p.Store)
	if after := b.files(t); !slices.Equal(after, before) {
		t.Errorf("a sweep left %q of %q", after, before)
	}

	var report Report
	mustDo(t, verifyHolders(p.pins, &report))
	var got []string
	for _, f := range report.Faults {
		got = append(got, f.File+" "+f.Reason)
	}
	want := []string{holdersDir + "/" + strings.ToUpper(name(8).String()) + " is not the store's"}
	for i := byte(2); i <= 7; i++ {
		want = append(want, fmt.Sprintf("%s/%s is not a plain file with one link", holdersDir, name(i)))
	}
	want = append(want, holdersDir+"/notes is not the store's")
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("verify says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	mustDo(t, os.RemoveAll(b.at()), os.Mkdir(b.at(), 0o700))
}

// A healthy holders/ has no fault, whoever lives, and a look at it takes no lock.
func TestVerifyHolders(t *testing.T) {
	b := simHolding(t)
	dead, p := b.deadHolder(t), b.process(t)
	living := mustHold(t, p.Store)
	w := crashtest.Wrap(p.sim, crashtest.Plan{})
	s := b.handle(t, p, w)
	w.Arm(crashtest.Plan{})
	var report Report
	mustDo(t, verifyHolders(s.pins, &report))
	if len(report.Faults) > 0 || w.Ops() > 0 || w.Count(fsguard.OpLstat) != 2 {
		t.Errorf("%+v after\n%s", report.Faults, w.Trace())
	}
	b.wantFiles(t, dead, living)
}

// One answer holds for a prover's life, and the lock that proves it is kept till its
// end: it costs one question however many leases name the holder.
func TestProverAsksOnce(t *testing.T) {
	holdingOnBoth(t, func(t *testing.T, b holdingBench) {
		gone, living := b.deadHolder(t), b.process(t)
		theirs := mustHold(t, living.Store)
		p, other := b.process(t), b.process(t)
		w := crashtest.Wrap(b.inner(p), crashtest.Plan{})
		s := b.handle(t, p, w)
		holders, err := b.inner(other).OpenRoot(b.at())
		mustDo(t, err)
		defer holders.Close()
		file, err := holders.Open(gone.String())
		mustDo(t, err)
		defer file.Close()
		mustDo(t, proveUnderLock(s, func(v *prover) error {
			w.Arm(crashtest.Plan{})
			for range 5 {
				for h, want := range map[token]bool{gone: true, theirs: false, {1}: false} {
					if dead, err := v.dead(h); dead != want || err != nil {
						t.Errorf("dead: %v, %v; want %v", dead, err, want)
					}
				}
			}
			if w.Count(fsguard.OpOpenDir) != 1 || w.Count(fsguard.OpOpen) != 3 || w.Count(fsguard.OpLock) != 2 {
				t.Errorf("asked more than once:\n%s", w.Trace())
			}
			if free, err := file.TryLock(fsguard.Shared); free || err != nil {
				t.Errorf("the proof is let go: %v, %v", free, err)
			}
			open := len(w.Open())
			v.close()
			v.close()
			if closed := open - len(w.Open()); closed != 2 {
				t.Errorf("close closed %d, want holders/ and the dead one's file", closed)
			}
			return nil
		}))
		if free, err := file.TryLock(fsguard.Shared); !free || err != nil {
			t.Errorf("the prover has left its lock: %v, %v", free, err)
		}
		living.kill()
	})
}

// However many are dead, a prover keeps so many descriptors at most.
func TestProverKeepsFewDescriptors(t *testing.T) {
	b := simHolding(t)
	var gone []token
	for range maxProof + 20 {
		gone = append(gone, b.deadHolder(t))
	}
	p := b.process(t)
	holdingStatus(t, p.Store)
	idle := p.sim.Open()
	mustDo(t, proveUnderLock(p.Store, func(v *prover) error {
		before := p.sim.Open()
		for _, h := range slices.Concat(gone, gone) {
			if dead, err := v.dead(h); !dead || err != nil {
				t.Fatal(dead, err)
			}
		}
		if more := p.sim.Open() - before; more != maxProof+1 {
			t.Errorf("%d descriptors, want one for each of %d locks and one for holders/", more, maxProof)
		}
		v.sweep(func(h token) bool { return h == gone[0] || h == gone[len(gone)-1] })
		return nil
	}))
	b.wantFiles(t, gone[0], gone[len(gone)-1])
	if now := p.sim.Open(); now != idle {
		t.Errorf("%d descriptors open, were %d", now, idle)
	}
}

// A sweep removes what is dead and unnamed, and nothing else.
func TestSweep(t *testing.T) {
	holdingOnBoth(t, func(t *testing.T, b holdingBench) {
		named, garbage := b.deadHolder(t), b.deadHolder(t)
		living, p := b.process(t), b.process(t)
		theirs, ours := mustHold(t, living.Store), mustHold(t, p.Store)
		b.wantFiles(t, named, garbage, theirs, ours)
		sweepHolders(t, p.Store, named)
		b.wantFiles(t, named, theirs, ours)
		sweepHolders(t, p.Store, named) // again, by a handle that stopped behind the last
		b.wantFiles(t, named, theirs, ours)
		mustDo(t, proveUnderLock(p.Store, func(v *prover) error {
			if dead, err := v.dead(named); !dead || err != nil {
				t.Errorf("dead: %v, %v", dead, err)
			}
			v.sweep(func(token) bool { return true }) // its last lease is still there
			b.wantFiles(t, named, theirs, ours)
			v.sweep(func(token) bool { return false })
			return nil
		}))
		b.wantFiles(t, theirs, ours)
		living.kill()
		p.kill()
	})
}

// A sweep is bounded, and many living holders hide no dead one from the next.
func TestSweepIsBounded(t *testing.T) {
	for _, c := range []struct{ living, dead, sweeps int }{
		{0, 3 * maxSweep, 3},
		{2 * maxSweep, 5, 3},
		{maxSweep - 1, 1, 1},
	} {
		t.Run(fmt.Sprintf("%d living, %d dead", c.living, c.dead), func(t *testing.T) {
			b := simHolding(t)
			var living []token
			for range c.living {
				living = append(living, mustHold(t, b.process(t).Store))
			}
			for range c.dead {
				b.deadHolder(t)
			}
			p := b.process(t)
			w := crashtest.Wrap(p.sim, crashtest.Plan{})
			s := b.handle(t, p, w)
			for range c.sweeps {
				mustDo(t, proveUnderLock(s, func(v *prover) error {
					w.Arm(crashtest.Plan{})
					v.sweep(func(token) bool { return false })
					if n := w.Count(fsguard.OpOpen); n > maxSweep {
						t.Errorf("one sweep asked about %d files", n)
					}
					return nil
				}))
			}
			b.wantFiles(t, living...)
		})
	}
}

// A sweep that met nothing to ask about was one all the same.
func TestSweepIsRemembered(t *testing.T) {
	b := simHolding(t)
	p := b.process(t)
	mustHold(t, p.Store)
	sweepHolders(t, p.Store)
	if p.swept == "" {
		t.Error("the handle does not know that it has swept")
	}
}

// Each operation of asking fails, with each error: it is an error, never a verdict,
// and nothing is removed. A close that fails changes no verdict.
func TestProverFaults(t *testing.T) {
	holdingOnBoth(t, func(t *testing.T, b holdingBench) {
		gone, living := b.deadHolder(t), b.process(t)
		theirs := mustHold(t, living.Store)
		p := b.process(t)
		w := crashtest.Wrap(b.inner(p), crashtest.Plan{})
		s := b.handle(t, p, w)
		for _, h := range []token{gone, theirs} {
			for _, errno := range holderFaults {
				for _, plan := range []func(int, error) crashtest.Plan{crashtest.FailAt, crashtest.FailAfter, crashtest.FailAlwaysFrom} {
					for k, fired := 1, true; fired; k++ {
						plan := plan(k, errno)
						plan.Reads = true
						what := fmt.Sprintf("%v at %d", errno, k)
						mustDo(t, proveUnderLock(s, func(v *prover) error {
							w.Arm(plan)
							dead, err := v.dead(h)
							fired = w.Fired()
							hit := slices.IndexFunc(w.Events(), func(e crashtest.Event) bool { return e.Err != nil })
							spoilt := fired && w.Events()[hit].Op != fsguard.OpClose
							w.Arm(crashtest.Plan{})
							if spoilt && (dead || !errors.Is(err, errno)) || !spoilt && (dead != (h == gone) || err != nil) {
								t.Errorf("%s: %v, %v", what, dead, err)
							}
							// The same prover asks again, for an error is not kept.
							if dead, err := v.dead(h); dead != (h == gone) || err != nil {
								t.Errorf("%s, and then: %v, %v", what, dead, err)
							}
							return nil
						}))
						b.wantFiles(t, gone, theirs)
					}
				}
			}
		}
		if v := w.Violations(); len(v) > 0 && b.disk == nil {
			t.Errorf("%q", v)
		}
		living.kill()
	})
}

// Each operation of a sweep fails: what is named or living stays, and the next sweep
// does what was left.
func TestSweepFaults(t *testing.T) {
	holdingOnBoth(t, func(t *testing.T, b holdingBench) {
		named, living := b.deadHolder(t), b.process(t)
		theirs := mustHold(t, living.Store)
		p := b.process(t)
		w := crashtest.Wrap(b.inner(p), crashtest.Plan{})
		s := b.handle(t, p, w)
		live := func(h token) bool { return h == named }
		for _, errno := range holderFaults {
			for _, plan := range []func(int, error) crashtest.Plan{crashtest.FailAt, crashtest.FailAfter, crashtest.FailAlwaysFrom} {
				for k, fired := 1, true; fired; k++ {
					b.deadHolder(t)
					plan := plan(k, errno)
					plan.Reads = true
					mustDo(t, proveUnderLock(s, func(v *prover) error {
						w.Arm(plan)
						v.sweep(live)
						v.close()
						fired = w.Fired()
						w.Arm(crashtest.Plan{})
						return nil
					}))
					left := b.files(t)
					for _, h := range []token{named, theirs} {
						if !slices.Contains(left, h.String()) {
							t.Fatalf("%v at %d removed %s", errno, k, h)
						}
					}
					sweepHolders(t, s, named)
					b.wantFiles(t, named, theirs)
				}
			}
		}
		living.kill()
	})
}
