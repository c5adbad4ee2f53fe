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
	"time"

	v1 "example.com/holdfast/v1"
	v2 "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// Everything arrives once, in its state, with its bytes and its time, in the documented
// order; what is no entry stays out and is named.
func TestImport(t *testing.T) {
	ctx := context.Background()
	s := newWayScene(t, t.TempDir())
	s.mixed()
	wayOK(t, os.Symlink("a.json", filepath.Join(s.from, "sym.json")))
	st := s.open()
	rep, err := Import(ctx, st, s.options())
	wayOK(t, err)
	if diff := wayDiffer(s.holds(st), s.want); diff != "" {
		t.Error(diff)
	}
	if rep.Claimed != 4 || rep.Pending != 5 || rep.Failed != 2 || rep.Added != 11 || !rep.Closed || rep.Resumed || rep.Token == "" {
		t.Errorf("report %+v", rep)
	}
	if got := strings.Join(rep.Recovered, " "); got != "half took two" {
		t.Errorf("recovered %q", got)
	}
	if got := fmt.Sprint(rep.Delivered, rep.Temps, rep.Strays); got != "[done.delivered] [x.1.2.tmp] [README sym.json ä.json]" {
		t.Errorf("not imported: %s", got)
	}
	page, err := st.List(ctx, "mail", queue.ListOptions{})
	wayOK(t, err)
	var order []string
	for _, e := range page.Entries {
		order = append(order, wayState(e)+"/"+e.ID)
		if e.ID == "a" && !e.EnqueuedAt.Equal(wayBegan.Add(-time.Second)) {
			t.Errorf("a was enqueued at %v", e.EnqueuedAt)
		}
		if wayState(e) == "claimed" && (e.Attempts != 1 || e.Returned != "released") {
			t.Errorf("claimed: %+v", e)
		}
	}
	// The taken entry was written last of all, by the test, today.
	if got, want := strings.Join(order, " "), "claimed/took claimed/two claimed/d claimed/both pending/b pending/c pending/a pending/both pending/took"; got != want {
		t.Errorf("order\n%s\nwant\n%s", got, want)
	}
	s.sound()

	// Closed: refused by everything that would begin again, and by v1 itself.
	var where *MarkerError
	if _, err := Import(ctx, st, s.options()); !errors.Is(err, ErrClosedSource) || !errors.As(err, &where) || where.Store != st.ID() || where.Queue != "mail" {
		t.Errorf("again: %v", err)
	}
	if _, err := Abandon(ctx, st, s.options()); !errors.Is(err, ErrClosedSource) {
		t.Errorf("abandon: %v", err)
	}
	if _, err := v1.Open(s.from, nil); !errors.Is(err, v1.ErrImported) {
		t.Errorf("v1: %v", err)
	}
}

