//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// A refuseFS is a filesystem with another Link and MoveNew. The hooks are told the paths
// and get the true call to make.
type refuseFS struct {
	fsguard.FS
	link, moveNew refuseHook                                                                 // nil: the true call
	open          func(path string, call func() (fsguard.File, error)) (fsguard.File, error) // the same
}

type refuseHook func(old, new string, call func() error) error

// refuseFS gives the filesystem of a mechanism with hooks.
func (w unitWay) refuseFS(t testing.TB, link, moveNew refuseHook) fsguard.FS {
	t.Helper()
	inner, err := w.mechanism.open()
	unitOK(t, err)
	return &refuseFS{FS: inner, link: link, moveNew: moveNew}
}

func (f *refuseFS) OpenRoot(path string) (fsguard.Dir, error) {
	d, err := f.FS.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &refuseDir{d, f, path}, nil
}

type refuseDir struct {
	fsguard.Dir
	fs   *refuseFS
	path string
}

func (d *refuseDir) OpenDir(name string) (fsguard.Dir, error) {
	sub, err := d.Dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &refuseDir{sub, d.fs, filepath.Join(d.path, name)}, nil
}

func (d *refuseDir) Open(name string) (fsguard.File, error) {
	call := func() (fsguard.File, error) { return d.Dir.Open(name) }
	if d.fs.open == nil {
		return call()
	}
	return d.fs.open(filepath.Join(d.path, name), call)
}

func (d *refuseDir) Move(old string, to fsguard.Dir, name string) error {
	return d.Dir.Move(old, to.(*refuseDir).Dir, name)
}

func (d *refuseDir) Link(old string, to fsguard.Dir, name string) error {
	return d.hooked(d.fs.link, d.Dir.Link, old, to, name)
}

func (d *refuseDir) MoveNew(old string, to fsguard.Dir, name string) error {
	return d.hooked(d.fs.moveNew, d.Dir.MoveNew, old, to, name)
}

func (d *refuseDir) hooked(hook refuseHook, do func(string, fsguard.Dir, string) error, old string, to fsguard.Dir, name string) error {
	inner := to.(*refuseDir)
	call := func() error { return do(old, inner.Dir, name) }
	if hook == nil {
		return call()
	}
	return hook(filepath.Join(d.path, old), filepath.Join(inner.path, name), call)
}

// always is a hook that makes no call.
func always(err error) refuseHook {
	return func(old, new string, _ func() error) error {
		return &fsguard.Error{Op: fsguard.OpLink, Name: filepath.Base(old) + " to " + filepath.Base(new), Err: err}
	}
}

// onEntries leaves the probe's files, and all temporary ones, to the true call.
func onEntries(hook refuseHook) refuseHook {
	return func(old, new string, call func() error) error {
		if isTemp(old) {
			return call()
		}
		return hook(old, new, call)
	}
}

// A refuseScene is something that needs a link, or a rename that replaces nothing.
type refuseScene struct {
	name  string
	build func(t testing.TB, d unitDirs)
	do    func(ctx context.Context, s *Store) error

	queue, failed string // what stands after do, once it is not refused
}

var refuseScenes = []refuseScene{
	{"claim", func(t testing.TB, d unitDirs) {
		unitPut(t, d.at("a.json"), `1`)
	}, func(ctx context.Context, s *Store) error {
		return refuseLoad(ctx, s, "a", "1")
	}, "a.processing 1", ""},

	{"batch claim", func(t testing.TB, d unitDirs) {
		unitPut(t, d.at("a.json"), `1`)
		unitPut(t, d.at("b.json"), `2`)
		refuseClaimed(t, d, "c", `3`)
	}, func(ctx context.Context, s *Store) error {
		b, err := s.LoadPending(ctx, nil)
		for _, c := range b.Claims {
			err = errors.Join(err, c.Close())
		}
		if want := 1; err != nil && len(b.Claims) != want || err == nil && len(b.Claims) != 3 || len(b.Skipped) != 0 {
			return fmt.Errorf("%d claims, %d skipped beside %v", len(b.Claims), len(b.Skipped), err)
		}
		return err
	}, "a.processing 1, b.processing 2, c.processing 3", ""},

	{"quarantine", func(t testing.TB, d unitDirs) {
		refuseClaimed(t, d, "a", `1`)
		unitPut(t, d.at("a.json"), `2`)
	}, func(ctx context.Context, s *Store) error {
		c, err := s.Load(ctx, "a", nil)
		if err != nil {
			return err
		}
		return errors.Join(s.Fail(ctx, c), c.Close())
	}, "a.json 2", "a.json 1"},

	{"quarantine by ID", func(t testing.TB, d unitDirs) {
		refuseClaimed(t, d, "a", `1`)
	}, func(ctx context.Context, s *Store) error {
		return s.FailID(ctx, "a")
	}, "", "a.json 1"},

	{"quarantine of a pending entry", func(t testing.TB, d unitDirs) {
		unitPut(t, d.at("a.json"), `1`)
	}, func(ctx context.Context, s *Store) error {
		return s.FailID(ctx, "a")
	}, "", "a.json 1"},

	{"restoration before a load", refuseRecord, func(ctx context.Context, s *Store) error {
		return refuseLoad(ctx, s, "a", "1")
	}, "a.json 2, a.processing 1", ""},

	{"restoration before an ack", refuseRecord, func(ctx context.Context, s *Store) error {
		return s.AckID(ctx, "a")
	}, "a.json 2", ""},

	{"restoration before a quarantine", refuseRecord, func(ctx context.Context, s *Store) error {
		return s.FailID(ctx, "a")
	}, "a.json 2", "a.json 1"},
}

