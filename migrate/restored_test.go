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

// goneBack copies the store, now or at a step of the import, imports, and puts the copy
// back.
func goneBack(t *testing.T, s *wayScene, at string) *v2.Store {
	t.Helper()
	ctx := context.Background()
	copied := filepath.Join(s.dir, "copy")
	o := s.options()
	o.step = func(step string) {
		if step == at {
			wayOK(t, os.CopyFS(copied, os.DirFS(s.store)))
		}
	}
	o.step("")
	st := s.open()
	_, err := Import(ctx, st, o)
	wayOK(t, err, st.Close(), os.RemoveAll(s.store), os.Rename(copied, s.store), os.Chmod(s.store, 0o700))
	older, err := v2.Open(ctx, s.store, &v2.Options{OnDeadOwner: v2.AutoRecover})
	wayOK(t, err)
	t.Cleanup(func() { wayOK(t, older.Close()) })
	return older
}

// A store that was put back from an older copy does not know what the marker says. Every
// call says so, nothing is touched, and there is a way out.
func TestRestoredStore(t *testing.T) {
	ctx := context.Background()
	for name, at := range map[string]string{"from before the import": "", "while it was open": "added"} {
		t.Run(name, func(t *testing.T) {
			s := roleScene(t)
			older := goneBack(t, s, at)
			before, open := s.tree(), at != ""
			into, missing, away := s.options(), s.options(), filepath.Join(s.dir, "away")
			into.Queue, missing.Failed = "news", ""
			for _, o := range []Options{s.options(), into, missing} {
				for call, err := range map[string]error{
					"import":  func() error { _, err := Import(ctx, older, o); return err }(),
					"dry run": func() error { o := o; o.DryRun = true; _, err := Import(ctx, older, o); return err }(),
					"abandon": func() error { _, err := Abandon(ctx, older, o); return err }(),
					"remove":  func() error { o := o; o.Queue = ""; _, err := RemoveSource(ctx, older, o); return err }(),
				} {
					var m *MarkerError
					if !errors.As(err, &m) || !errors.Is(err, ErrNotClosed) || errors.Is(err, ErrClosedSource) || !strings.Contains(err.Error(), "older copy") ||
						!m.Forgotten || m.Open != open || m.Elsewhere || m.Queue != "mail" || m.Dir != s.from || m.FailedDir != s.fails {
						t.Errorf("%s of %+v: %v, %+v", call, o, err, m)
					}
				}
			}
			if after := s.tree(); after != before {
				t.Errorf("changed\n%s\nto\n%s", before, after)
			}

			// A failed directory that is not there, or has another one's marker, is not named.
			var m *MarkerError
			wayOK(t, os.Rename(s.fails, away))
			if _, err := Import(ctx, older, missing); !errors.As(err, &m) || !m.Forgotten || m.FailedDir != "" {
				t.Errorf("without the failed directory: %v, %+v", err, m)
			}
			wayOK(t, os.Mkdir(s.fails, 0o700))
			if _, err := Import(ctx, older, missing); !errors.As(err, &m) || !m.Forgotten || m.FailedDir != "" {
				t.Errorf("with an empty one: %v, %+v", err, m)
			}
			others := filepath.Join(s.fails, ".holdfast-import")
			text, err := os.ReadFile(filepath.Join(away, ".holdfast-import"))
			wayOK(t, err, os.WriteFile(others, []byte(strings.ReplaceAll(string(text), m.Token, v2.NewImportToken().String())), 0o600))
			if _, err := Import(ctx, older, missing); !errors.As(err, &m) || !m.Forgotten || m.FailedDir != "" {
				t.Errorf("with another import's: %v, %+v", err, m)
			}
			wayOK(t, os.Remove(others))
			moved := s.options()
			moved.Failed = away
			if _, err := Import(ctx, older, moved); !errors.As(err, &m) || !m.Forgotten || m.FailedDir != away {
				t.Errorf("with the failed directory elsewhere: %v, %+v", err, m)
			}
			wayOK(t, os.Remove(s.fails), os.Rename(away, s.fails))

			if open {
				_, err := Abandon(ctx, older, Options{Queue: "mail"})
				wayOK(t, err)
				if _, err := Import(ctx, older, s.options()); !errors.As(err, &m) || !m.Forgotten || m.Open {
					t.Errorf("taken back: %v", err)
				}
			}
			wayOK(t, os.Remove(filepath.Join(s.from, ".holdfast-import")), os.Remove(filepath.Join(s.fails, ".holdfast-import")))
			_, err = Import(ctx, older, s.options())
			wayOK(t, err)
			if diff := wayDiffer(s.holds(older), s.want); diff != "" {
				t.Error(diff)
			}
			if got, err := RemoveSource(ctx, older, s.options()); err != nil || got.Removed != 2 {
				t.Errorf("removed %+v, %v", got, err)
			}
		})
	}
}

