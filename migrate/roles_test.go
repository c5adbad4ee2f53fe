//go:build unix

package migrate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "example.com/holdfast/v1"
	v2 "example.com/holdfast/v2"
)

// roleScene is a directory of a pending and of a failed entry.
func roleScene(t *testing.T) *wayScene {
	s := newWayScene(t, t.TempDir())
	s.put(v1.EntryPending, "a", `"pending"`, 1)
	s.put(v1.EntryFailed, "f", `"failed"`, 2)
	return s
}

// roleRefused wants a refusal that says these words, and that nothing changed.
func roleRefused(t *testing.T, s *wayScene, st *v2.Store, o Options, what error, words ...string) {
	t.Helper()
	for _, dry := range []bool{true, false} {
		o.DryRun = dry
		before, status := s.tree(), wayStatus(t, st)
		_, err := Import(context.Background(), st, o)
		if !errors.Is(err, what) {
			t.Fatalf("dry run %v: got %v, want %v", dry, err, what)
		}
		for _, word := range words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%q does not say %q", err, word)
			}
		}
		if after := s.tree(); after != before || wayStatus(t, st) != status {
			t.Errorf("changed\n%s\nto\n%s", before, after)
		}
	}
}

// What was imported in one role is not taken in the other, while the import is open and
// after it; and what failed goes with one queue directory only.
func TestOneRoleEach(t *testing.T) {
	ctx := context.Background()
	for _, cutAt := range []string{"import open", ""} {
		name := "open"
		if cutAt == "" {
			name = "closed"
		}
		t.Run(name, func(t *testing.T) {
			s, other := roleScene(t), roleScene(t)
			st := s.open()
			o := s.options()
			part, cut := context.WithCancel(ctx)
			defer cut()
			o.step = func(step string) {
				if step == cutAt {
					cut()
				}
			}
			if _, err := Import(part, st, o); (err == nil) != (cutAt == "") {
				t.Fatal(err)
			}
			o.step = nil
			into := Options{Queue: "news", Fenced: true}

			into.From, into.Failed = s.fails, ""
			roleRefused(t, s, st, into, ErrOtherRole, s.fails, "the failed directory of "+s.from)
			into.From, into.Failed = other.from, s.from
			roleRefused(t, other, st, into, ErrOtherRole, s.from, "it is a queue directory")
			into.From, into.Failed = other.from, s.fails
			roleRefused(t, other, st, into, ErrFailedTaken, s.fails, "it went over with "+s.from+": leave --failed out")
			for _, call := range []string{"abandon", "remove"} {
				into.From, into.Failed = s.fails, ""
				if err := wayCalls[call](ctx, st, into); !errors.Is(err, ErrOtherRole) {
					t.Errorf("%s: %v", call, err)
				}
			}

			if cutAt != "" { // taken back, the failed directory is anybody's again
				_, err := Abandon(ctx, st, o)
				wayOK(t, err)
				if got := s.names(s.from) + s.names(s.fails); got != "a.jsonf.json" {
					t.Errorf("left %q", got)
				}
				into.From, into.Failed = other.from, s.fails
				_, err = Import(ctx, st, into)
				wayOK(t, err)
				return
			}
			_, err := RemoveSource(ctx, st, o)
			wayOK(t, err)
			if got := s.names(s.from) + " " + s.names(s.fails); got != ".holdfast-import .holdfast-import" {
				t.Errorf("left %q", got)
			}
			into.From, into.Failed = other.from, s.fails
			roleRefused(t, other, st, into, ErrFailedTaken)
			into.Failed = ""
			rep, err := Import(ctx, st, into)
			if wayOK(t, err); rep.Pending != 1 || rep.Failed != 0 || rep.FailedDir != "" {
				t.Errorf("without: %+v", rep)
			}
		})
	}
}

// Between its two markers an import may be cut off, and another one take the failed
// directory: then the first does not go on, and can be taken back.
func TestFailedDirectoryIsTakenMeanwhile(t *testing.T) {
	ctx := context.Background()
	s, other := roleScene(t), roleScene(t)
	st := s.open()
	o := s.options()
	o.step = func(step string) {
		if step == "marked" {
			wayOK(t, os.WriteFile(filepath.Join(s.fails, ".holdfast-import"), roleMark(t, other, st), 0o600))
		}
	}
	if _, err := Import(ctx, st, o); !errors.Is(err, ErrFailedTaken) {
		t.Fatalf("got %v", err)
	}
	o.step = nil
	if _, err := Import(ctx, st, o); !errors.Is(err, ErrFailedTaken) {
		t.Errorf("again: %v", err)
	}
	_, err := Abandon(ctx, st, o)
	wayOK(t, err)
	if got := s.names(s.from) + " " + s.names(s.fails); got != "a.json .holdfast-import f.json" {
		t.Errorf("left %q", got) // the other one's marker stays
	}
}

