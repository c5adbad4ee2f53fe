//go:build unix

package holdfast

import (
	"context"
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// The zero value, and no options at all, mean the defaults.
func TestOptionDefaults(t *testing.T) {
	for name, o := range map[string]*Options{"nil": nil, "zero": {}} {
		got, err := o.checked()
		if err != nil || got.FailedDir != "" || got.ClaimBy != HardLink || got.Mechanism != Auto || got.MaxEntryBytes != 16<<20 || got.TempPrefix != "holdfast" {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if got.fs == nil || got.now == nil || got.sleep == nil {
			t.Errorf("%s: nothing to work with: %+v", name, got)
		}
	}
	zero := &Options{}
	if _, err := zero.checked(); err != nil || !reflect.DeepEqual(*zero, Options{}) {
		t.Errorf("the caller's options became %+v, %v", zero, err)
	}
}

func TestOptionsRefused(t *testing.T) {
	base := t.TempDir()
	for _, c := range []struct {
		name string
		o    Options
		says string
	}{
		{"route", Options{ClaimBy: 2}, "ClaimBy 2"},
		{"negative route", Options{ClaimBy: -1}, "ClaimBy -1"},
		{"mechanism", Options{Mechanism: "Auto"}, `"Auto"`},
		{"size", Options{MaxEntryBytes: -1}, "MaxEntryBytes -1"},
		{"prefix with a slash", Options{TempPrefix: "a/b"}, "TempPrefix"},
		{"prefix that is a path", Options{TempPrefix: "../x"}, "TempPrefix"},
		{"prefix beyond ASCII", Options{TempPrefix: "\u00e9"}, "TempPrefix"},
		{"prefix with a zero", Options{TempPrefix: "a\x00"}, "TempPrefix"},
		{"prefix too long", Options{TempPrefix: strings.Repeat("x", maxTempPrefix+1)}, "TempPrefix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, open := range []func(string, *Options) (*Store, error){Open, OpenOrCreate} {
				s, err := open(base+"/queue", &c.o)
				unitIs(t, "open", err, ErrOptions, c.says)
				if s != nil {
					t.Error("a store beside an error")
				}
			}
		})
	}
	if left, err := os.ReadDir(base); err != nil || len(left) > 0 {
		t.Errorf("a refused call made %v, %v", left, err)
	}
}

// Temporary files are named as the npm package names its own, with the caller's prefix.
func TestTempPrefix(t *testing.T) {
	for _, prefix := range []string{"", "x", strings.Repeat("x", maxTempPrefix), "..", "-"} {
		d := newUnitDirs(t)
		var seen []string
		w := unitWay{Auto, HardLink}
		hook := func(old, new string, call func() error) error {
			if isTemp(old) {
				entries, err := os.ReadDir(d.queue)
				unitOK(t, err)
				for _, e := range entries {
					if isTemp(e.Name()) {
						seen = append(seen, e.Name())
					}
				}
			}
			return call()
		}
		s := d.open(t, w, Options{TempPrefix: prefix, fs: w.refuseFS(t, hook, nil)})
		unitEnqueue(t, s, "a", `1`)
		unitLoad(t, s, "a", "1")
		if prefix == "" {
			prefix = "holdfast"
		}
		form := regexp.MustCompile(`^` + regexp.QuoteMeta(prefix) + `\.[0-9]+\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$`)
		if len(seen) != 1 || !form.MatchString(seen[0]) || len(seen[0]) > 255 {
			t.Errorf("prefix %q: saw %q", prefix, seen)
		}
	}
}

// Off never asks for calls relative to a directory; Require insists on them.
func TestMechanisms(t *testing.T) {
	relative, paths := reflect.TypeOf(fsguard.OS()), reflect.TypeOf(fsguard.Paths())
	if relative == paths {
		t.Fatal("the two filesystems cannot be told")
	}
	for m, want := range map[Mechanism]reflect.Type{Off: paths, Auto: relative, Require: relative} {
		got, err := m.open()
		if err != nil || reflect.TypeOf(got) != want {
			t.Errorf("%s: got %T, %v; want %v", m, got, err, want)
		}
	}
}

func TestWithoutFailedDir(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		d := newUnitDirs(t)
		s, err := Open(d.queue, &Options{ClaimBy: w.route, Mechanism: w.mechanism})
		unitOK(t, err)
		defer s.Close()
		unitEnqueue(t, s, "a", `1`)
		unitEnqueue(t, s, "b", `2`)
		c := unitLoad(t, s, "a", "1")
		before := d.tree(t)
		unitIs(t, "fail", s.Fail(t.Context(), c), ErrNoFailedDir)
		unitIs(t, "fail by ID", s.FailID(t.Context(), "b"), ErrNoFailedDir)
		unitUnchanged(t, before, d.tree(t))
		if st, err := s.Status(t.Context()); err != nil || st.Pending != 1 || st.Processing != 1 || st.Failed != 0 {
			t.Errorf("status %+v, %v", st, err)
		}
		unitOK(t, s.Ack(t.Context(), c))
		// A quarantine that a store with a failed directory began cannot be finished by one
		// without; it says so and waits.
		unitPut(t, d.at("c.processing"), `3`)
		unitOK(t, os.Link(d.at("c.processing"), d.failed+"/c.json"))
		before = d.tree(t)
		_, err = s.Load(t.Context(), "c", nil)
		unitIs(t, "load", err, ErrPathMismatch, "c.processing", "failed directory")
		unitUnchanged(t, before, d.tree(t))
	})
}

func TestRouteText(t *testing.T) {
	if HardLink.String() != "hard-link" || RenameNoReplace.String() != "rename-no-replace" {
		t.Errorf("got %v and %v", HardLink, RenameNoReplace)
	}
}

// A context without a deadline is all that a call needs; a nil store option is none.
func TestNilOptions(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, nil)
	unitOK(t, err)
	defer s.Close()
	if _, err := s.Enqueue(context.Background(), "a", []byte(`1`)); err != nil {
		t.Fatal(err)
	}
	b, err := s.LoadPending(context.Background(), nil)
	if err != nil || len(b.Claims) != 1 {
		t.Fatalf("batch %+v, %v", b, err)
	}
	unitOK(t, s.Ack(context.Background(), b.Claims[0]))
	if _, err := s.Load(context.Background(), "a", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v, want %v", err, ErrNotFound)
	}
}
