//go:build unix

package holdfast

import (
	"context"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// A settling is a call that ends a claim of genA.
type settling struct {
	name   string
	call   func(*Store, context.Context, *Claim) error
	failed string // what is set aside then
}

var settlings = []settling{{"ack", (*Store).Ack, ""}, {"fail", (*Store).Fail, genA}}

// A newer entry that comes before any operation of an ack or a fail stays pending.
func TestNewerEntryDuringASettling(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		for _, end := range settlings {
			for k := 1; ; k++ {
				s := identityStore(t, route, crashState{claimed: genA})
				c := mustLoad(t, s.Store, genA)
				o := s.other(t, route)
				n := 0
				s.w.Arm(watchOps(func(fsguard.Op, string) {
					if n++; n == k {
						mustPut(t, o, genB)
					}
				}))
				if err := end.call(s.Store, t.Context(), c); err != nil {
					t.Fatalf("%s, before operation %d: %v", end.name, k, err)
				}
				s.w.Arm(crashtest.Plan{})
				if n < k {
					break
				}
				s.is(t, crashState{pending: genB, failed: end.failed})
			}
		}
	})
}

// A settling that failed after it took effect is finished by calling again, whatever
// is pending or claimed under the ID by then, and that is left alone.
func TestSettlingIsFinishedBesideANewerEntry(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		for _, end := range settlings {
			for _, claimNewer := range []bool{false, true} {
				for k := 1; end.again(t, route, k, claimNewer); k++ {
				}
			}
		}
	})
}

// again lets the k-th operation of a settling answer with an error although it was
// done, and reports whether there is one.
func (end settling) again(t *testing.T, route Route, k int, claimNewer bool) (more bool) {
	t.Helper()
	s := identityStore(t, route, crashState{claimed: genA})
	c := mustLoad(t, s.Store, genA)
	s.w.Arm(crashtest.FailAfter(k, syscall.EIO))
	err := end.call(s.Store, t.Context(), c)
	if !s.w.Fired() {
		return false
	}
	if err == nil {
		t.Fatalf("%s: no error at operation %d", end.name, k)
	}
	s.w.Arm(crashtest.Plan{})
	if err := removeLocks(s.queue.dir); err != nil {
		t.Fatal(err)
	}
	st, err := lookAt(s.Store, crashID)
	if err != nil || st.claimed != "" {
		return true // it had not taken effect, or stands half: the crash tests' part
	}
	mustPut(t, s.Store, genB)
	want := crashState{pending: genB, failed: end.failed}
	if claimNewer {
		mustLoad(t, s.other(t, route), genB)
		want = crashState{claimed: genB, failed: end.failed}
	}
	if err := end.call(s.Store, t.Context(), c); err != nil {
		t.Errorf("%s again after operation %d failed, newer one claimed %v: %v", end.name, k, claimNewer, err)
	}
	s.is(t, want)
	return true
}
