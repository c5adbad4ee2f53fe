//go:build unix

package holdfast

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// holderScenario makes a holder, asks about two dead ones, and sweeps while a lease
// names the first of these.
func holderScenario() crashtest.Scenario {
	named, garbage := token{1}, token{2}
	open := func(fs fsguard.FS) (*Store, error) {
		o := crashOptions(fs)
		o.holders = &holderSet{}
		return Open(context.Background(), crashDir, o)
	}
	keepNamed := func(h token) bool { return h == named }
	return crashtest.Scenario{
		Name: "holder",
		Setup: func(t testing.TB, d *crashtest.Disk) {
			crashScenario{}.make(t, d)
			for _, h := range []token{named, garbage} {
				d.WriteRaw(crashDir+"/"+namespaceDir+"/"+holdersDir+"/"+h.String(), nil)
			}
		},
		Run: func(fs fsguard.FS, j *crashtest.Journal) {
			s, err := open(fs)
			if err != nil {
				return
			}
			defer s.Close()
			j.Begin("holder", nil)
			if name, err := holdNow(s); err == nil {
				j.Ack("holder", name)
			}
			_ = proveUnderLock(s, func(v *prover) error {
				_, _ = v.dead(named)
				v.sweep(keepNamed)
				return nil
			})
		},
		Check: func(t testing.TB, fs fsguard.FS, j *crashtest.Journal) error {
			s, err := open(fs)
			if err != nil {
				return err
			}
			defer s.Close()
			ours, err := holdNow(s)
			if err != nil {
				return err
			}
			if report, err := s.Verify(context.Background(), VerifyOptions{}); err != nil || !report.OK || !report.Settled {
				return fmt.Errorf("verify: %+v, %v", report, err)
			}
			return proveUnderLock(s, func(v *prover) error {
				var report Report
				if err := verifyHolders(v.p, &report); err != nil || len(report.Faults) > 0 {
					return fmt.Errorf("verify: %+v, %v", report, err)
				}
				dir, err := v.holders()
				if err != nil {
					return err
				}
				there, err := dir.ReadDir()
				if err != nil {
					return err
				}
				for _, name := range there {
					h, ok := parseToken(name)
					if !ok {
						return fmt.Errorf("%q is no holder", name)
					}
					if dead, err := v.dead(h); dead != (h != ours) || err != nil {
						return fmt.Errorf("%s is dead: %v, %v", name, dead, err)
					}
				}
				if e, acked := j.Last("holder", crashtest.Acked); acked && !slices.Contains(there, e.Value.(token).String()) {
					// The power took its name, and the process with it: nobody can tell any more.
					if dead, err := v.dead(e.Value.(token)); dead || err != nil {
						return fmt.Errorf("the holder that is gone is dead: %v, %v", dead, err)
					}
				}
				v.sweep(keepNamed)
				left, err := dir.ReadDir()
				want := []string{named.String(), ours.String()}
				slices.Sort(want)
				if !slices.Equal(left, want) || err != nil {
					return fmt.Errorf("a sweep of %q left %q, want %q, %v", there, left, want, err)
				}
				return nil
			})
		},
	}
}

// Wherever a process dies or the power goes: no lease loses the file that it names, no
// dead process seems to live, and what it left is swept.
func TestHolderCrash(t *testing.T) {
	t.Parallel()
	crashtest.Explore(t, holderScenario(), smaller(crashtest.Options{Reads: true, MaxImages: 64, AfterCheck: 16}))
	crashtest.ExploreErrors(t, holderScenario(), fewer(crashtest.Options{MaxImages: 8, AfterCheck: -1, Persistent: true}))
}