// Each refusal changes nothing, says what it is, and the import works once its ground is
// gone.
func TestRefusals(t *testing.T) {
	const lock = ".fs-safe-transfer-0123456789abcdef0123456789abcdef.lock"
	write := func(s *wayScene, name, text string) {
		wayOK(s.t, os.MkdirAll(filepath.Dir(filepath.Join(s.from, name)), 0o700), os.WriteFile(filepath.Join(s.from, name), []byte(text), 0o600))
	}
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	for _, try := range []struct {
		name  string
		set   func(s *wayScene, o *Options)
		want  error
		words []string
		mend  func(s *wayScene, o *Options) // nil: nothing mends it
	}{
		{"not fenced", func(s *wayScene, o *Options) { o.Fenced = false }, ErrNotFenced, []string{"stop them"},
			func(s *wayScene, o *Options) { o.Fenced = true }},
		{"a queue name", func(s *wayScene, o *Options) { o.Queue = "a/ack" }, queue.ErrInvalidName, nil,
			func(s *wayScene, o *Options) { o.Queue = "mail" }},
		{"no directory", func(s *wayScene, o *Options) { o.From += "x" }, v1.ErrNoDirectory, nil,
			func(s *wayScene, o *Options) { o.From = s.from }},
		{"a lock", func(s *wayScene, o *Options) {
			write(s, lock, "{\n  \"ownerToken\": \"somebody\",\n  \"createdAt\": \"2026-01-01T00:00:00.000Z\"\n}\n")
		}, ErrLocked, []string{lock, "somebody", "old"}, func(s *wayScene, o *Options) { o.RemoveLocks = []string{lock} }},
		{"a fresh lock that cannot be read", func(s *wayScene, o *Options) { write(s, lock, "{") }, ErrLocked, []string{lock},
			func(s *wayScene, o *Options) { o.RemoveLocks = []string{"no such", lock} }},
		{"a reclaim", func(s *wayScene, o *Options) { wayOK(s.t, os.Mkdir(filepath.Join(s.from, lock+".reclaim"), 0o700)) }, ErrLocked,
			[]string{lock + ".reclaim"}, func(s *wayScene, o *Options) { o.RemoveLocks = []string{lock + ".reclaim"} }},
		{"a record with two things in it", func(s *wayScene, o *Options) {
			write(s, ".fs-safe-retirements/d.json/entry", "1")
			write(s, ".fs-safe-retirements/d.json/other", "1")
		}, ErrAmbiguous, []string{"d.json", "docs/format-v1.md"},
			func(s *wayScene, o *Options) {
				wayOK(s.t, os.Remove(filepath.Join(s.from, ".fs-safe-retirements/d.json/other")))
				s.want["pending/d"] = "1"
			}},
		{"a record beside no claim", func(s *wayScene, o *Options) { write(s, ".fs-safe-retirements/lone.json/entry", "1") }, ErrAmbiguous,
			[]string{"lone.json", "no claim"}, nil},
		{"a record that is a file", func(s *wayScene, o *Options) { write(s, ".fs-safe-retirements/a.json", "1") }, ErrAmbiguous,
			[]string{"no directory"}, nil},
		{"entries that v2 cannot take, all at once", func(s *wayScene, o *Options) {
			write(s, "dot..json", "1")
			write(s, strings.Repeat("l", 129)+".json", "1")
			write(s, "bad.processing", `{"a":`)
			write(s, "deep.json", deep)
			write(s, "empty.json", "")
		}, ErrUnimportable, []string{"bad.processing", "and 2 more"}, nil},
		{"too large", func(s *wayScene, o *Options) { o.V1 = &v1.Options{MaxEntryBytes: 5, ClaimBy: v1.RenameNoReplace} }, ErrUnimportable,
			[]string{"too-large"}, func(s *wayScene, o *Options) { o.V1 = nil }},
		{"too large for the store", func(s *wayScene, o *Options) { o.MaxPayloadBytes = 5 }, ErrUnimportable,
			nil, func(s *wayScene, o *Options) { o.MaxPayloadBytes = 0 }},
		{"two links that no transition explains", func(s *wayScene, o *Options) {
			wayOK(s.t, os.Link(filepath.Join(s.from, "a.json"), filepath.Join(s.dir, "elsewhere")))
		}, ErrUnimportable, []string{"a.json", "2 links"}, func(s *wayScene, o *Options) { wayOK(s.t, os.Remove(filepath.Join(s.dir, "elsewhere"))) }},
		{"a claim that is a directory", func(s *wayScene, o *Options) { wayOK(s.t, os.Mkdir(filepath.Join(s.from, "x.processing"), 0o700)) },
			ErrUnimportable, []string{"x.processing"}, func(s *wayScene, o *Options) { wayOK(s.t, os.Remove(filepath.Join(s.from, "x.processing"))) }},
		{"a failed entry that is a symlink", func(s *wayScene, o *Options) {
			wayOK(s.t, os.Symlink(filepath.Join(s.from, "a.json"), filepath.Join(s.fails, "x.json")))
		}, ErrUnimportable, []string{"x.json"}, func(s *wayScene, o *Options) { wayOK(s.t, os.Remove(filepath.Join(s.fails, "x.json"))) }},
		{"a quarantine whose directory is not named", func(s *wayScene, o *Options) {
			wayOK(s.t, os.Link(s.path(v1.EntryClaimed, "d"), s.path(v1.EntryFailed, "d")))
			o.Failed = ""
		}, ErrUnimportable, []string{"d.processing", "failed directory"}, func(s *wayScene, o *Options) {
			o.Failed = s.fails
			s.want["failed/d"] = s.want["claimed/d"]
			delete(s.want, "claimed/d")
		}},
		{"an unreadable marker", func(s *wayScene, o *Options) { write(s, ".holdfast-import", `{"protocol":"other"}`) }, ErrMarker,
			[]string{".holdfast-import"}, nil},
	} {
		t.Run(try.name, func(t *testing.T) {
			s := newWayScene(t, t.TempDir())
			s.put(v1.EntryPending, "a", `"pending"`, 1)
			s.put(v1.EntryClaimed, "d", `"claimed"`, 2)
			st := s.open()
			o := s.options()
			try.set(s, &o)
			before := s.tree()
			rep, err := Import(context.Background(), st, o)
			if !errors.Is(err, try.want) {
				t.Fatalf("got %v, want %v", err, try.want)
			}
			for _, word := range try.words {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%q does not say %q", err, word)
				}
			}
			if after := s.tree(); after != before {
				t.Errorf("changed\n%s\nto\n%s", before, after)
			}
			if got := s.holds(st); len(got) > 0 || rep.Token != "" || rep.Closed {
				t.Errorf("something came: %v, %+v", got, rep)
			}
			if try.mend == nil {
				return
			}
			try.mend(s, &o)
			if _, err := Import(context.Background(), st, o); err != nil {
				t.Fatalf("mended: %v", err)
			}
			if diff := wayDiffer(s.holds(st), s.want); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// tree tells everything in the v1 directories but when a name came or went: a transfer
// lock that was held for a moment is no change.
func (s *wayScene) tree() string {
	s.t.Helper()
	var b strings.Builder
	for _, dir := range []string{s.from, s.fails} {
		wayOK(s.t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s %v", path, info.Mode())
			if info.Mode().IsRegular() {
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, " %v %q", info.ModTime(), text)
			}
			b.WriteByte('\n')
			return nil
		}))
	}
	return b.String()
}

