//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// T32: every file is 0600 and every directory 0700, whatever the umask, at each step.
func TestTrial32(t *testing.T) {
	t.Parallel()
	for _, w := range unitWays {
		if w.mechanism == Require {
			continue // the very filesystem that Auto has here
		}
		for _, umask := range []string{"000", "022", "077", "777"} {
			t.Run(w.String()+"/"+umask, func(t *testing.T) {
				base := t.TempDir()
				lines, err := start(t, "modes under a umask", umask, string(w.mechanism), strconv.Itoa(int(w.route)), base).Rest()
				if err != nil || !slices.Equal(lines, []string{"done"}) {
					t.Errorf("%v %q", err, lines)
				}
			})
		}
	}
}

func init() { roles["modes under a umask"] = modesUnderUmask }

func modesUnderUmask(args []string) error {
	umask, err := strconv.ParseUint(args[0], 8, 32)
	if err != nil {
		return err
	}
	route, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	w, base := unitWay{Mechanism(args[1]), Route(route)}, args[3]
	syscall.Umask(int(umask))
	top := filepath.Join(base, "made", "on", "the", "way")
	o := Options{FailedDir: filepath.Join(top, "failed"), ClaimBy: w.route, Mechanism: w.mechanism}
	if o.fs, err = w.mechanism.open(); err != nil {
		return err
	}
	seen := map[string]int{}
	check := func() error {
		return filepath.WalkDir(filepath.Join(base, "made"), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			want := fs.FileMode(0o600)
			if e.IsDir() {
				want = fs.ModeDir | 0o700
			}
			if info.Mode() != want {
				return fmt.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
			}
			seen[filepath.Ext(path)]++
			return nil
		})
	}
	// A call that claims or restores is made while the lock stands, and the probe's files.
	watched := func(_, _ string, call func() error) error { return errors.Join(check(), call(), check()) }
	o.fs = &refuseFS{FS: o.fs, link: watched, moveNew: watched}
	ctx := context.Background()
	s, err := OpenOrCreate(filepath.Join(top, "queue"), &o)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Enqueue(ctx, "a", []byte(`1`)); err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	c, err := s.Load(ctx, "a", &LoadOptions{Migrate: func(context.Context, string, []byte) ([]byte, error) { return []byte(`2`), check() }})
	if err != nil {
		return err
	}
	if err := errors.Join(check(), s.Fail(ctx, c), check()); err != nil {
		return err
	}
	for _, suffix := range []string{pendingSuffix, processingSuffix, lockSuffix} {
		if seen[suffix] == 0 {
			return fmt.Errorf("no %s file was looked at", suffix)
		}
	}
	fmt.Println("done")
	return nil
}

// What is not there, or no directory, is told by its own error and is not made.
func TestOpenRefuses(t *testing.T) {
	base := t.TempDir()
	plain := filepath.Join(base, "plain")
	unitPut(t, plain, "")
	unitOK(t, os.Symlink("nowhere", filepath.Join(base, "dangling")), os.Mkdir(filepath.Join(base, "dir"), 0o700))
	dir := filepath.Join(base, "dir")
	before := unitTree(t, base)
	for _, c := range []struct {
		name, queue, failed string
		want                error
		says                string
	}{
		{"missing", filepath.Join(base, "missing"), "", ErrNoDirectory, "OpenOrCreate"},
		{"missing above", filepath.Join(base, "missing", "below"), "", ErrNoDirectory, "missing/below"},
		{"missing failed directory", dir, filepath.Join(base, "missing"), ErrNoDirectory, "missing"},
		{"a file", plain, "", ErrNoDirectory, "plain"},
		{"a file as failed directory", dir, plain, ErrNoDirectory, "plain"},
		{"below a file", filepath.Join(plain, "below"), "", ErrNoDirectory, "plain"},
		{"a dangling symlink", filepath.Join(base, "dangling"), "", ErrNoDirectory, "dangling"},
		{"the failed directory is the queue", dir, dir, ErrOptions, "FailedDir"},
		{"the failed directory is the queue by another name", dir, base + "/./dir/../dir", ErrOptions, "FailedDir"},
		{"no name", "", "", ErrOptions, "empty"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, m := range []Mechanism{Off, Auto, Require} {
				s, err := Open(c.queue, &Options{FailedDir: c.failed, Mechanism: m})
				unitIs(t, string(m), err, c.want, c.says)
				if s != nil {
					t.Error("a store beside an error")
				}
			}
		})
	}
	for name, c := range map[string]struct{ queue, failed string }{"a file": {plain, ""}, "a file as failed directory": {dir, plain}, "below a file": {plain + "/x", ""}} {
		if _, err := OpenOrCreate(c.queue, &Options{FailedDir: c.failed}); err == nil {
			t.Errorf("%s: created", name)
		}
	}
	if _, err := OpenOrCreate("", nil); !errors.Is(err, ErrOptions) {
		t.Errorf("no name: got %v, want %v", err, ErrOptions)
	}
	unitUnchanged(t, before, unitTree(t, base))
}

