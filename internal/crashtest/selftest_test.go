//go:build unix

package crashtest

import (
	"errors"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// The right register passes every kind of exploration.
func TestRightRegisterPasses(t *testing.T) {
	o := Options{SecondCrash: 8}
	crash := Explore(t, registerScenario(""), o)
	if crash.Ops < 25 || crash.Points != 2*crash.Ops+1 || crash.Images < crash.Points || crash.Second == 0 {
		t.Errorf("too little was explored: %v", crash)
	}
	if !crash.Exhaustive {
		t.Errorf("the register is small enough to be explored exhaustively: %v", crash)
	}
	errs := ExploreErrors(t, registerScenario(""), Options{Persistent: true, MaxImages: 16})
	if errs.Ops <= crash.Ops || errs.Points < 8*errs.Ops {
		t.Errorf("too little was explored: %v, with only %v", errs, crash)
	}
}

// A sample has its part of the points, before operations and after them.
func TestEvery(t *testing.T) {
	ops := Explore(t, registerScenario(""), Options{MaxImages: 1, AfterCheck: -1}).Ops
	got := Explore(t, registerScenario(""), Options{MaxImages: 1, AfterCheck: -1, Every: 5})
	if want := 1 + (2*ops+2)/5; got.Ops != ops || got.Points != want {
		t.Errorf("of %d operations %d points, want %d: %v", ops, got.Points, want, got)
	}
	plans := []string{"a", "b", "c", "d", "e", "f", "g"}
	for n, want := range map[int]string{0: "abcdefg", 1: "abcdefg", 2: "bdf", 3: "be", 7: "d", 20: ""} {
		if got := strings.Join(sampled(plans, n), ""); got != want {
			t.Errorf("every %d: %q, want %q", n, got, want)
		}
	}
}

// Each planted bug is found, with the finding that it deserves.
func TestPlantedBugsAreFound(t *testing.T) {
	crashes := func(t testing.TB, bug string) { Explore(t, registerScenario(bug), Options{}) }
	reader := func(t testing.TB, bug string) { Explore(t, readerScenario(bug), Options{}) }
	second := func(t testing.TB, bug string) { Explore(t, registerScenario(bug), Options{SecondCrash: 100}) }
	errs := func(t testing.TB, bug string) { ExploreErrors(t, registerScenario(bug), Options{MaxImages: 16}) }
	readerErrs := func(t testing.TB, bug string) {
		ExploreErrors(t, readerScenario(bug), Options{MaxImages: 16})
	}
	for _, c := range []struct {
		bug     string
		explore func(t testing.TB, bug string)
		want    string // a pattern of the finding
	}{
		{"temp not synced", crashes, `image=.*state is damaged`},
		{"temp synced after rename", crashes, `image=.*state is damaged`},
		{"directory not synced", crashes, `image=.*value is \d, want`},
		{"directory synced before rename", crashes, `image=.*value is \d, want`},
		{"object file not synced", crashes, `image=.*payload is ""`},
		{"object directory not synced", crashes, `image=.*open payload: no such file`},
		{"object edge not synced", crashes, `image=.*opendir o\d.0: no such file`},
		{"in place", crashes, `image=\d+:[ht]\d+.*(state is damaged|payload is)`},
		{"acknowledged before the sync", crashes, `value is 5, want 6`},
		{"visible state trusted", reader, `live, clean, image=.*value is 5, want 6`},
		{"visible state trusted", second, `live, stop-before-\d+, image=.*value is 5, want 6`},
		{"recovery removes first", second, `live, stop-after-\d+, image=.*open state: no such file`},
		{"visible state only synced", readerErrs, `fail-at-.*live, clean, image=.*value is 5, want 6`},
		{"error read as not there", errs, `value 1 was answered, want`},
		{"failed rename taken for none", errs, `fail-after-\d+-EIO, .*open payload: no such file`},
		{"sync retried", errs, `sync state.tmp \(operation \d+\) on a description whose sync had failed`},
		{"sync error ignored", errs, `image=.*state is damaged`},
		{"write error ignored", errs, `state is damaged`},
		{"closed too early", crashes, `on a closed description`},
	} {
		t.Run(c.bug, func(t *testing.T) {
			found := finding(t, func(t testing.TB) { c.explore(t, c.bug) })
			first, _, _ := strings.Cut(found, "\n")
			if !regexp.MustCompile(c.want).MatchString(first) {
				t.Fatalf("found %q, want %s", first, c.want)
			}
			for _, part := range []string{"\nreplay:\n", "CRASHTEST_REPLAY='register ", "\nseed: ", "\noperations of Run, ", "\nthe disk before"} {
				if !strings.Contains(found, part) {
					t.Errorf("the finding does not say %q:\n%s", part, found)
				}
			}
		})
	}
}

// What only a second crash, or only an error, brings to light is not found without.
func TestBugsHideFromWeakerExplorations(t *testing.T) {
	Explore(t, registerScenario("recovery removes first"), Options{})
	Explore(t, readerScenario("visible state only synced"), Options{})
	Explore(t, registerScenario("error read as not there"), Options{})
	Explore(t, registerScenario("visible state trusted"), Options{})
	Explore(t, readerScenario("visible state trusted"), Options{AfterCheck: -1})
}

// On a forgiving disk a repeated sync is as good as the first.
func TestForgivingDisk(t *testing.T) {
	s := readerScenario("visible state only synced")
	s.Setup = func(t testing.TB, d *Disk) {
		setUpRegister(t, d)
		d.SetForgiving(true)
	}
	ExploreErrors(t, s, Options{MaxImages: 16})
}

func TestReplayRepeatsTheFinding(t *testing.T) {
	s := registerScenario("temp not synced")
	run := func(t testing.TB) { Explore(t, s, Options{}) }
	first := finding(t, run)
	if again := finding(t, run); again != first {
		t.Errorf("two explorations differ:\n%s\n%s", first, again)
	}
	path := regexp.MustCompile(`CRASHTEST_REPLAY='(.*)' go test`).FindStringSubmatch(first)
	if path == nil {
		t.Fatalf("no replay line in:\n%s", first)
	}
	t.Setenv("CRASHTEST_REPLAY", path[1])
	if replayed := finding(t, run); replayed != first {
		t.Errorf("the replay says\n%s\nthe exploration said\n%s", replayed, first)
	}
	s = registerScenario("")
	run(t) // the right register passes the same crash
	t.Setenv("CRASHTEST_REPLAY", "register stop-sideways-1 live clean")
	if bad := finding(t, run); !strings.Contains(bad, "bad step") {
		t.Errorf("a bad replay says %q", bad)
	}
}

// What is wrong with a scenario itself is a finding too.
func TestBadScenarios(t *testing.T) {
	right := registerScenario("")
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	var calls atomic.Int64
	for _, c := range []struct {
		name  string
		spoil func(*Scenario)
		want  string
	}{
		{"nothing acknowledged", func(s *Scenario) { s.Run = func(fsguard.FS, *Journal) {} }, "acknowledged nothing"},
		{"hangs", func(s *Scenario) { s.Run = func(fsguard.FS, *Journal) { <-over } }, "did not return within"},
		{"panics", func(s *Scenario) { s.Run = func(fsguard.FS, *Journal) { panic("ouch") } }, "panic: ouch"},
		{"uneven", func(s *Scenario) {
			s.Run = func(fs fsguard.FS, j *Journal) {
				if calls.Add(1) > 1 {
					return
				}
				right.Run(fs, j)
			}
		}, "not the same every time"},
		{"diverging", func(s *Scenario) {
			s.Run = func(fs fsguard.FS, j *Journal) {
				if calls.Add(1) > 1 {
					_, _ = fs.Stat("/store")
				}
				right.Run(fs, j)
			}
		}, "undisturbed it went on with"},
		{"check fails", func(s *Scenario) {
			s.Check = func(t testing.TB, _ fsguard.FS, _ *Journal) error { t.Errorf("no good"); return nil }
		}, "no good"},
		{"check skips", func(s *Scenario) {
			s.Check = func(t testing.TB, _ fsguard.FS, _ *Journal) error { t.Skip("not today"); return nil }
		}, "not today"},
		{"set-up fails", func(s *Scenario) {
			s.Setup = func(t testing.TB, _ *Disk) { t.Fatal("no disk") }
		}, "no disk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := right
			calls.Store(0)
			c.spoil(&s)
			found := finding(t, func(t testing.TB) { Explore(t, s, Options{Timeout: 200 * time.Millisecond}) })
			if !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// Uneven admits a Run that is sometimes shorter.
func TestUnevenIsCounted(t *testing.T) {
	s := registerScenario("")
	run := s.Run
	var calls atomic.Int64
	s.Run = func(fs fsguard.FS, j *Journal) {
		if calls.Add(1)%2 == 1 {
			run(fs, j)
		}
	}
	if stats := Explore(t, s, Options{Uneven: true}); stats.Missed == 0 || stats.Missed >= stats.Points {
		t.Errorf("missed points: %v", stats)
	}
}

// The process is killed while a goroutine of it waits for a lock that another of
// it holds: Run must be able to return.
func TestStopFreesWaitingGoroutines(t *testing.T) {
	s := registerScenario("")
	run := s.Run
	s.Run = func(fs fsguard.FS, j *Journal) {
		root, err := fs.OpenRoot("/store")
		if err != nil {
			return
		}
		second, err := fs.OpenRoot("/store")
		if err != nil {
			return
		}
		if root.Lock(fsguard.Exclusive) != nil {
			return
		}
		waited := make(chan error, 1)
		go func() { waited <- second.Lock(fsguard.Exclusive) }()
		disk := fs.(*Wrapper).inner.(*Process).d
		for disk.Waiting() == 0 && len(waited) == 0 {
			runtime.Gosched()
		}
		if root.Unlock() != nil {
			if err := <-waited; !errors.Is(err, ErrStopped) {
				t.Errorf("the waiting Lock got %v, want ErrStopped", err)
			}
			return
		}
		if <-waited != nil || second.Close() != nil {
			return
		}
		run(fs, j)
	}
	Explore(t, s, Options{Timeout: 20 * time.Second})
}

// The set-up is durable, and its processes are gone, whatever it did.
func TestSetupIsSettled(t *testing.T) {
	s := registerScenario("")
	s.Setup = func(t testing.TB, d *Disk) {
		setUpRegister(t, d)
		store, err := d.Process().OpenRoot("/store")
		if err == nil {
			err = errors.Join(store.Mkdir("extra"), store.Lock(fsguard.Exclusive))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	check := s.Check
	s.Check = func(t testing.TB, fs fsguard.FS, j *Journal) error {
		if _, err := fs.Stat("/store/extra"); err != nil {
			return err
		}
		return check(t, fs, j)
	}
	Explore(t, s, Options{Timeout: 20 * time.Second})
}

// The outcome of a parallel exploration is that of the first operation that fails,
// and what comes much later is not tried any more.
func TestInParallelReturnsTheFirstError(t *testing.T) {
	var calls atomic.Int64
	err := inParallel(100_000, func(i int) error {
		calls.Add(1)
		if i >= 7 && i%2 == 1 {
			return errors.New(strconv.Itoa(i))
		}
		return nil
	})
	if err == nil || err.Error() != "7" || calls.Load() > 1000 {
		t.Errorf("got %v after %d calls, want 7", err, calls.Load())
	}
}

// What a process says after its death is not recorded.
func TestDeadProcessAcknowledgesNothing(t *testing.T) {
	s := registerScenario("")
	run := s.Run
	s.Run = func(fs fsguard.FS, j *Journal) {
		run(fs, j)
		if _, err := fs.Stat("/store"); errors.Is(err, ErrStopped) {
			j.Ack("value", 999)
		}
	}
	Explore(t, s, Options{})
}

// A crash falls between the steps of WriteFile too.
func TestWriteFileIsSpelledOut(t *testing.T) {
	s := registerScenario("")
	s.Run = func(fs fsguard.FS, j *Journal) {
		dir, err := fs.OpenRoot("/store")
		if err == nil {
			err = dir.WriteFile("note", []byte("x"))
		}
		if err == nil {
			err = dir.Sync()
		}
		if err == nil {
			j.Ack("note", "x")
		}
	}
	s.Check = func(t testing.TB, fs fsguard.FS, j *Journal) error {
		dir, err := fs.OpenRoot("/store")
		if err != nil {
			return err
		}
		_, err = (&register{store: dir}).read("note")
		if _, acked := j.Last("note", Acked); !acked && errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		return err
	}
	if stats := Explore(t, s, Options{}); stats.Ops != len([]string{"writefile", "create", "write", "sync", "rename", "syncdir"}) {
		t.Errorf("%v", stats)
	}
}

func TestErrnoNames(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EMFILE, syscall.EACCES, syscall.EDQUOT} {
		if got, err := parseErrno(errnoName(errno)); got != errno || err != nil {
			t.Errorf("%v reads back as %v, %v", errno, got, err)
		}
	}
}

// finding returns how run fails, and fails t if it does not.
func finding(t *testing.T, run func(t testing.TB)) string {
	t.Helper()
	err := guard(t, time.Minute, func(t testing.TB) error {
		run(t)
		return nil
	})
	if err == nil {
		t.Fatal("nothing was found")
	}
	return err.Error()
}
