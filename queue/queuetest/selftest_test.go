package queuetest_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/holdfast/queue"
	"example.com/holdfast/queue/memory"
	"example.com/holdfast/queue/queuetest"
)

// plantEnv names the bug that a child process plants.
const plantEnv = "HOLDFAST_QUEUETEST_PLANT"

// A plant is a bug that is put over a sound engine, and a subtest that must find it.
type plant struct {
	bug   string
	found string // by this subtest
	over  func(e queuetest.Engine) queue.Store
}

// The suite finds each planted bug. A failing subtest fails its whole test, so each
// bug has a process of its own: this binary again.
func TestPlantedBugsAreFound(t *testing.T) {
	for _, p := range plants {
		t.Run(p.bug, func(t *testing.T) {
			t.Parallel()
			out, err := runSuite(t, p.bug, p.found)
			for try := 1; err == nil && try < raceTries; try++ { // some show only when calls meet
				out, err = runSuite(t, p.bug, p.found)
			}
			if err == nil || !failed(out, p.found) {
				t.Errorf("%s did not find it: %v\n%s", p.found, err, out)
			}
			if out, err := runSuite(t, "none", p.found); err != nil || !strings.Contains(out, "--- PASS: TestPlanted/") {
				t.Errorf("%s finds something in a sound engine too: %v\n%s", p.found, err, out)
			}
		})
	}
}

// raceTries is how often a bug may hide that only a race of calls can show.
const raceTries = 30

// runSuite runs one subtest over an engine with a bug. A bug by which it hangs is told
// by its time running out, which names the subtest.
func runSuite(t *testing.T, bug, subtest string) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for part := range strings.SplitSeq("TestPlanted/"+subtest, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(underscored(part))+"$")
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.v", "-test.timeout=20s", "-test.run="+strings.Join(parts, "/"))
	cmd.Env = append(os.Environ(), plantEnv+"="+bug)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// failed reports whether the subtest failed or hung.
func failed(out, subtest string) bool {
	name := underscored("TestPlanted/" + subtest)
	return strings.Contains(out, "--- FAIL: "+name+" (") ||
		strings.Contains(out, "panic: test timed out") && strings.Contains(out, "\t\t"+name+" (")
}

// underscored is a name as package testing writes it.
func underscored(name string) string { return strings.ReplaceAll(name, " ", "_") }

// TestPlanted is the child's: the suite over an engine with a bug.
func TestPlanted(t *testing.T) {
	bug := os.Getenv(plantEnv)
	if bug == "" {
		return // it is run by TestPlantedBugsAreFound
	}
	over := func(e queuetest.Engine) queue.Store { return e.Store }
	for _, p := range plants {
		if p.bug == bug {
			over = p.over
		}
	}
	queuetest.Run(t, func(t *testing.T) queuetest.Engine {
		e := soundEngine(t)
		e.Store = over(e)
		return e
	})
}

// soundEngine is the memory engine, whose own tests run the whole suite over it.
func soundEngine(t *testing.T) queuetest.Engine {
	var mu sync.Mutex
	now := time.UnixMilli(1_764_500_000_000)
	read := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	s := memory.New(&memory.Options{Now: read})
	t.Cleanup(func() { s.Close() })
	return queuetest.Engine{Store: s, Now: read, Advance: func(d time.Duration) {
		mu.Lock()
		now = now.Add(d)
		mu.Unlock()
		s.Recheck()
	}}
}