// roleMark gives the text of the marker that an import of the scene leaves with what failed.
func roleMark(t *testing.T, s *wayScene, st *v2.Store) []byte {
	t.Helper()
	o := s.options()
	o.Queue = "other"
	_, err := Import(context.Background(), st, o)
	wayOK(t, err)
	text, err := os.ReadFile(filepath.Join(s.fails, ".holdfast-import"))
	wayOK(t, err)
	return text
}

// An import goes on with the failed directory that it began with, wherever that is now,
// and with no other.
func TestOtherFailedDirectory(t *testing.T) {
	ctx := context.Background()
	s := roleScene(t)
	st := s.open()
	o := s.options()
	part, cut := context.WithCancel(ctx)
	o.step = func(step string) {
		if step == "import open" {
			cut()
		}
	}
	if _, err := Import(part, st, o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	o.step = nil
	wrong := o
	wrong.Failed = filepath.Join(s.dir, "wrong")
	wayOK(t, os.Mkdir(wrong.Failed, 0o700))
	roleRefused(t, s, st, wrong, ErrOtherImport, "with the failed directory "+s.fails+", and not with "+wrong.Failed)
	if _, err := Abandon(ctx, st, wrong); !errors.Is(err, ErrOtherImport) {
		t.Errorf("abandon with another: %v", err)
	}
	moved := o
	moved.Failed = filepath.Join(s.dir, "moved")
	wayOK(t, os.Rename(s.fails, moved.Failed))
	rep, err := Import(ctx, st, moved)
	if wayOK(t, err); !rep.Closed || rep.Failed != 1 {
		t.Errorf("moved: %+v", rep)
	}
	if _, err := RemoveSource(ctx, st, wrong); !errors.Is(err, ErrOtherImport) {
		t.Errorf("remove with another: %v", err)
	}
	got, err := RemoveSource(ctx, st, moved)
	if wayOK(t, err); got.Removed != 2 {
		t.Errorf("removed %+v", got)
	}
}

// Directories that are not what they were named as are refused before anything is written.
func TestWrongDirectories(t *testing.T) {
	const lock = ".fs-safe-transfer-0123456789abcdef0123456789abcdef.lock"
	for name, c := range map[string]struct {
		set  func(s *wayScene, o *Options)
		want error
		word string
	}{
		"swapped, a claim":      {func(s *wayScene, o *Options) { s.put(v1.EntryClaimed, "c", "1", 1); roleSwap(o) }, ErrSwapped, "c.processing"},
		"swapped, a delivered":  {func(s *wayScene, o *Options) { roleFile(s, "d.delivered"); roleSwap(o) }, ErrSwapped, "d.delivered"},
		"swapped, a lock":       {func(s *wayScene, o *Options) { roleFile(s, lock); roleSwap(o) }, ErrSwapped, lock},
		"swapped, a retirement": {func(s *wayScene, o *Options) { roleDir(s, ".fs-safe-retirements"); roleSwap(o) }, ErrSwapped, ".fs-safe-retirements"},
		"a store":               {func(s *wayScene, o *Options) { o.From = s.store }, ErrInStore, "is a store"},
		"inside a store":        {func(s *wayScene, o *Options) { o.From = filepath.Join(s.store, storeDir) }, ErrInStore, "inside the store " + "/"},
		"above a store":         {func(s *wayScene, o *Options) { o.From = s.dir }, ErrInStore, "the store store is in it"},
		"far above the store":   {func(s *wayScene, o *Options) { o.From = filepath.Dir(s.dir) }, ErrInStore, "store is in it"},
		"what failed, a store":  {func(s *wayScene, o *Options) { o.Failed = s.store }, ErrInStore, "is a store"},
		"what failed, above":    {func(s *wayScene, o *Options) { o.Failed = s.dir }, ErrInStore, "is in it"},
		"by a symlink": {func(s *wayScene, o *Options) {
			o.From = filepath.Join(s.from, "..", "..", "link")
			o.From = filepath.Join(s.t.TempDir(), "link")
			wayOK(s.t, os.Symlink(s.store, o.From))
		}, ErrInStore, "is a store"},
		"empty": {func(s *wayScene, o *Options) { wayOK(s.t, os.Remove(s.path(v1.EntryPending, "a"))) }, ErrNothing, "no entry"},
		"something else": {func(s *wayScene, o *Options) {
			wayOK(s.t, os.Remove(s.path(v1.EntryPending, "a")))
			roleFile(s, "README")
		}, ErrNothing, "no entry"},
	} {
		t.Run(name, func(t *testing.T) {
			s := roleScene(t)
			st := s.open()
			o := s.options()
			c.set(s, &o)
			roleRefused(t, s, st, o, c.want, c.word)
		})
	}

	// One that was worked empty is a queue directory all the same.
	s := roleScene(t)
	wayOK(t, os.Remove(s.path(v1.EntryPending, "a")))
	roleDir(s, ".fs-safe-retirements")
	rep, err := Import(context.Background(), s.open(), s.options())
	if wayOK(t, err); rep.Failed != 1 || !rep.Closed {
		t.Errorf("worked empty: %+v", rep)
	}
}

func roleSwap(o *Options) { o.From, o.Failed = o.Failed, o.From }

func roleFile(s *wayScene, name string) {
	wayOK(s.t, os.WriteFile(filepath.Join(s.from, name), []byte("{}"), 0o600))
}

func roleDir(s *wayScene, name string) { wayOK(s.t, os.Mkdir(filepath.Join(s.from, name), 0o700)) }

// What is refused anyway leaves locks and cut-off transitions as they are; what was done
// before a later error is told, and nothing else.
func TestWhatWasDoneBeforeAnError(t *testing.T) {
	ctx := context.Background()
	set := func(t *testing.T) (*wayScene, Options) {
		s := newWayScene(t, t.TempDir())
		s.crowded()
		o := s.options()
		o.RemoveLocks = []string{wayLock, ".fs-safe-transfer-00000000000000000000000000000000.lock"}
		return s, o
	}
	t.Run("refused", func(t *testing.T) {
		s, o := set(t)
		roleFile(s, "dot..json")
		before := s.tree()
		rep, err := Import(ctx, s.open(), o)
		if !errors.Is(err, ErrUnimportable) || len(rep.LocksRemoved)+len(rep.Recovered)+len(rep.Skipped) > 0 {
			t.Errorf("got %v, %+v", err, rep)
		}
		if after := s.tree(); after != before {
			t.Errorf("changed\n%s\nto\n%s", before, after)
		}
	})
	t.Run("cut off", func(t *testing.T) {
		s, o := set(t)
		part, cut := context.WithCancel(ctx)
		o.step = func(step string) {
			if step == "recovered" {
				cut()
			}
		}
		rep, err := Import(part, s.open(), o)
		if !errors.Is(err, context.Canceled) || len(rep.LocksRemoved) != 1 || len(rep.Recovered) != 1 || rep.Token != "" {
			t.Errorf("got %v, %+v", err, rep)
		}
		if len(rep.LocksMissing) != 1 || rep.LocksMissing[0] != o.RemoveLocks[1] {
			t.Errorf("missing %v", rep.LocksMissing)
		}
	})
}

// A marker of another store says so, whatever queue or state it names.
func TestMarkerOfAnotherStore(t *testing.T) {
	ctx := context.Background()
	s, other := roleScene(t), roleScene(t)
	st, there := s.open(), other.open()
	_, err := Import(ctx, st, s.options())
	wayOK(t, err)
	for call, do := range wayCalls {
		var where *MarkerError
		if err := do(ctx, there, s.options()); !errors.As(err, &where) || !where.Elsewhere || where.Store != st.ID() || !strings.Contains(err.Error(), "another store, "+st.ID()) {
			t.Errorf("%s elsewhere: %v", call, err)
		}
		o := s.options()
		o.Queue = "news"
		if err := do(ctx, st, o); !errors.As(err, &where) || where.Elsewhere || where.Queue != "mail" {
			t.Errorf("%s into another queue: %v", call, err)
		}
	}
}

// What failed and was forgotten is not added to a closed import; it comes over with an empty
// queue directory of its own, as the docs say. A failed directory that is gone keeps
// nobody from taking the import back.
func TestForgottenFailedDirectory(t *testing.T) {
	ctx := context.Background()
	s := roleScene(t)
	st := s.open()
	o := s.options()
	o.Failed = ""
	_, err := Import(ctx, st, o)
	wayOK(t, err)
	roleRefused(t, s, st, s.options(), ErrClosedSource, "without a failed directory", "docs/migrating.md")
	evidence := s.options()
	evidence.From = filepath.Join(s.dir, "evidence")
	wayOK(t, os.MkdirAll(filepath.Join(evidence.From, ".fs-safe-retirements"), 0o700))
	part, cut := context.WithCancel(ctx)
	evidence.step = func(step string) {
		if step == "import open" {
			cut()
		}
	}
	if _, err = Import(part, st, evidence); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	away := s.fails + ".away"
	wayOK(t, os.Rename(s.fails, away))
	evidence.step = nil
	_, err = Abandon(ctx, st, evidence)
	wayOK(t, err, os.Rename(away, s.fails), os.Remove(filepath.Join(s.fails, ".holdfast-import")))
	_, err = Import(ctx, st, evidence)
	wayOK(t, err)
	if diff := wayDiffer(s.holds(st), s.want); diff != "" {
		t.Error(diff)
	}
}
