package leak

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

func mustOpen(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The list is taken by itself here: Main would look at this test's own goroutines too.
func TestGoroutines(t *testing.T) {
	release, started := make(chan struct{}), make(chan struct{})
	go func() {
		close(started)
		<-release
	}()
	<-started
	named := func() bool {
		for _, stack := range goroutines() {
			if strings.Contains(stack, "leak.TestGoroutines.func1") {
				return true
			}
		}
		return false
	}
	if !named() {
		t.Errorf("a goroutine that stayed is not among them: %q", goroutines())
	}
	close(release)
	for named() {
		runtime.Gosched()
	}
}

func TestSettle(t *testing.T) {
	asked := 0
	left := settle(func() []string {
		if asked++; asked < 3 {
			return []string{"on its way out"}
		}
		return nil
	})
	if len(left) != 0 || asked != 3 {
		t.Errorf("asked %d times, left %q; want 3 times, nothing", asked, left)
	}
}

// leaves is what TestMain's own test leaves behind, in a process of its own.
const leaves = "HOLDFAST_TEST_LEAVES"

func TestMain(m *testing.M) { os.Exit(Main(m)) }

var left *os.File // a file that nobody refers to is closed by the collector

func TestLeave(t *testing.T) {
	switch os.Getenv(leaves) {
	case "":
		t.Skip("leaves something behind for TestMainFails")
	case "goroutine":
		go func() { select {} }()
	case "descriptor":
		left = mustOpen(t, os.DevNull)
	case "failure":
		t.Error("of its own")
	}
}

// What is to be done after the tests is done however they ended.
func TestAfter(t *testing.T) {
	for _, code := range []int{0, 1} {
		var did []string
		note := func(what string) func() { return func() { did = append(did, what) } }
		got := Main(tests(func() int { note("tests")(); return code }), note("first"), note("second"))
		// Main sees this test's own goroutines and those beside it: only what it hands on is certain.
		if want := "tests first second"; strings.Join(did, " ") != want || got < code {
			t.Errorf("code %d: did %q and gave %d, want %s", code, did, got, want)
		}
	}
}

type tests func() int

func (run tests) Run() int { return run() }

// Main fails a run whose tests passed, and says what was left.
func TestMainFails(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for what would not end")
	}
	for what, want := range map[string]string{
		"nothing":    "PASS",
		"goroutine":  "leak.TestLeave.func1",
		"descriptor": "of " + os.DevNull,
		"failure":    "of its own",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestLeave$")
			cmd.Env = append(os.Environ(), leaves+"="+what)
			out, err := cmd.CombinedOutput()
			if failed := err != nil; failed != (what != "nothing") || !strings.Contains(string(out), want) {
				t.Errorf("%v\n%s\nwant %q in it", err, out, want)
			}
		})
	}
}
