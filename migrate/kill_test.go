//go:build unix

package migrate

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "example.com/holdfast/v1"
	v2 "example.com/holdfast/v2"

	"example.com/holdfast/internal/crashtest/reexec"
	"example.com/holdfast/queue"
)

func TestMain(m *testing.M) {
	reexec.Main(m, map[string]func(args []string) error{"die at a step": wayChild})
}

var wayCalls = map[string]func(ctx context.Context, st *v2.Store, o Options) error{
	"import": func(ctx context.Context, st *v2.Store, o Options) error {
		_, err := Import(ctx, st, o)
		return err
	},
	"abandon": func(ctx context.Context, st *v2.Store, o Options) error {
		_, err := Abandon(ctx, st, o)
		return err
	},
	"remove": func(ctx context.Context, st *v2.Store, o Options) error {
		_, err := RemoveSource(ctx, st, o)
		return err
	},
}

// wayChild is the process that dies. It takes the scene, what it does there, and after how
// many steps it kills itself (0: never; somebody else does).
func wayChild(args []string) error {
	dir, call := args[0], args[1]
	diesAt, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	ctx := context.Background()
	s := &wayScene{dir: dir, from: dir + "/queue", fails: dir + "/failed", store: dir + "/store"}
	st, err := v2.Open(ctx, s.store, nil)
	if err != nil {
		return err
	}
	o := s.options()
	o.RemoveLocks, o.batch = []string{wayLock}, 4
	n := 0
	o.step = func(step string) {
		fmt.Println(step) // the parent may kill us at any time after any line
		if n++; n == diesAt {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	return errors.Join(wayCalls[call](ctx, st, o), st.Close())
}

func (s *wayScene) child(call string, diesAt int) *exec.Cmd {
	return reexec.Command(s.t, "die at a step", s.dir, call, strconv.Itoa(diesAt))
}

// diesAt runs the call in a process that kills itself at a step, and reports the last
// step; ended: it came to its end before.
func (s *wayScene) diesAt(call string, n int) (last string, ended bool) {
	s.t.Helper()
	out, err := s.child(call, n).Output()
	steps := strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(out)), " ", "-"))
	if len(steps) > 0 {
		last = steps[len(steps)-1]
	}
	if err == nil {
		return last, true
	}
	if reexec.KilledBy(err) == 0 {
		s.t.Fatalf("%s until step %d: %v", call, n, err)
	}
	return last, false
}

// crowded is mixed with enough beside it for several batches, and a lock to remove.
func (s *wayScene) crowded() {
	s.t.Helper()
	s.mixed()
	for i := range 10 {
		s.put(v1.EntryPending, fmt.Sprintf("m%d", i), fmt.Sprint(i), 100+i)
	}
	wayOK(s.t, os.WriteFile(s.from+"/"+wayLock, []byte("{"), 0o600))
}

// Killed after each step and run again: nothing is lost, nothing comes twice. Where the
// closing commit had happened, a message is acknowledged before the second run, and stays
// away.
func TestKilledAtEachStep(t *testing.T) {
	ctx := context.Background()
	seen := map[string]bool{}
	for n := 1; ; n++ {
		s := newWayScene(t, t.TempDir())
		s.crowded()
		step, ended := s.diesAt("import", n)
		seen[step] = true
		if ended {
			break
		}
		st := s.open()
		all, err := st.Imports(ctx)
		wayOK(t, err)
		if step == "closed" || step == "noted" {
			d, err := st.Load(ctx, "mail", "d", queue.LoadOptions{})
			wayOK(t, err, st.Ack(ctx, d.Receipt))
			delete(s.want, "claimed/d")
		} else {
			if len(all) > 0 && all[0].Closed {
				t.Errorf("killed after %s: closed already", step)
			}
			if c, err := st.Claim(ctx, "mail", queue.ClaimOptions{}); err == nil && len(c.Deliveries) > 0 {
				t.Errorf("killed after %s: half an import was claimed", step)
			}
		}
		o := s.options()
		o.RemoveLocks = []string{wayLock}
		rep, err := Import(ctx, st, o)
		switch {
		case step == "noted":
			if !errors.Is(err, ErrClosedSource) {
				t.Errorf("killed after %s: %v", step, err)
			}
		case err != nil || !rep.Closed:
			t.Errorf("killed after %s, run again: %+v, %v", step, rep, err)
		}
		if diff := wayDiffer(s.holds(st), s.want); diff != "" {
			t.Errorf("killed after %s, run again:\n%s", step, diff)
		}
		wayOK(t, st.Close())
		s.sound()
	}
	for _, step := range []string{"surveyed", "unlocked", "recovered", "synced", "checked", "marked", "failed-marked", "import-open", "added", "compared", "closed", "noted"} {
		if !seen[step] {
			t.Errorf("nobody died after %s", step)
		}
	}
}

