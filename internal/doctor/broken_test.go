//go:build unix

package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// A liar is a filesystem that answers nil and does something else.
type liar struct {
	fsguard.FS
	dir  func(fsguard.Dir) fsguard.Dir
	told chan struct{}
}

func (l liar) OpenRoot(path string) (fsguard.Dir, error) {
	d, err := l.FS.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return liarRoot{d, l.dir}, nil
}

func (l liar) Watch(string, string) (fsguard.Watch, error) { return deafWatch{l.told}, nil }

// A liarRoot lies in what is opened below it.
type liarRoot struct {
	fsguard.Dir
	dir func(fsguard.Dir) fsguard.Dir
}

func (r liarRoot) OpenDir(name string) (fsguard.Dir, error) {
	d, err := r.Dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return r.dir(d), nil
}

type deafWatch struct{ told chan struct{} }

func (w deafWatch) C() <-chan struct{} { return w.told }
func (deafWatch) Lost() bool           { return false }
func (deafWatch) Sure() bool           { return true }
func (deafWatch) Close() error         { return nil }

type (
	renamesNothing struct{ fsguard.Dir }
	replacesAll    struct{ fsguard.Dir }
	copiesLinks    struct{ fsguard.Dir }
	foldsCase      struct{ fsguard.Dir }
	createsTwice   struct{ fsguard.Dir }
	opensModes     struct{ fsguard.Dir }
	everybodyLocks struct{ fsguard.Dir }
	countsOneLink  struct{ fsguard.Dir }
)

func (renamesNothing) Rename(string, string) error { return nil }

func (d replacesAll) MoveNew(from string, to fsguard.Dir, name string) error {
	return d.Dir.Rename(from, name)
}

func (d copiesLinks) Link(from string, to fsguard.Dir, name string) error {
	return d.Dir.WriteFile(name, []byte(from))
}

func (d countsOneLink) Link(from string, _ fsguard.Dir, name string) error {
	return d.Dir.Link(from, d.Dir, name)
}

func (d countsOneLink) Lstat(name string) (fsguard.Info, error) {
	info, err := d.Dir.Lstat(name)
	info.Links = 1
	return info, err
}

func (d foldsCase) Lstat(name string) (fsguard.Info, error) {
	return d.Dir.Lstat(strings.ToLower(name))
}

func (d createsTwice) Create(name string) (fsguard.File, error) {
	f, err := d.Dir.Create(name)
	if err != nil {
		return d.Dir.OpenWrite(name)
	}
	return f, nil
}

func (d opensModes) Lstat(name string) (fsguard.Info, error) {
	info, err := d.Dir.Lstat(name)
	info.Mode |= 0o060
	return info, err
}

func (d everybodyLocks) Create(name string) (fsguard.File, error) {
	f, err := d.Dir.Create(name)
	return lockedByAll{f}, err
}

func (d everybodyLocks) OpenWrite(name string) (fsguard.File, error) {
	f, err := d.Dir.OpenWrite(name)
	return lockedByAll{f}, err
}

type lockedByAll struct{ fsguard.File }

func (lockedByAll) Lock(fsguard.LockMode) error            { return nil }
func (lockedByAll) TryLock(fsguard.LockMode) (bool, error) { return true, nil }
func (lockedByAll) Unlock() error                          { return nil }

// What answers as if it had worked is found out.
func TestLiesAreFoundOut(t *testing.T) {
	for name, c := range map[string]struct {
		dir     func(fsguard.Dir) fsguard.Dir
		check   string
		outcome Outcome
		seen    string
		verdict Verdict
	}{
		"a rename that does nothing": {func(d fsguard.Dir) fsguard.Dir { return renamesNothing{d} }, "rename_over", Broken, "the old name is still there", No},
		"a replacing rename":         {func(d fsguard.Dir) fsguard.Dir { return replacesAll{d} }, "rename_no_replace", Broken, "it replaced a file", Yes},
		"a link that copies":         {func(d fsguard.Dir) fsguard.Dir { return copiesLinks{d} }, "hard_link", Broken, "another file", Yes},
		"a link that is not counted": {func(d fsguard.Dir) fsguard.Dir { return countsOneLink{d} }, "hard_link", Broken, "its links are 1", Yes},
		"folded case":                {func(d fsguard.Dir) fsguard.Dir { return foldsCase{d} }, "name_case", Told, "one name here", Yes},
		"a create that opens":        {func(d fsguard.Dir) fsguard.Dir { return createsTwice{d} }, "exclusive_create", Broken, "a second time", No},
		"open modes":                 {func(d fsguard.Dir) fsguard.Dir { return opensModes{d} }, "private_modes", Broken, "others may write it", No},
		"locks for everybody":        {func(d fsguard.Dir) fsguard.Dir { return everybodyLocks{d} }, "file_lock", Broken, "two hold it", No},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := simulated(t)
			told := make(chan struct{}, 1)
			told <- struct{}{}
			m := on(liar{p, c.dir, told})
			m.After = func(time.Duration) <-chan time.Time { return nil } // what is told is there
			r := examine(t, m, "/home")
			got, _ := r.Check(c.check)
			if got.Outcome != c.outcome || !strings.Contains(got.Seen, c.seen) || r.Verdict() != c.verdict {
				t.Errorf("%+v, the verdict is %q; want %s, %q, %q", got, r.Verdict(), c.outcome, c.seen, c.verdict)
			}
			if watch, _ := r.Check("watch"); watch.Outcome != Works || r.Mechanisms.Wake != "events, and a look every 30 seconds" {
				t.Errorf("watch: %+v, %q", watch, r.Mechanisms.Wake)
			}
			if names := left(t, p, "/home"); len(names) != 0 {
				t.Errorf("left behind: %v", names)
			}
		})
	}
}

// A watch that tells nothing is given up, and the poll named in its place.
func TestADeafWatch(t *testing.T) {
	_, p := simulated(t)
	m := on(liar{p, func(d fsguard.Dir) fsguard.Dir { return d }, make(chan struct{})})
	r := examine(t, m, "/home")
	watch, _ := r.Check("watch")
	if watch.Outcome != Broken || watch.Seen != "nothing was told within 2s" || r.Verdict() != Yes || r.Mechanisms.Wake != "a look every second" {
		t.Errorf("%+v, %s, %+v", watch, r.Verdict(), r.Mechanisms)
	}
}

// The trial gets a directory that it can make, inside the scratch directory.
func TestTheTrialsPlace(t *testing.T) {
	_, p := simulated(t)
	m := on(p)
	at := ""
	m.Trial = func(_ context.Context, dir string) error {
		at = dir
		return nil
	}
	examine(t, m, "/home")
	if !strings.HasPrefix(at, "/home/"+scratchPrefix) || !strings.HasSuffix(at, "/store") {
		t.Errorf("tried at %q", at)
	}
}