// IDs that only the npm package has names for stop the import, or stay, and a fence that
// they break is broken.
func TestImportOfLongIDs(t *testing.T) {
	ctx := context.Background()
	long := strings.Repeat("l", 247)
	for _, state := range []v1.EntryState{v1.EntryPending, v1.EntryFailed} {
		t.Run(state.String(), func(t *testing.T) {
			s := roleScene(t)
			s.put(state, long, "1", 3)
			delete(s.want, state.String()+"/"+long)
			st := s.open()
			roleRefused(t, s, st, s.options(), ErrUnimportable, long+".json", "247 bytes: at most 128")
			o := s.options()
			o.SkipInvalid = true
			rep, err := Import(ctx, st, o)
			if wayOK(t, err); len(rep.Skipped) != 1 || !strings.HasSuffix(rep.Skipped[0].File, long+".json") || len(rep.Strays) != 0 {
				t.Errorf("%+v", rep)
			}
			if diff := wayDiffer(s.holds(st), s.want); diff != "" {
				t.Error(diff)
			}
			got, err := RemoveSource(ctx, st, s.options())
			if wayOK(t, err); got.Removed != 2 || len(got.Left) != 1 {
				t.Errorf("removed %+v", got)
			}
			if _, err := os.Lstat(s.path(state, long)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("the fence", func(t *testing.T) {
		s := roleScene(t)
		o := s.options()
		o.step = func(step string) {
			if step == "added" {
				s.put(v1.EntryPending, long, "1", 3)
			}
		}
		if _, err := Import(ctx, s.open(), o); !errors.Is(err, ErrFence) || !strings.Contains(err.Error(), long) {
			t.Errorf("got %v", err)
		}
	})
}

// What was imported from a failed directory that is gone cannot be removed any more; the
// rest is.
func TestRemoveSourceWithoutTheFailedDirectory(t *testing.T) {
	ctx := context.Background()
	s := roleScene(t)
	st := s.open()
	_, err := Import(ctx, st, s.options())
	wayOK(t, err)
	away := filepath.Join(s.dir, "away")
	wayOK(t, os.Rename(s.fails, away))
	wrong := s.options()
	wrong.Failed = filepath.Join(s.dir, "wrong")
	if _, err := RemoveSource(ctx, st, wrong); !errors.Is(err, v1.ErrNoDirectory) {
		t.Errorf("another that is not there: %v", err)
	}
	o := s.options()
	o.Failed = ""
	got, err := RemoveSource(ctx, st, o)
	if wayOK(t, err); got.FailedGone != s.fails || got.Removed != 1 || got.Gone != 1 || len(got.Kept)+len(got.Left) > 0 {
		t.Errorf("%+v", got)
	}
	if names := s.names(s.from); names != ".holdfast-import" {
		t.Errorf("left %q", names)
	}
	o.Failed = away // it was only moved
	got, err = RemoveSource(ctx, st, o)
	if wayOK(t, err); got.FailedGone != "" || got.Removed != 1 || got.Gone != 1 {
		t.Errorf("moved: %+v", got)
	}
	wayOK(t, os.Remove(filepath.Join(away, ".holdfast-import")), os.Remove(away), os.RemoveAll(s.from))
	if _, err := RemoveSource(ctx, st, s.options()); !errors.Is(err, v1.ErrNoDirectory) {
		t.Errorf("the queue directory is gone: %v", err)
	}
}