// halfMade are scenes that another's death left, which need neither.
var halfMade = []refuseScene{
	{"claim of two links", func(t testing.TB, d unitDirs) {
		refuseClaimed(t, d, "a", `1`)
		unitOK(t, os.Link(d.at("a.processing"), d.at("a.json")))
	}, func(ctx context.Context, s *Store) error {
		return refuseLoad(ctx, s, "a", "1")
	}, "a.processing 1", ""},

	{"record of the claim itself", func(t testing.TB, d unitDirs) {
		refuseClaimed(t, d, "a", `1`)
		unitOK(t, os.MkdirAll(d.at(retirementsDir, "a.json"), 0o700),
			os.Link(d.at("a.processing"), d.at(retirementsDir, "a.json", retiredEntry)))
	}, func(ctx context.Context, s *Store) error {
		return refuseLoad(ctx, s, "a", "1")
	}, "a.processing 1", ""},

	{"superseded record", func(t testing.TB, d unitDirs) {
		refuseRecord(t, d)
		unitPut(t, d.at("a.json"), `3`)
	}, func(ctx context.Context, s *Store) error {
		return refuseLoad(ctx, s, "a", "1")
	}, "a.json 3, a.processing 1", ""},

	{"empty record", func(t testing.TB, d unitDirs) {
		refuseClaimed(t, d, "a", `1`)
		unitOK(t, os.MkdirAll(d.at(retirementsDir, "a.json"), 0o700))
	}, func(ctx context.Context, s *Store) error {
		return s.AckID(ctx, "a")
	}, "", ""},

	{"quarantine cut off between its names", func(t testing.TB, d unitDirs) {
		refuseClaimed(t, d, "a", `1`)
		unitOK(t, os.Link(d.at("a.processing"), filepath.Join(d.failed, "a.json")))
	}, func(ctx context.Context, s *Store) error {
		if err := refuseLoad(ctx, s, "a", "1"); !errors.Is(err, ErrNotFound) {
			return fmt.Errorf("load: got %v, want %v", err, ErrNotFound)
		}
		return nil
	}, "", "a.json 1"},

	{"delivered marker", func(t testing.TB, d unitDirs) {
		unitPut(t, d.at("a.delivered"), `1`)
	}, func(ctx context.Context, s *Store) error {
		_, err := s.LoadPending(ctx, nil)
		return err
	}, "", ""},
}

func refuseLoad(ctx context.Context, s *Store, id, payload string) error {
	c, err := s.Load(ctx, id, nil)
	if err != nil {
		return err
	}
	if string(c.Payload) != payload {
		err = fmt.Errorf("loaded %q, want %q", c.Payload, payload)
	}
	return errors.Join(err, c.Close())
}

// refuseClaimed makes a claimed entry without any call that may be refused.
func refuseClaimed(t testing.TB, d unitDirs, id, payload string) {
	t.Helper()
	unitPut(t, d.at(id+processingSuffix), payload)
}

// refuseRecord leaves a retirement that took a newer entry and did not restore it.
func refuseRecord(t testing.TB, d unitDirs) {
	t.Helper()
	refuseClaimed(t, d, "a", `1`)
	unitOK(t, os.MkdirAll(d.at(retirementsDir, "a.json"), 0o700))
	unitPut(t, d.at(retirementsDir, "a.json", retiredEntry), `2`)
}

// wantRefusal says how err is not a refusal with that errno by route, or nil.
func wantRefusal(err error, route Route, errno syscall.Errno) error {
	var refused *LinkError
	var code Code
	switch {
	case !errors.Is(err, ErrHelperUnavailable), !errors.As(err, &code), code != ErrHelperUnavailable:
		return fmt.Errorf("got %v, want %v", err, ErrHelperUnavailable)
	case !errors.As(err, &refused):
		return fmt.Errorf("got %T %v, want a *LinkError", err, err)
	case refused.Errno != errno || !errors.Is(err, errno) || refused.Route != route || refused.Imitated:
		return fmt.Errorf("got %+v, want %v by %v", refused, errno, route)
	case refused.From == "" || refused.To == "" || !strings.Contains(err.Error(), errno.Error()):
		return fmt.Errorf("%q does not tell enough", err)
	}
	return nil
}

var (
	linkErrnos   = []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.EXDEV, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS}
	renameErrnos = []syscall.Errno{syscall.EINVAL, syscall.EXDEV, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS}
)

// refusals are the errnos by which the call of a route is refused, each number once.
func (w unitWay) refusals() []syscall.Errno {
	if w.route == RenameNoReplace {
		return slices.Compact(slices.Clone(renameErrnos))
	}
	return slices.Compact(slices.Clone(linkErrnos))
}

// hooked gives the way's filesystem with its own call hooked and the other's forbidden.
func (w unitWay) hooked(t testing.TB, hook refuseHook) fsguard.FS {
	t.Helper()
	forbidden := func(old, new string, call func() error) error {
		t.Errorf("%v made the other route's call, from %s to %s", w, old, new)
		return call()
	}
	if w.route == RenameNoReplace {
		return w.refuseFS(t, forbidden, hook)
	}
	return w.refuseFS(t, hook, forbidden)
}
