//go:build unix

package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "example.com/holdfast/v1"
	v2 "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// A program that breaks the fence between the reading and the closing is noticed, whatever
// it does; nothing is closed, and after Abandon everything is as the program left it.
func TestBrokenFence(t *testing.T) {
	ctx := context.Background()
	replace := func(path, text string) error {
		temp := filepath.Join(filepath.Dir(path), "other.1.2.tmp")
		if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
			return err
		}
		return os.Rename(temp, path)
	}
	for name, breach := range map[string]struct {
		do   func(s *wayScene) error
		file string
	}{
		"a new entry":        {func(s *wayScene) error { return replace(s.path(v1.EntryPending, "new"), "1") }, "new.json"},
		"a replaced entry":   {func(s *wayScene) error { return replace(s.path(v1.EntryPending, "a"), `"newer"`) }, "a.json"},
		"equal bytes again":  {func(s *wayScene) error { return replace(s.path(v1.EntryPending, "a"), `"pending"`) }, "a.json"},
		"a claim":            {func(s *wayScene) error { return os.Rename(s.path(v1.EntryPending, "a"), s.path(v1.EntryClaimed, "a")) }, "a.json"},
		"an acknowledgement": {func(s *wayScene) error { return os.Remove(s.path(v1.EntryClaimed, "b")) }, "b.processing"},
		"a quarantine":       {func(s *wayScene) error { return replace(s.path(v1.EntryFailed, "z"), "1") }, "z.json"},
		"a transfer lock":    {func(s *wayScene) error { return replace(filepath.Join(s.from, wayLock), "{") }, wayLock},
		"a retirement": {func(s *wayScene) error {
			return os.MkdirAll(filepath.Join(s.from, ".fs-safe-retirements/a.json"), 0o700)
		}, "a.json"},
		"bytes written within": {func(s *wayScene) error { return os.WriteFile(s.path(v1.EntryPending, "a"), []byte(`"PENDING"`), 0o600) }, "a.json"},
	} {
		for _, moment := range []string{"checked", "import open", "added"} {
			t.Run(name+" when "+moment, func(t *testing.T) {
				s := newWayScene(t, t.TempDir())
				s.put(v1.EntryPending, "a", `"pending"`, 1)
				s.put(v1.EntryClaimed, "b", `"claimed"`, 2)
				st := s.open()
				o := s.options()
				o.step = func(step string) {
					if step == moment {
						wayOK(t, breach.do(s))
					}
				}
				rep, err := Import(ctx, st, o)
				if !errors.Is(err, ErrFence) || !strings.Contains(err.Error(), breach.file) || rep.Closed {
					t.Fatalf("got %v, %+v", err, rep)
				}
				o.step = nil
				if _, err := Import(ctx, st, o); !errors.Is(err, ErrFence) {
					t.Errorf("again: %v", err)
				}
				if _, err := st.Enqueue(ctx, "mail", queue.Message{Payload: []byte("1")}); !errors.Is(err, v2.ErrImporting) {
					t.Errorf("enqueue meanwhile: %v", err)
				}
				_, err = Abandon(ctx, st, o)
				wayOK(t, err)
				if got := s.holds(st); len(got) > 0 {
					t.Errorf("left in the store: %v", got)
				}
				if _, err := os.Lstat(filepath.Join(s.from, ".holdfast-import")); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the marker: %v", err)
				}
				o.RemoveLocks = []string{wayLock}
				if _, err := Import(ctx, st, o); err != nil {
					t.Errorf("once more from the beginning: %v", err)
				}
			})
		}
	}
}

const wayLock = ".fs-safe-transfer-0123456789abcdef0123456789abcdef.lock"