// OpenOrCreate makes what is missing, and takes what is there.
func TestOpenOrCreate(t *testing.T) {
	base := t.TempDir()
	queue, failed := filepath.Join(base, "a", "b", "queue"), filepath.Join(base, "a", "failed")
	for range 2 {
		s, err := OpenOrCreate(queue, &Options{FailedDir: failed})
		unitOK(t, err)
		if _, err := s.Enqueue(t.Context(), "a", []byte(`1`)); err != nil {
			t.Error(err)
		}
		unitOK(t, s.FailID(t.Context(), "a"), os.Remove(filepath.Join(failed, "a.json")), s.Close())
	}
	// A relative path means what it meant when the store was opened.
	t.Chdir(filepath.Join(base, "a"))
	s, err := OpenOrCreate("relative", &Options{FailedDir: "failed", Mechanism: Off})
	unitOK(t, err)
	defer s.Close()
	t.Chdir(base)
	unitEnqueue(t, s, "a", `1`)
	unitOK(t, s.FailID(t.Context(), "a"))
	if got := unitNames(t, failed); got != "a.json 1" {
		t.Errorf("the failed directory holds %q", got)
	}
}

// The path may lead through symlinks, its last component included, as a v2 root's may;
// what matters is the directory that it leads to, and that it goes on doing so.
func TestSymlinkToDirectory(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		d := newUnitDirs(t)
		base := filepath.Dir(d.queue)
		through := unitDirs{filepath.Join(base, "link"), filepath.Join(base, "above", "failed")}
		unitOK(t, os.Symlink("queue", through.queue), os.Symlink(".", filepath.Join(base, "above")), os.Mkdir(filepath.Join(base, "other"), 0o700))
		s := through.open(t, w, Options{})
		unitEnqueue(t, s, "a", `1`)
		unitEnqueue(t, s, "b", `2`)
		unitOK(t, s.FailID(t.Context(), "a"))
		d.wantNames(t, "b.json 2", "a.json 1")
		if _, err := Open(d.queue, &Options{FailedDir: through.queue}); !errors.Is(err, ErrOptions) {
			t.Errorf("the queue as its own failed directory: %v", err)
		}
		unitOK(t, os.Remove(through.queue), os.Symlink("other", through.queue))
		before := unitTree(t, base)
		unitIs(t, "load", func() error { _, err := s.Load(t.Context(), "b", nil); return err }(), ErrPathMismatch, through.queue)
		unitUnchanged(t, before, unitTree(t, base))
	})
}

