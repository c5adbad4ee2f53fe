//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/holdfast/internal/doctor"
	holdfast "example.com/holdfast/v2"
)

// On the real filesystem: a store that is there is told of and not touched.
func TestDoctorBesideAStore(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1")
	s.must("enqueue", "chat", "2")
	s.must("claim", "chat", "--lease", "none")
	before := tree(t, s.dir)
	x := decode[examined](t, s.must("doctor", "--json"))
	if x.Fit == doctor.No || !x.Exists || x.Place != s.dir || len(x.Checks) != len(doctor.Names())+1 {
		t.Errorf("%+v", x)
	}
	if l := x.Store; l == nil || l.ID == "" || l.Pending != 1 || l.Processing != 1 || l.Failed != 0 || !l.Settled || l.OnDeadOwner != holdfast.Stop || l.Error != "" {
		t.Errorf("the store: %+v", l)
	}
	if c, _ := x.Check("store"); c.Outcome != doctor.Works {
		t.Errorf("the trial: %+v", c)
	}
	if after := tree(t, s.dir); after != before {
		t.Errorf("it changed\n%s\nto\n%s", before, after)
	}
	if text := s.must("doctor"); !strings.Contains(text, "\nstore      1 message pending, 1 message processing, 0\n           messages failed; on_dead_owner is stop\n") {
		t.Errorf("%s", text)
	}
}

// tree lists a directory with the content of each file.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			fmt.Fprintln(&b, path)
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s %q\n", path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A store that cannot be read is a warning, with the whole next command: what is asked is
// whether one can stand here.
func TestDoctorBesideAStoreInNeed(t *testing.T) {
	spoil := func(name, text string) func(*testing.T, *session) {
		return func(t *testing.T, s *session) { spoilFile(t, filepath.Join(s.dir, ".fs-safe-queue-v2", name), text) }
	}
	for name, c := range map[string]struct {
		spoil func(*testing.T, *session)
		says  string
		next  string // without --dir
		told  bool   // it can be read
	}{
		"corrupt":     {spoil("state.json", "{}"), "cannot be read: ", "holdfast verify", false},
		"no state":    {func(t *testing.T, s *session) { s.lose(".fs-safe-queue-v2/state.json") }, "cannot be read: ", "holdfast init --resume", false},
		"in a commit": {func(t *testing.T, s *session) { leaveRecord(t, s.dir) }, "stands inside a commit", "holdfast recover", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session{t: t, dir: filepath.Join(t.TempDir(), "store")}
			s.must("init")
			c.spoil(t, s)
			next := c.next + " --dir " + s.dir
			x := decode[examined](t, s.must("doctor", "--json"))
			if x.Fit != doctor.Warnings || x.Store == nil || (x.Store.Error == "") != c.told || x.Store.Weight != doctor.Warning || x.Next != next {
				t.Errorf("%+v, %+v", x.Store, x.Next)
			}
			words := strings.Join(strings.Fields(s.must("doctor")), " ")
			if !strings.Contains(words, " warning the store that is there ") || !strings.Contains(words, c.says) || !strings.Contains(words, " next "+next+" fit for v2: with warnings") {
				t.Errorf("%s", words)
			}
		})
	}
}

// lose removes a file.
func (s *session) lose(name string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
		s.t.Fatal(err)
	}
}

// Where init would be refused for what is there, that is a warning; others being able to
// write the directory does not hide it.
func TestDoctorInAFullDirectory(t *testing.T) {
	s := &session{t: t, dir: t.TempDir()}
	spoilFile(t, filepath.Join(s.dir, "notes"), "")
	next := "holdfast init --dir " + s.dir + "/holdfast"
	if x := decode[examined](t, s.must("doctor", "--json")); x.Fit != doctor.Warnings || x.Holds != "notes" || x.Store != nil || x.Next != next {
		t.Errorf("%+v", x)
	}
	if text := s.must("doctor"); !strings.Contains(text, "\nwarning    init wants an empty directory, and notes is there\n") || !strings.HasSuffix(text, "\nfit for v2: with warnings\n") {
		t.Errorf("%s", text)
	}
	(&session{t: t, dir: s.dir + "/holdfast"}).must("init") // the next command leads somewhere
	if err := os.Chmod(s.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := s.run("doctor"); got.code != exitOperator || !strings.Contains(got.out, "\nstore      none is there\n") || !strings.HasSuffix(got.err, "; run: chmod 700 "+s.dir+"\n") {
		t.Errorf("%+v", got)
	}
}
