//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

func init() {
	roles["die at"] = dieAt
}

// realPlace makes both directories of a real store.
func realPlace(t testing.TB) crashPlace {
	t.Helper()
	base := t.TempDir()
	p := crashPlace{filepath.Join(base, "q"), filepath.Join(base, "f")}
	for _, dir := range []string{p.queue, p.failed} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// plant writes the files of a state.
func (p crashPlace) plant(t testing.TB, id string, st crashState) {
	t.Helper()
	n := namesOf(id)
	for at, text := range map[string]string{
		filepath.Join(p.queue, n.pending): st.pending, filepath.Join(p.queue, n.processing): st.claimed, filepath.Join(p.failed, n.failed()): st.failed,
	} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// fatalCalls are what a process dies in: those of fault_test.go, and what they do.
var fatalCalls = map[string][]crashMove{
	"enqueue":      {movePut(genC)},
	"load":         {moveLoad},
	"ack":          {moveEnd(genA)},
	"fail":         {moveFail(genA)},
	"fail pending": {moveLoad, moveFail(genA)},
	"migrate":      {moveLoad, moveMigrate(genA, genM)},
}

// A real process kills itself after operation k of a call, for k = 1, 2… until it has
// none left; to die before one is to die after the one before, or before all, which the
// first k has too. A new process finds it done or not done, and once it was found done it
// is for every later k.
func TestKillAtEveryOperation(t *testing.T) {
	for _, call := range faultCalls {
		moves, ok := fatalCalls[call.name]
		if !ok {
			continue
		}
		for i, route := range bothRoutes {
			if raceDetector() && call.name != "load" {
				continue // killed without it
			}
			t.Run(fmt.Sprintf("%s/%v", call.name, route), func(t *testing.T) {
				t.Parallel()
				happened := false
				for k := 0; ; k++ {
					p := realPlace(t)
					p.plant(t, crashID, call.from)
					killed := dies(t, p, call.name, route, k)
					if !killed {
						if k < 3 {
							t.Fatalf("it has %d operations", k)
						}
						if !happened {
							t.Error("killed after the last operation, and it had not happened")
						}
						return
					}
					j := &crashtest.Journal{}
					for i, m := range moves {
						j.Begin(fmt.Sprint("call ", i), m)
					}
					// The process after goes on by the other route at every other k.
					c := crashCheck{place: p, from: call.from, route: bothRoutes[(i+k)%2], since: time.Now()}
					if err := c.check(fsguard.OS(), j); err != nil {
						t.Fatalf("after operation %d: %v", k, err)
					}
					found, _ := j.Last(foundKey)
					now := found.Value.(crashState) == call.want
					if happened && !now {
						t.Errorf("after operation %d: gone, although a death earlier on left it there", k)
					}
					happened = now
				}
			})
		}
	}
}

// dies lets a process make a call and die in it, and reports whether it did.
func dies(t *testing.T, p crashPlace, call string, route Route, k int) bool {
	t.Helper()
	c := start(t, "die at", p.queue, p.failed, call, fmt.Sprint(int(route)), fmt.Sprint(k))
	lines, err := c.Rest()
	if err == nil && len(lines) == 1 {
		return false
	}
	if killedBy(err) != syscall.SIGKILL || len(lines) > 0 {
		t.Fatalf("operation %d: %v, %q", k, err, lines)
	}
	return true
}

// dieAt takes both directories, the name of a call, a route, and the number of the
// operation after which to die; 0: before the first.
func dieAt(args []string) error {
	route, err1 := strconv.Atoi(args[3])
	k, err2 := strconv.Atoi(args[4])
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	at := slices.IndexFunc(faultCalls, func(c faultCall) bool { return c.name == args[2] })
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s, err := Open(args[0], &Options{FailedDir: args[1], ClaimBy: Route(route), fs: w})
	if err != nil {
		return err
	}
	plan := crashtest.StopAfter(k)
	if k == 0 {
		plan = crashtest.StopBefore(1)
	}
	plan.OnStop = crashtest.KillSelf
	w.Arm(plan)
	if err := faultCalls[at].do(context.Background(), s); err != nil {
		return err
	}
	fmt.Println("answered")
	return nil
}
