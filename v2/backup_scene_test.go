//go:build unix

package holdfast

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// backupScene is a store that has of everything: runs of both kinds, claims that are out,
// that were reaped, retried and released, keys, schedules, a paused queue, a cursor, an open
// import and a closed one, objects of one message and of several, orphans.
func backupScene(t *testing.T, o *Options) (s *Store, dir string, out []queue.Receipt) {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	o.block = 2
	clock := &handClock{rigStart}
	o.clock = clock
	s, dir = newTestStore(t, o)
	ctx := t.Context()
	for i := range 30 {
		mustEnqueue(t, s, "mail", small(fmt.Sprintf("m%02d", i)))
	}
	mustEnqueue(t, s, "mail", smalls(20)...)
	mustEnqueue(t, s, "mail", queue.Message{ID: "big", Payload: fmt.Appendf(nil, `"%s"`, strings.Repeat("x", 2*smallPayload)), Key: "k"})
	mustEnqueue(t, s, "later", queue.Message{ID: "scheduled", Payload: []byte(`1`), NotBefore: clock.Wall.Add(time.Hour)})
	for i, d := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: 12, Lease: time.Hour, Label: "w"}) {
		switch i % 4 {
		case 0:
			_, err := s.Fail(ctx, d.Receipt, queue.FailOptions{Cause: "broken"})
			mustDo(t, err)
		case 1:
			out = append(out, d.Receipt)
		case 2:
			_, err := s.Reap(ctx, queue.ReapOptions{Receipt: &d.Receipt})
			mustDo(t, err)
			out = append(out, d.Receipt)
		case 3:
			mustDo(t, s.Ack(ctx, d.Receipt))
		}
	}
	mustEnqueue(t, s, "mail", small("x")) // seals evidence too
	mustDo(t, s.Pause(ctx, "later"), second(s.Update(ctx, queue.CursorChange{Queue: "feed", Cursor: "offset 42"})))
	mustImport(t, s, "old", namedToken("open"), foreign("a", ImportedPending), foreign("b", ImportedFailed))
	closed := mustImport(t, s, "older", namedToken("closed"), foreign("a", ImportedClaimed))
	mustDo(t, closed.Close(ctx))
	return s, dir, out
}

// stateIn decodes the state of a store that nobody changes.
func stateIn(t testing.TB, dir string) *state {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, namespaceDir, name) }
	text, err := os.ReadFile(at(formatFile))
	mustDo(t, err)
	store, err := decodeFormat(text, formatFile)
	mustDo(t, err)
	text, err = os.ReadFile(at(stateFile))
	mustDo(t, err)
	st, err := decodeState(text, stateFile, store)
	mustDo(t, err)
	return st
}

// contents gives every message of a store with its payload, and what stands beside it that
// a restore must keep.
func contents(t testing.TB, s *Store) []string {
	t.Helper()
	ctx := context.Background()
	var lines []string
	line := func(e queue.Entry) {
		lines = append(lines, fmt.Sprintf("%s/%s %s %d %q %s %s", e.Queue, e.ID, e.Generation, e.Seq, e.FailedName, e.EnqueuedAt, e.Payload))
	}
	st, err := s.Status(ctx, queue.StatusOptions{})
	mustDo(t, err)
	for name, q := range st.Queues {
		q.Counters.Released = 0
		lines = append(lines, fmt.Sprintf("%s paused %v importing %v %+v", name, q.Paused, q.Importing, q.Counters))
		for after := ""; ; {
			page, err := s.List(ctx, name, queue.ListOptions{After: after})
			mustDo(t, err)
			for _, e := range page.Entries {
				shown, err := s.Show(ctx, name, e.ID)
				mustDo(t, err)
				for _, e := range shown {
					line(e)
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
	}
	page, err := s.ListFailed(ctx, queue.FailedOptions{}, queue.ListOptions{Limit: maxClaim})
	mustDo(t, err)
	for _, e := range page.Entries {
		shown, err := s.ShowFailed(ctx, e.FailedName, queue.FailedOptions{})
		mustDo(t, err)
		line(shown)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// A backupForm is a way to copy a store and to make one of the copy.
type backupForm struct {
	name    string
	backup  func(ctx context.Context, s *Store, to string, o BackupOptions) (BackupReport, error)
	restore func(ctx context.Context, from, dir string, o *Options, r RestoreOptions) (Restored, error)
}

var backupForms = []backupForm{
	{"directory", func(ctx context.Context, s *Store, to string, o BackupOptions) (BackupReport, error) {
		return s.Backup(ctx, to, o)
	}, Restore},
	{"tar", func(ctx context.Context, s *Store, to string, o BackupOptions) (BackupReport, error) {
		var b bytes.Buffer
		r, err := s.BackupTar(ctx, &b, o)
		if err == nil {
			err = os.WriteFile(to, b.Bytes(), 0o600)
		}
		return r, err
	}, func(ctx context.Context, from, dir string, o *Options, r RestoreOptions) (Restored, error) {
		f, err := os.Open(from)
		if err != nil {
			return Restored{}, err
		}
		defer f.Close()
		return RestoreTar(ctx, f, dir, o, r)
	}},
}