var waySeed = flag.Int64("import.seed", 0, "replays the moments of TestKilledAtRandomMoments, as far as they can be")

// Killed at any moment, again and again, until it is through.
func TestKilledAtRandomMoments(t *testing.T) {
	seed := *waySeed
	if seed == 0 {
		seed = time.Now().UnixNano()
	}
	rng := rand.New(rand.NewPCG(uint64(seed), 0))
	t.Logf("seed %d", seed)
	ctx := context.Background()
	for range 6 {
		s := newWayScene(t, t.TempDir())
		s.crowded()
		for try := 0; ; try++ {
			cmd := s.child("import", 0)
			out, err := cmd.StdoutPipe()
			wayOK(t, err, cmd.Start())
			// Wherever it is when the line has come through: between two system calls.
			lines := bufio.NewScanner(out)
			for left := rng.IntN(14); left > 0 && lines.Scan(); left-- {
			}
			_ = cmd.Process.Kill()
			_, _ = io.Copy(io.Discard, out)
			_ = cmd.Wait()
			if cmd.ProcessState.Success() || try == 4 {
				break
			}
		}
		st := s.open()
		o := s.options()
		o.RemoveLocks = []string{wayLock}
		if locked := wayOwnLocks(t, s); locked != nil {
			o.RemoveLocks = append(o.RemoveLocks, locked...) // of the processes that we killed
		}
		if _, err := Import(ctx, st, o); err != nil && !errors.Is(err, ErrClosedSource) {
			t.Fatal(err)
		}
		if diff := wayDiffer(s.holds(st), s.want); diff != "" {
			t.Error(diff)
		}
		wayOK(t, st.Close())
		s.sound()
	}
}

// wayOwnLocks names the transfer locks that killed importers left.
func wayOwnLocks(t *testing.T, s *wayScene) (names []string) {
	src, err := v1.OpenSource(s.from, nil)
	wayOK(t, err)
	defer src.Close()
	v, err := src.Survey()
	wayOK(t, err)
	for _, l := range v.Locks {
		names = append(names, l.File)
	}
	return names
}

// Abandon, killed between the store and the markers, is finished by itself or undone by
// an import.
func TestAbandonIsKilled(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		steps int
		last  string
		next  string
	}{
		"before the markers, and run again":         {1, "abandoned", "abandon"},
		"before the markers, and imported instead":  {1, "abandoned", "import"},
		"between the markers, and run again":        {2, "failed-unmarked", "abandon"},
		"between the markers, and imported instead": {2, "failed-unmarked", "import"},
	} {
		next := c.next
		t.Run(name, func(t *testing.T) {
			s := newWayScene(t, t.TempDir())
			s.mixed()
			st := s.open()
			o := s.options()
			part, cut := context.WithCancel(ctx)
			o.step = func(step string) {
				if step == "added" {
					cut()
				}
			}
			if _, err := Import(part, st, o); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			wayOK(t, st.Close())
			if step, ended := s.diesAt("abandon", c.steps); ended || step != c.last {
				t.Fatalf("died at %s, ended %v", step, ended)
			}
			again := s.open()
			if got := s.holds(again); len(got) > 0 {
				t.Errorf("left %v", got)
			}
			wayOK(t, wayCalls[next](ctx, again, s.options()))
			if next == "abandon" {
				wayOK(t, wayCalls["import"](ctx, again, s.options()))
			}
			if diff := wayDiffer(s.holds(again), s.want); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// RemoveSource is killed after each file and run again.
func TestRemovalIsKilled(t *testing.T) {
	ctx := context.Background()
	s := newWayScene(t, t.TempDir())
	s.mixed()
	st := s.open()
	_, err := Import(ctx, st, s.options())
	wayOK(t, err, st.Close())
	for tries := 0; ; tries++ {
		if _, ended := s.diesAt("remove", 1+tries); ended {
			if tries < 3 {
				t.Errorf("only %d died", tries)
			}
			break
		}
		if tries == 3 {
			if _, ended := s.diesAt("remove", 0); !ended {
				t.Error("it did not end")
			}
			break
		}
	}
	if got, want := s.names(s.from)+" and "+s.names(s.fails), ".fs-safe-retirements .holdfast-import README done.delivered x.1.2.tmp ä.json and .holdfast-import"; got != want {
		t.Errorf("left %q, want %q", got, want)
	}
}