// A taken ID is found before anything is opened; each side of an ID is its own.
func TestTakenIDs(t *testing.T) {
	ctx := context.Background()
	s := newWayScene(t, t.TempDir())
	s.put(v1.EntryPending, "a", `"pending"`, 1)
	s.put(v1.EntryClaimed, "b", `"claimed"`, 2)
	s.put(v1.EntryFailed, "c", `"failed"`, 3)
	st := s.open()
	for _, id := range []string{"c", "a", "b"} {
		_, err := st.Enqueue(ctx, "mail", queue.Message{ID: id, Payload: []byte(`"mine"`)})
		wayOK(t, err)
		if id == "c" {
			d, err := st.Load(ctx, "mail", id, queue.LoadOptions{})
			wayOK(t, err)
			_, err = st.Fail(ctx, d.Receipt, queue.FailOptions{Cause: "x"})
			wayOK(t, err)
		}
	}
	before := s.tree()
	_, err := Import(ctx, st, s.options())
	var list *ProblemsError
	if !errors.Is(err, ErrTaken) || !errors.As(err, &list) || len(list.Problems) != 2 ||
		!errors.Is(list.Problems[0].Err, queue.ErrDuplicate) || !errors.Is(list.Problems[1].Err, queue.ErrFailedExists) {
		t.Fatalf("got %v", err)
	}
	if after := s.tree(); after != before {
		t.Errorf("changed to\n%s", after)
	}
	_, err = st.Clear(ctx, "mail", queue.ClearOptions{})
	wayOK(t, err, st.Purge(ctx, "c", queue.PurgeOptions{}))
	_, err = Import(ctx, st, s.options())
	wayOK(t, err)
	if diff := wayDiffer(s.holds(st), s.want); diff != "" {
		t.Error(diff)
	}
}