// An import is of one directory, one store and one queue.
func TestOtherImports(t *testing.T) {
	ctx := context.Background()
	s := newWayScene(t, t.TempDir())
	s.put(v1.EntryPending, "a", `"pending"`, 1)
	s.put(v1.EntryFailed, "f", `"failed"`, 2)
	st := s.open()
	o := s.options()
	ctxCut, cut := context.WithCancel(ctx)
	o.step = func(step string) {
		if step == "import open" {
			cut()
		}
	}
	if _, err := Import(ctxCut, st, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("cut: %v", err)
	}
	o.step = nil
	t.Run("another queue", func(t *testing.T) {
		o := o
		o.Queue = "news"
		if _, err := Import(ctx, st, o); !errors.Is(err, ErrOtherImport) || !strings.Contains(err.Error(), "mail") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a failed directory that it did not begin with", func(t *testing.T) {
		other := newWayScene(t, t.TempDir())
		other.put(v1.EntryPending, "x", "1", 1)
		st := other.open()
		part, cut := context.WithCancel(ctx)
		defer cut()
		begun := Options{From: other.from, Queue: "mail", Fenced: true}
		begun.step = func(step string) {
			if step == "import open" {
				cut()
			}
		}
		if _, err := Import(part, st, begun); !errors.Is(err, context.Canceled) {
			t.Fatalf("cut: %v", err)
		}
		if _, err := Import(ctx, st, other.options()); !errors.Is(err, ErrOtherImport) || !strings.Contains(err.Error(), "without a failed directory") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another store", func(t *testing.T) {
		other := newWayScene(t, t.TempDir())
		there := other.open()
		if _, err := Import(ctx, there, o); !errors.Is(err, ErrOtherImport) || !strings.Contains(err.Error(), st.ID()) {
			t.Errorf("import: %v", err)
		}
		if _, err := Abandon(ctx, there, o); !errors.Is(err, ErrOtherImport) {
			t.Errorf("abandon: %v", err)
		}
	})
	t.Run("another directory into the queue", func(t *testing.T) {
		other := newWayScene(t, t.TempDir())
		other.put(v1.EntryPending, "x", "1", 1)
		into := o
		into.From, into.Failed = other.from, ""
		before := other.tree()
		if _, err := Import(ctx, st, into); !errors.Is(err, v2.ErrImporting) {
			t.Errorf("got %v", err)
		}
		if after := other.tree(); after != before {
			t.Errorf("changed to\n%s", after)
		}
	})
	t.Run("two at work on one directory", func(t *testing.T) {
		src, err := v1.OpenSource(s.from, nil)
		wayOK(t, err)
		defer src.Close()
		wayOK(t, src.Hold())
		if _, err := Import(ctx, st, o); !errors.Is(err, v1.ErrSourceBusy) {
			t.Errorf("got %v", err)
		}
	})
	if _, err := RemoveSource(ctx, st, o); !errors.Is(err, ErrNotClosed) {
		t.Errorf("removed: %v", err)
	}
	o.Failed = "" // the marker knows it
	rep, err := Import(ctx, st, o)
	wayOK(t, err)
	if !rep.Resumed || rep.Added != 2 {
		t.Errorf("report %+v", rep)
	}
	if diff := wayDiffer(s.holds(st), s.want); diff != "" {
		t.Error(diff)
	}
}

// An import can be taken back by the store's record alone, when its directory is lost.
func TestAbandonWithoutTheDirectory(t *testing.T) {
	ctx := context.Background()
	s := newWayScene(t, t.TempDir())
	s.put(v1.EntryPending, "a", `"pending"`, 1)
	st := s.open()
	o := s.options()
	o.step = func(step string) {
		if step == "added" {
			wayOK(t, os.Remove(s.path(v1.EntryPending, "a")))
		}
	}
	if _, err := Import(ctx, st, o); !errors.Is(err, ErrFence) {
		t.Fatal(err)
	}
	gone := Options{Queue: "mail"}
	rep, err := Abandon(ctx, st, gone)
	wayOK(t, err)
	if got := s.holds(st); len(got) > 0 || rep.Token == "" {
		t.Errorf("left %v, %+v", got, rep)
	}
	if _, err := Abandon(ctx, st, gone); !errors.Is(err, ErrNoImport) {
		t.Errorf("again: %v", err)
	}
	// The marker that stayed goes with the directory's own Abandon, or leads on.
	_, err = Abandon(ctx, st, s.options())
	wayOK(t, err)
	if _, err := Abandon(ctx, st, s.options()); !errors.Is(err, ErrNoImport) {
		t.Errorf("without a marker: %v", err)
	}
}