// A directory that was swapped is not worked in, and neither is the one that was opened.
func TestSwappedDirectory(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		s, d := newUnitStore(t, w)
		ctx := t.Context()
		unitEnqueue(t, s, "a", `1`)
		unitEnqueue(t, s, "b", `2`)
		c := unitLoad(t, s, "b", "2")
		base := filepath.Dir(d.queue)
		swaps := map[string]func(dir string) error{
			"gone":    func(string) error { return nil },
			"another": func(dir string) error { return os.Mkdir(dir, 0o700) },
			"a copy": func(dir string) error {
				return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "b.processing"), []byte(`2`), 0o600))
			},
			"a file": func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		}
		calls := map[string]func() error{
			"load":       func() error { _, err := s.Load(ctx, "a", nil); return err },
			"enqueue":    func() error { _, err := s.Enqueue(ctx, "c", []byte(`1`)); return err },
			"ack":        func() error { return s.Ack(ctx, c) },
			"ack by ID":  func() error { return s.AckID(ctx, "b") },
			"fail":       func() error { return s.Fail(ctx, c) },
			"fail by ID": func() error { return s.FailID(ctx, "a") },
			"batch":      func() error { _, err := s.LoadPending(ctx, &BatchOptions{TempMaxAge: 1}); return err },
			"status":     func() error { _, err := s.Status(ctx); return err },
		}
		for what, swap := range swaps {
			for _, dir := range []string{d.queue, d.failed} {
				unitOK(t, os.Rename(dir, dir+"-away"), swap(dir))
				before := unitTree(t, base)
				for name, call := range calls {
					if dir == d.failed && !slices.Contains([]string{"fail", "fail by ID", "status"}, name) {
						continue // it does not go there
					}
					unitIs(t, name+", "+what, call(), ErrPathMismatch, dir, "not the directory that was opened")
				}
				unitUnchanged(t, before, unitTree(t, base))
				unitOK(t, os.RemoveAll(dir), os.Rename(dir+"-away", dir))
			}
		}
		unitOK(t, s.Ack(ctx, c), s.FailID(ctx, "a"))
		d.wantNames(t, "", "a.json 1")
	})
}

// What was handed over to a v2 store is refused, whatever the marker is.
func TestOpenImported(t *testing.T) {
	for name, mark := range map[string]func(path string) error{
		"file":      func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"symlink":   func(path string) error { return os.Symlink("nowhere", path) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newUnitDirs(t)
			unitOK(t, mark(d.at(markerFile)))
			before := d.tree(t)
			for _, open := range []func(string, *Options) (*Store, error){Open, OpenOrCreate} {
				s, err := open(d.queue, &Options{FailedDir: d.failed})
				unitIs(t, "open", err, ErrImported, markerFile, "v2")
				if s != nil {
					t.Error("a store beside an error")
				}
			}
			unitUnchanged(t, before, d.tree(t))
		})
	}
}

// Nothing inside may be a symlink: not the retirement records, not one of them.
func TestSymlinkInside(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		for _, c := range []struct {
			name string
			make func(d unitDirs, elsewhere string) error
		}{
			{"records", func(d unitDirs, elsewhere string) error { return os.Symlink(elsewhere, d.at(retirementsDir)) }},
			{"record", func(d unitDirs, elsewhere string) error {
				return errors.Join(os.Mkdir(d.at(retirementsDir), 0o700), os.Symlink(elsewhere, d.at(retirementsDir, "a.json")))
			}},
			{"entry in a record", func(d unitDirs, elsewhere string) error {
				return errors.Join(os.MkdirAll(d.at(retirementsDir, "a.json"), 0o700), os.Symlink(elsewhere, d.at(retirementsDir, "a.json", retiredEntry)))
			}},
			{"a file as the records", func(d unitDirs, _ string) error { return os.WriteFile(d.at(retirementsDir), nil, 0o600) }},
			{"a file as the record", func(d unitDirs, _ string) error {
				return errors.Join(os.Mkdir(d.at(retirementsDir), 0o700), os.WriteFile(d.at(retirementsDir, "a.json"), nil, 0o600))
			}},
			{"two entries in a record", func(d unitDirs, _ string) error {
				dir := d.at(retirementsDir, "a.json")
				return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, retiredEntry), nil, 0o600), os.WriteFile(filepath.Join(dir, "x"), nil, 0o600))
			}},
			{"another entry in a record", func(d unitDirs, _ string) error {
				dir := d.at(retirementsDir, "a.json")
				return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "x"), nil, 0o600))
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				s, d := newUnitStore(t, w)
				elsewhere := t.TempDir()
				unitPut(t, d.at("a.json"), `1`)
				refuseClaimed(t, d, "b", `2`)
				unitOK(t, c.make(d, elsewhere))
				before := unitTree(t, d.queue, elsewhere)
				for what, err := range map[string]error{
					"load": func() error { _, err := s.Load(t.Context(), "a", nil); return err }(),
					"fail": s.FailID(t.Context(), "a"),
					"ack":  s.AckID(t.Context(), "a"),
				} {
					unitIs(t, what, err, ErrPathMismatch, retirementsDir)
				}
				unitUnchanged(t, before, unitTree(t, d.queue, elsewhere))
			})
		}
	})
}
