//go:build unix

package holdfast

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// What can be claimed and not be read stays claimed, and can be set aside.
func TestLoadUnreadable(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       error
		says       string
	}{
		{"no JSON", `{"a":`, ErrInvalidJSON, "a.processing"},
		{"no UTF-8", "\"\xff\"", ErrInvalidJSON, "UTF-8"},
		{"empty", "", ErrInvalidJSON, "a.processing"},
		{"zeros", "\x00\x00\x00", ErrInvalidJSON, "a.processing"},
		{"one byte too long", `"` + strings.Repeat("x", 99) + `"`, ErrTooLarge, "MaxEntryBytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachUnitWay(t, func(t *testing.T, w unitWay) {
				d := newUnitDirs(t)
				s := d.open(t, w, Options{MaxEntryBytes: 100})
				unitPut(t, d.at("a.json"), c.text)
				for range 2 {
					got, err := s.Load(t.Context(), "a", nil)
					unitIs(t, "load", err, c.want, c.says)
					if got != nil {
						t.Error("a claim beside an error")
					}
					d.wantNames(t, strings.TrimSpace("a.processing "+c.text), "")
				}
				unitOK(t, s.FailID(t.Context(), "a"))
				d.wantNames(t, "", strings.TrimSpace("a.json "+c.text))
			})
		})
	}
	t.Run("as long as allowed", func(t *testing.T) {
		d := newUnitDirs(t)
		s := d.open(t, unitWay{}, Options{MaxEntryBytes: 100})
		unitPut(t, d.at("a.json"), `"`+strings.Repeat("x", 98)+`"`)
		unitLoad(t, s, "a", `"`+strings.Repeat("x", 98)+`"`)
	})
}

// A file with another name is nobody's to claim, whether the name is known or not; nor is
// a claim with another name anybody's to read.
func TestLoadLinked(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		s, d := newUnitStore(t, w)
		unitPut(t, d.at("a.json"), `1`)
		refuseClaimed(t, d, "b", `2`)
		unitPut(t, d.at("c.json"), `3`)
		elsewhere := filepath.Join(t.TempDir(), "elsewhere")
		unitOK(t, os.Link(d.at("a.json"), elsewhere), os.Link(d.at("b.processing"), elsewhere+"-b"), os.Link(d.at("c.json"), d.at("d.json")))
		before := d.tree(t)
		for id, name := range map[string]string{"a": "a.json", "b": "b.processing", "c": "c.json", "d": "d.json"} {
			_, err := s.Load(t.Context(), id, nil)
			unitIs(t, id, err, ErrPathMismatch, name)
			var code Code
			if !errors.As(err, &code) || code != "path-mismatch" {
				t.Errorf("%s: the code is %q", id, code)
			}
		}
		b, err := s.LoadPending(t.Context(), nil)
		if err != nil || len(b.Claims) != 0 || len(b.Skipped) != 4 {
			t.Errorf("batch %+v, %v", b, err)
		}
		for _, skipped := range b.Skipped {
			unitIs(t, skipped.ID, skipped.Err, ErrPathMismatch)
		}
		unitUnchanged(t, before, d.tree(t))
		unitOK(t, os.Remove(elsewhere), os.Remove(elsewhere+"-b"), os.Remove(d.at("d.json")))
		b, err = s.LoadPending(t.Context(), nil)
		if err != nil || len(b.Claims) != 3 {
			t.Errorf("batch %+v, %v", b, err)
		}
	})
}

