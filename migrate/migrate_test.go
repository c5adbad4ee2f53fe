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

// A wayScene is a v1 directory with everything in it that an import meets, and an empty
// store. What must arrive is in want.
type wayScene struct {
	t           testing.TB
	dir         string // of everything
	from, fails string
	store       string
	want        map[string]string // "state/ID": payload
}

// wayBegan is the modification time of the first entry; each later one is a second older,
// so that time and ID do not agree by chance.
var wayBegan = time.Date(2026, 3, 1, 12, 0, 0, 250_000_000, time.UTC)

func newWayScene(t testing.TB, dir string) *wayScene {
	t.Helper()
	s := &wayScene{t: t, dir: dir, from: filepath.Join(dir, "queue"), fails: filepath.Join(dir, "failed"), store: filepath.Join(dir, "store"), want: map[string]string{}}
	wayOK(t, os.Mkdir(s.from, 0o700), os.Mkdir(s.fails, 0o700))
	st, err := v2.Create(context.Background(), s.store, &v2.Options{OnDeadOwner: v2.AutoRecover})
	wayOK(t, err)
	wayOK(t, st.Close())
	return s
}

func wayOK(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// put writes an entry's file. n orders the files by time.
func (s *wayScene) put(state v1.EntryState, id, payload string, n int) {
	s.t.Helper()
	path := s.path(state, id)
	wayOK(s.t, os.WriteFile(path, []byte(payload), 0o600))
	at := wayBegan.Add(-time.Duration(n) * time.Second)
	wayOK(s.t, os.Chtimes(path, at, at))
	s.want[state.String()+"/"+id] = payload
}

func (s *wayScene) path(state v1.EntryState, id string) string {
	switch state {
	case v1.EntryClaimed:
		return filepath.Join(s.from, id+".processing")
	case v1.EntryFailed:
		return filepath.Join(s.fails, id+".json")
	}
	return filepath.Join(s.from, id+".json")
}

// mixed fills the directory: entries in every state, an ID pending and claimed at once,
// equal bytes under two IDs, a two-link claim, a retirement that took a newer entry, an
// interrupted quarantine, and what is no entry.
func (s *wayScene) mixed() {
	s.t.Helper()
	s.put(v1.EntryPending, "a", `{"n":9007199254740993}`, 1)
	s.put(v1.EntryPending, "b", "{\n  \"same\": true\n}", 3)
	s.put(v1.EntryPending, "c", "{\n  \"same\": true\n}", 2)
	s.put(v1.EntryPending, "both", `"newer"`, 0)
	s.put(v1.EntryClaimed, "both", `"older"`, 5)
	s.put(v1.EntryClaimed, "d", `[1, 2.50]`, 6)
	s.put(v1.EntryFailed, "bad", `"evidence"`, 7)

	// A claim that was cut off between its two names.
	s.put(v1.EntryClaimed, "two", `"two links"`, 8)
	wayOK(s.t, os.Link(s.path(v1.EntryClaimed, "two"), s.path(v1.EntryPending, "two")))

	// A retirement that had taken a newer entry, which must come back.
	s.put(v1.EntryClaimed, "took", `"claimed"`, 9)
	s.want["pending/took"] = `"taken"`
	record := filepath.Join(s.from, ".fs-safe-retirements", "took.json")
	wayOK(s.t, os.MkdirAll(record, 0o700), os.WriteFile(filepath.Join(record, "entry"), []byte(`"taken"`), 0o600))

	// A quarantine that was cut off between its two names.
	s.put(v1.EntryFailed, "half", `"on its way"`, 10)
	wayOK(s.t, os.Link(s.path(v1.EntryFailed, "half"), s.path(v1.EntryClaimed, "half")))

	for name, text := range map[string]string{
		"done.delivered": `"done"`, "x.1.2.tmp": `{`, "README": "hello", "ä.json": `1`,
	} {
		wayOK(s.t, os.WriteFile(filepath.Join(s.from, name), []byte(text), 0o600))
	}
}

func (s *wayScene) options() Options {
	return Options{From: s.from, Failed: s.fails, Queue: "mail", Fenced: true}
}

// open opens the store until the test ends, or until the func is called.
func (s *wayScene) open() *v2.Store {
	s.t.Helper()
	st, err := v2.Open(context.Background(), s.store, nil)
	wayOK(s.t, err)
	s.t.Cleanup(func() {
		if err := st.Close(); err != nil && !errors.Is(err, queue.ErrClosed) {
			s.t.Error(err)
		}
	})
	return st
}

// holds gives what the queue of the store holds, as want has it.
func (s *wayScene) holds(st *v2.Store) map[string]string {
	s.t.Helper()
	ctx := context.Background()
	got := map[string]string{}
	page, err := st.List(ctx, "mail", queue.ListOptions{Limit: 10_000})
	wayOK(s.t, err)
	for _, listed := range page.Entries {
		key := wayState(listed) + "/" + listed.ID
		if _, twice := got[key]; twice {
			s.t.Errorf("%s is there twice", key)
		}
		both, err := st.Show(ctx, "mail", listed.ID)
		wayOK(s.t, err)
		for _, e := range both {
			if e.Generation == listed.Generation {
				got[key] = string(e.Payload)
			}
		}
	}
	failed, err := st.ListFailed(ctx, queue.FailedOptions{}, queue.ListOptions{Limit: 10_000})
	wayOK(s.t, err)
	for _, e := range failed.Entries {
		shown, err := st.ShowFailed(ctx, e.FailedName, queue.FailedOptions{})
		wayOK(s.t, err)
		got["failed/"+e.FailedName] = string(shown.Payload)
	}
	return got
}

func wayState(e queue.Entry) string {
	if e.Returned != "" || e.State == queue.Processing {
		return "claimed"
	}
	return "pending"
}

// wayDiffer compares what is there with what must be.
func wayDiffer(got, want map[string]string) string {
	var b strings.Builder
	for key, payload := range want {
		if is, there := got[key]; !there {
			fmt.Fprintf(&b, "%s is lost\n", key)
		} else if is != payload {
			fmt.Fprintf(&b, "%s is %q, want %q\n", key, is, payload)
		}
	}
	for key := range got {
		if _, wanted := want[key]; !wanted {
			fmt.Fprintf(&b, "%s came from nowhere\n", key)
		}
	}
	return b.String()
}

// sound verifies the store.
func (s *wayScene) sound() {
	s.t.Helper()
	r, err := v2.VerifyDir(context.Background(), s.store, nil, v2.VerifyOptions{})
	if err != nil || !r.OK {
		s.t.Errorf("verify: %+v, %v", r, err)
	}
}

func (s *wayScene) names(dir string) string {
	s.t.Helper()
	listed, err := os.ReadDir(dir)
	wayOK(s.t, err)
	var names []string
	for _, e := range listed {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
