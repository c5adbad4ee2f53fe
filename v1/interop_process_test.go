//go:build unix

package holdfast

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

func init() {
	roles["interop die"] = interopDieAt
}

// interopStart starts this binary in a role.
func interopStart(t testing.TB, role string, arg any) *process {
	t.Helper()
	text, err := json.Marshal(arg)
	interopOK(t, err)
	return start(t, role, string(text))
}

// An interopDeath is what a Go process does, and where it dies.
type interopDeath struct {
	Dirs  interopDirs
	Route Route
	Step  string // a name of interopSteps
	At    int    // before this operation
	Newer bool   // another program enqueues G2 while the entry is being claimed
}

// interopSteps are the calls in which a side is stopped. Gen is what a new payload has.
var interopSteps = map[string]func(s *Store) error{
	"enqueue": func(s *Store) error {
		_, err := s.Enqueue(context.Background(), interopID, interopGen("G1"))
		return err
	},
	"load": func(s *Store) error { return interopLoadAnd(s, nil) },
	"migrate": func(s *Store) error {
		return interopLoadAnd(s, &LoadOptions{
			Migrate: func(context.Context, string, []byte) ([]byte, error) { return interopGen("M1"), nil },
		})
	},
	"pending": func(s *Store) error {
		_, err := s.LoadPending(context.Background(), nil)
		return err
	},
	"ack":  func(s *Store) error { return s.AckID(context.Background(), interopID) },
	"fail": func(s *Store) error { return s.FailID(context.Background(), interopID) },
}

func interopLoadAnd(s *Store, o *LoadOptions) error {
	c, err := s.Load(context.Background(), interopID, o)
	if err != nil {
		return err
	}
	return c.Close()
}

// interopDieAt does a step and dies in it. It prints "done" if it came through.
func interopDieAt(args []string) error {
	var d interopDeath
	if err := json.Unmarshal([]byte(args[0]), &d); err != nil {
		return err
	}
	inner := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	w := crashtest.Wrap(inner, crashtest.Plan{})
	s, err := Open(d.Dirs.Queue, &Options{FailedDir: d.Dirs.Failed, ClaimBy: d.Route, fs: w})
	if err != nil {
		return err
	}
	if d.Newer {
		other, err := Open(d.Dirs.Queue, nil)
		if err != nil {
			return err
		}
		inner.Arm(crashtest.FailMatching(d.meanwhile(other), nil, 0))
	}
	plan := crashtest.StopBefore(d.At)
	plan.OnStop = crashtest.KillSelf
	w.Arm(plan)
	err = interopSteps[d.Step](s)
	fmt.Println("done", codeOf(err))
	return nil
}

// meanwhile watches for the moment at which a newer entry matters, and enqueues it.
func (d interopDeath) meanwhile(other *Store) func(fsguard.Op, string) bool {
	came := false
	return func(op fsguard.Op, name string) bool {
		now := op == fsguard.OpMove && path.Base(name) == retiredEntry
		if d.Route == RenameNoReplace {
			now = op == fsguard.OpSyncDir
		}
		if now && !came {
			came = true
			if _, err := other.Enqueue(context.Background(), interopID, interopGen("G2")); err != nil {
				panic(err)
			}
		}
		return false
	}
}