// What cannot be imported is left where it is, in every later step too.
func TestSkipInvalid(t *testing.T) {
	ctx := context.Background()
	s := newWayScene(t, t.TempDir())
	s.mixed()
	for name, text := range map[string]string{"dot..json": "1", "broken.processing": `{`} {
		wayOK(t, os.WriteFile(filepath.Join(s.from, name), []byte(text), 0o600))
	}
	st := s.open()
	o := s.options()
	o.SkipInvalid = true
	rep, err := Import(ctx, st, o)
	wayOK(t, err)
	if diff := wayDiffer(s.holds(st), s.want); diff != "" {
		t.Error(diff)
	}
	if len(rep.Skipped) != 2 || rep.Skipped[0].File != "broken.processing" || rep.Skipped[1].File != "dot..json" {
		t.Errorf("skipped %v", rep.Skipped)
	}
	_, err = RemoveSource(ctx, st, o)
	wayOK(t, err)
	if got, want := s.names(s.from), ".fs-safe-retirements .holdfast-import README broken.processing done.delivered dot..json x.1.2.tmp ä.json"; got != want {
		t.Errorf("left %q, want %q", got, want)
	}
}

// A dry run says what an import would say, and changes nothing, here or there.
func TestDryRun(t *testing.T) {
	ctx := context.Background()
	s := newWayScene(t, t.TempDir())
	s.mixed()
	st := s.open()
	o := s.options()
	o.DryRun, o.Fenced = true, false
	before, status := s.tree(), wayStatus(t, st)
	rep, err := Import(ctx, st, o)
	wayOK(t, err)
	if after := s.tree(); after != before {
		t.Errorf("changed\n%s\nto\n%s", before, after)
	}
	if now := wayStatus(t, st); now != status {
		t.Errorf("the store went from %s to %s", status, now)
	}
	// The taken entry of the record is not counted: it is not back yet.
	if rep.Claimed != 4 || rep.Pending != 4 || rep.Failed != 2 || rep.Closed || rep.Token != "" || !slices.Equal(rep.Recovered, []string{"half", "took", "two"}) {
		t.Errorf("report %+v", rep)
	}
	wayOK(t, os.WriteFile(filepath.Join(s.from, "broken.json"), []byte("{"), 0o600))
	if _, err := Import(ctx, st, o); !errors.Is(err, ErrUnimportable) {
		t.Errorf("a broken one: %v", err)
	}
}

func wayStatus(t *testing.T, st *v2.Store) string {
	t.Helper()
	status, err := st.Status(context.Background(), queue.StatusOptions{})
	wayOK(t, err)
	return fmt.Sprintf("%d %+v", status.Revision, status.Queues)
}

// Thousands of entries take a few commits, not one each.
func TestManyEntries(t *testing.T) {
	s := newWayScene(t, t.TempDir())
	for i := range 2000 {
		s.put(v1.EntryPending, fmt.Sprintf("m%04d", i), fmt.Sprintf(`{"n":%d}`, i%7), i%50)
	}
	st := s.open()
	commits := 0
	o := s.options()
	o.step = func(step string) {
		if step == "added" {
			commits++
		}
	}
	var told []Progress
	o.Progress = func(p Progress) { told = append(told, p) }
	rep, err := Import(context.Background(), st, o)
	wayOK(t, err)
	if rep.Added != 2000 || commits != 4 {
		t.Errorf("added %d in %d commits", rep.Added, commits)
	}
	if last := told[len(told)-1]; last != (Progress{Importing, 2000, 2000}) || told[0].Phase != Checking {
		t.Errorf("told first %+v, last %+v", told[0], last)
	}
	page, err := st.List(context.Background(), "mail", queue.ListOptions{Limit: 10_000})
	wayOK(t, err)
	if len(page.Entries) != 2000 {
		t.Errorf("%d messages", len(page.Entries))
	}
}