// A claim that is swapped while it is being read is not taken for the one that was.
func TestLoadSwapped(t *testing.T) {
	swap := func(t *testing.T, path string) {
		unitPut(t, path+".new", `"another"`)
		unitOK(t, os.Rename(path+".new", path))
	}
	for _, c := range []struct {
		name          string
		before, after func(t *testing.T, path string)
		want          error
	}{
		{"before it is opened", swap, nil, ErrChanged},
		{"after it was opened", nil, swap, ErrChanged},
		{"gone before it is opened", func(t *testing.T, path string) { unitOK(t, os.Remove(path)) }, nil, ErrNotFound},
		{"gone after it was opened", nil, func(t *testing.T, path string) { unitOK(t, os.Remove(path)) }, ErrNotFound},
		{"a symlink before it is opened", func(t *testing.T, path string) {
			unitOK(t, os.Remove(path), os.Symlink("elsewhere", path))
		}, nil, ErrNotFile},
		{"a FIFO before it is opened", func(t *testing.T, path string) {
			unitOK(t, os.Remove(path), syscall.Mkfifo(path, 0o600))
		}, nil, ErrNotFile},
		{"a second link before it is opened", func(t *testing.T, path string) { unitOK(t, os.Link(path, path+".too")) }, nil, ErrPathMismatch},
		{"a second link after it was opened", nil, func(t *testing.T, path string) { unitOK(t, os.Link(path, path+".too")) }, ErrPathMismatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachUnitWay(t, func(t *testing.T, w unitWay) {
				for _, batch := range []bool{false, true} {
					d := newUnitDirs(t)
					refuseClaimed(t, d, "a", `1`)
					hooked := w.refuseFS(t, nil, nil).(*refuseFS)
					hooked.open = func(path string, call func() (fsguard.File, error)) (fsguard.File, error) {
						if path != d.at("a.processing") {
							return call()
						}
						if c.before != nil {
							c.before(t, path)
						}
						f, err := call()
						if c.after != nil {
							c.after(t, path)
						}
						return f, err
					}
					watch := crashtest.Wrap(hooked, crashtest.Plan{})
					s := d.open(t, w, Options{fs: watch})
					open := len(watch.Open())
					if batch {
						b, err := s.LoadPending(t.Context(), nil)
						switch {
						case err != nil || len(b.Claims) > 0:
							t.Errorf("batch %+v, %v", b, err)
						case c.want == ErrNotFound && len(b.Skipped) > 0, c.want != ErrNotFound && len(b.Skipped) != 1:
							t.Errorf("skipped %+v", b.Skipped)
						case c.want != ErrNotFound:
							unitIs(t, "skipped", b.Skipped[0].Err, c.want, "a.processing")
						}
					} else {
						_, err := s.Load(t.Context(), "a", nil)
						unitIs(t, "load", err, c.want, "a.processing")
					}
					if left := watch.Open(); len(left) != open {
						t.Errorf("left open: %q", left)
					}
				}
			})
		})
	}
}

// What the system fails at is passed on, named, and leaves nothing open; the entry stays
// as far as it came.
func TestLoadFails(t *testing.T) {
	for _, c := range []struct {
		op   fsguard.Op
		path string
	}{
		{fsguard.OpOpen, "a.processing"}, {fsguard.OpRead, "a.processing"}, {fsguard.OpInfo, "a.processing"}, {fsguard.OpLstat, "a.processing"},
		{fsguard.OpLstat, "a.json"}, {fsguard.OpOpenDir, retirementsDir}, {fsguard.OpSyncDir, "."},
	} {
		t.Run(string(c.op)+" "+c.path, func(t *testing.T) {
			d := newUnitDirs(t)
			unitPut(t, d.at("a.json"), `1`)
			w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
			s := d.open(t, unitWay{Auto, RenameNoReplace}, Options{fs: w})
			open := len(w.Open())
			w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == c.op && path == c.path }, syscall.EIO, 1))
			for _, batch := range []bool{false, true} {
				if batch && w.Fired() {
					w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == c.op && path == c.path }, syscall.EIO, 1))
				}
				var err error
				if batch {
					var b Batch
					if b, err = s.LoadPending(t.Context(), nil); len(b.Claims)+len(b.Skipped) > 0 {
						t.Errorf("batch %+v", b)
					}
				} else {
					_, err = s.Load(t.Context(), "a", nil)
				}
				unitIs(t, "load", err, syscall.EIO)
				if uncertain := c.op == fsguard.OpSyncDir; errors.Is(err, ErrUncertain) != uncertain {
					t.Errorf("got %v, uncertain %t", err, uncertain)
				}
				if left := w.Open(); len(left) != open {
					t.Errorf("left open: %q", left)
				}
			}
			if v := w.Violations(); len(v) > 0 {
				t.Error(v)
			}
			unitLoad(t, s, "a", "1")
		})
	}
}