// RemoveSource takes exactly what was imported and is still the same.
func TestRemoveSource(t *testing.T) {
	ctx := context.Background()
	s := newWayScene(t, t.TempDir())
	s.mixed()
	st := s.open()
	o := s.options()
	if _, err := RemoveSource(ctx, st, o); !errors.Is(err, ErrNoImport) {
		t.Errorf("before: %v", err)
	}
	_, err := Import(ctx, st, o)
	wayOK(t, err)
	other := newWayScene(t, t.TempDir())
	if _, err := RemoveSource(ctx, other.open(), o); !errors.Is(err, ErrOtherImport) {
		t.Errorf("by another store: %v", err)
	}

	// What came or changed after the closing commit is not the import's.
	wayOK(t, os.WriteFile(filepath.Join(s.from, "late.json"), []byte("1"), 0o600),
		os.WriteFile(filepath.Join(s.from, "b.json"), []byte(`"changed"`), 0o600),
		os.Remove(filepath.Join(s.from, "c.json")))
	text, err := os.ReadFile(s.path(v1.EntryPending, "a"))
	wayOK(t, err, os.Remove(s.path(v1.EntryPending, "a")), os.WriteFile(s.path(v1.EntryPending, "a"), text, 0o600))

	// Cut off in the middle, and again.
	part, cut := context.WithCancel(ctx)
	o.step = func(step string) {
		if step == "removed" {
			cut()
		}
	}
	first, err := RemoveSource(part, st, o)
	if !errors.Is(err, context.Canceled) || first.Removed+len(first.Kept)+first.Gone != 1 {
		t.Fatalf("cut: %+v, %v", first, err)
	}
	o.step, o.Failed = nil, "" // the marker knows the failed directory
	got, err := RemoveSource(ctx, st, o)
	wayOK(t, err)
	var kept []string
	for _, p := range got.Kept {
		kept = append(kept, p.File)
	}
	if slices.Sort(kept); strings.Join(kept, " ") != "a.json b.json" || first.Removed+got.Removed != 8 || got.Gone != 1+first.Removed {
		t.Errorf("kept %v, removed %d and %d, gone %d", kept, first.Removed, got.Removed, got.Gone)
	}
	if names, want := s.names(s.from), ".fs-safe-retirements .holdfast-import README a.json b.json done.delivered late.json x.1.2.tmp ä.json"; names != want {
		t.Errorf("left %q, want %q", names, want)
	}
	if names := s.names(s.fails); names != ".holdfast-import" {
		t.Errorf("left %q in the failed directory", names)
	}
	if left := strings.Join(got.Left, " "); !strings.Contains(left, "late.json") || !strings.Contains(left, "README") || strings.Contains(left, ".holdfast-import") {
		t.Errorf("told of %q", left)
	}
	if diff := wayDiffer(s.holds(st), s.want); diff != "" {
		t.Error(diff)
	}
}

// A marker says closed, and the store has never heard of it: a store that was put back from
// an older copy must not cost the v1 files.
func TestRemoveSourceAsksTheStore(t *testing.T) {
	ctx := context.Background()
	s := newWayScene(t, t.TempDir())
	s.put(v1.EntryPending, "a", "1", 1)
	copied := filepath.Join(s.dir, "copy")
	wayOK(t, os.CopyFS(copied, os.DirFS(s.store)))
	st := s.open()
	_, err := Import(ctx, st, s.options())
	wayOK(t, err, st.Close(), os.RemoveAll(s.store), os.Rename(copied, s.store))
	wayOK(t, os.Chmod(s.store, 0o700))
	older := s.open()
	if _, err := RemoveSource(ctx, older, s.options()); !errors.Is(err, ErrNotClosed) || !strings.Contains(err.Error(), "older copy") {
		t.Errorf("got %v", err)
	}
	if got := s.names(s.from); got != ".holdfast-import a.json" {
		t.Errorf("left %q", got)
	}
}

// A restart of the system may give a filesystem another device number. Files are then told
// by the rest.
func TestDeviceNumbersMayChange(t *testing.T) {
	ctx := context.Background()
	s := newWayScene(t, t.TempDir())
	s.put(v1.EntryPending, "a", "1", 1)
	s.put(v1.EntryFailed, "f", "1", 1)
	st := s.open()
	_, err := Import(ctx, st, s.options())
	wayOK(t, err)
	src, err := v1.OpenSource(s.from, &v1.Options{FailedDir: s.fails})
	wayOK(t, err)
	m, err := readMarker(src)
	wayOK(t, err)
	m.Device, m.FailedDevice = 999_999, 999_999
	for i := range m.Entries {
		m.Entries[i].Dev = 999_999
	}
	wayOK(t, src.SetMarker(m.encode()), src.Close())
	got, err := RemoveSource(ctx, st, s.options())
	if wayOK(t, err); got.Removed != 2 || len(got.Kept) > 0 {
		t.Errorf("%+v", got)
	}
}

// A store that is full takes what fits; with more room the same import goes on.
func TestFullStore(t *testing.T) {
	ctx := context.Background()
	s := newWayScene(t, t.TempDir())
	for i := range 400 {
		s.put(v1.EntryPending, fmt.Sprintf("m%03d", i), fmt.Sprint(i), i)
	}
	small, err := v2.Open(ctx, s.store, &v2.Options{MaxStateBytes: 64 << 10})
	wayOK(t, err)
	o := s.options()
	o.batch = 50
	rep, err := Import(ctx, small, o)
	if !errors.Is(err, queue.ErrFull) || errors.Is(err, ErrUnimportable) || rep.Added == 0 || rep.Added%50 != 0 || rep.Closed {
		t.Fatalf("got %+v, %v", rep, err)
	}
	wayOK(t, small.Close())
	st := s.open()
	more, err := Import(ctx, st, o)
	if wayOK(t, err); more.Added != 400-rep.Added || !more.Resumed {
		t.Errorf("then %+v", more)
	}
	if diff := wayDiffer(s.holds(st), s.want); diff != "" {
		t.Error(diff)
	}
}
