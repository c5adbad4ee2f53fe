//go:build unix

package holdfast

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// What comes back is what was copied: every message, its payload, its generation and its
// place, counters, pauses, cursors and imports. What was claimed is due again, its attempt
// excused; no receipt of before is good; the store is another one.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	for _, form := range backupForms {
		t.Run(form.name, func(t *testing.T) {
			s, dir, out := backupScene(t, nil)
			ctx := t.Context()
			copied, to := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "restored")
			was := contents(t, s)
			verified, err := s.Verify(ctx, VerifyOptions{})
			mustDo(t, err)
			if verified.Runs < 10 || verified.Processing != 3 || verified.Failed != 4 || verified.OpenImports != 1 {
				t.Fatalf("the scene is not what it was meant to be: %+v", verified)
			}
			before := treeOf(t, dir)
			b, err := form.backup(ctx, s, copied, BackupOptions{})
			mustDo(t, err)
			unchanged(t, dir, before)
			if b.Store != s.ID() || b.Revision != verified.Revision || b.Messages != verified.Messages || b.Failed != verified.Failed || b.Files != verified.Objects+2 {
				t.Errorf("backup: %+v\nverify: %+v", b, verified)
			}
			o := &Options{clock: s.clock, block: 2}
			set := ownHolders(&o)
			r, err := form.restore(ctx, copied, to, o, RestoreOptions{})
			mustDo(t, err)
			want := Restored{
				Store: r.Store, Revision: b.Revision + 1, CopyOf: s.ID(), CopyRevision: b.Revision, Messages: b.Messages, Failed: b.Failed,
				Returned: 3, OpenImports: 1, Objects: verified.Objects, PayloadBytes: verified.PayloadBytes,
			}
			if r != want || r.Store == s.ID() {
				t.Errorf("restored %+v, want %+v", r, want)
			}
			again, err := Open(ctx, to, o)
			mustDo(t, err)
			defer set.die()
			defer again.Close()
			if is := contents(t, again); !slices.Equal(is, was) {
				t.Errorf("restored:\n%s\nwas:\n%s", strings.Join(is, "\n"), strings.Join(was, "\n"))
			}
			if again.ID() != r.Store {
				t.Errorf("the store's id is %s, told was %s", again.ID(), r.Store)
			}
			mustVerify(t, to)
			restoredState(t, stateIn(t, dir), stateIn(t, to))
			for _, receipt := range out {
				if err := again.Ack(ctx, receipt); !errors.Is(err, queue.ErrInvalidReceipt) {
					t.Errorf("ack by a receipt of the copied store: %v", err)
				}
				d, err := again.Load(ctx, receipt.Queue, receipt.ID, queue.LoadOptions{})
				if err != nil || d.Receipt.Attempt != receipt.Attempt+1 || d.Receipt.Generation != receipt.Generation {
					t.Errorf("claimed again: %+v, %v", d, err)
				}
				mustDo(t, again.Ack(ctx, d.Receipt))
			}
			mustEnqueue(t, again, "mail", small("after"))
			mustVerify(t, to)
		})
	}
}

// restoredState compares what no call shows.
func restoredState(t *testing.T, was, is *state) {
	t.Helper()
	if is.fence != was.fence+restoredFence || is.commit == was.commit || is.settings != was.settings || is.exchange != was.exchange {
		t.Errorf("fence %d → %d, settings %+v → %+v, exchange %v → %v", was.fence, is.fence, was.settings, is.settings, was.exchange, is.exchange)
	}
	for i, q := range is.queues {
		if q.next != was.queues[i].next || q.cursor != was.queues[i].cursor {
			t.Errorf("queue %s: %+v, was %+v", q.name, q, was.queues[i])
		}
		for _, s := range q.slots {
			before, _ := was.queues[i].find(s.id)
			if s.claimed == nil {
				continue
			}
			c, old := s.claimed, before.claimed
			wantExcused := old.excused
			if old.returned == leased {
				wantExcused++
			}
			if c.returned == leased || c.lease != (lease{}) || c.attempts != old.attempts || c.excused != wantExcused || c.lapses != old.lapses {
				t.Errorf("%s: %+v, was %+v", s.id, c, old)
			}
		}
	}
}

// A copy is of one revision: what is done while it is taken is not in it, in no part. The
// lock is free meanwhile, and nothing is collected.
func TestBackupBesideWork(t *testing.T) {
	t.Parallel()
	for _, form := range backupForms {
		t.Run(form.name, func(t *testing.T) {
			s, dir, out := backupScene(t, nil)
			was := contents(t, s)
			calls := 0
			copied, to := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "restored")
			_, err := form.backup(t.Context(), s, copied, BackupOptions{Progress: func(done, total int64) {
				calls++
				mustEnqueue(t, s, "mail", queue.Message{Payload: []byte(`"new"`)})
				if calls == 1 {
					mustDo(t, s.Ack(t.Context(), out[0]))
					_, err := s.Clear(t.Context(), "mail", queue.ClearOptions{})
					mustDo(t, err)
				}
				if objectsAreFree(t, dir) {
					t.Error("a collection could begin while a copy is taken")
				}
				if done > total {
					t.Errorf("progress: %d of %d", done, total)
				}
			}})
			mustDo(t, err)
			if calls < 20 || !objectsAreFree(t, dir) {
				t.Errorf("%d files; objects/ is free: %v", calls, objectsAreFree(t, dir))
			}
			o := &Options{clock: s.clock}
			_, err = form.restore(t.Context(), copied, to, o, RestoreOptions{})
			mustDo(t, err)
			again, err := OpenReadOnly(t.Context(), to, o)
			mustDo(t, err)
			defer again.Close()
			if is := contents(t, again); !slices.Equal(is, was) {
				t.Errorf("restored:\n%s\nwas:\n%s", strings.Join(is, "\n"), strings.Join(was, "\n"))
			}
		})
	}
}

// Copies that are taken while others move messages on, each by one commit, have every
// message once.
func TestBackupOfAStoreAtWork(t *testing.T) {
	t.Parallel()
	s, _ := newTestStore(t, nil)
	const n = 40
	mustEnqueue(t, s, "a", smalls(n)...)
	ctx := t.Context()
	stop, stopped, moved := make(chan struct{}), make(chan error, 1), make(chan struct{}, 1)
	go func() {
		from, to := "a", "b"
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			c, err := s.Claim(ctx, from, queue.ClaimOptions{WithoutHolder: true})
			if err != nil {
				stopped <- err
				return
			}
			if len(c.Deliveries) == 0 {
				from, to = to, from
				continue
			}
			d := c.Deliveries[0]
			_, err = s.Update(ctx, queue.AckChange{Receipt: d.Receipt}, queue.EnqueueChange{Queue: to, Message: queue.Message{ID: d.Receipt.ID, Payload: d.Payload}})
			if err != nil {
				stopped <- err
				return
			}
			select {
			case moved <- struct{}{}:
			default:
			}
		}
	}()
	last := uint64(0)
	for i := range 5 {
		for range 2 { // the first may be of before the copy that was taken last
			select {
			case <-moved:
			case err := <-stopped:
				t.Fatal(err)
			}
		}
		copied, to := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "restored")
		b, err := s.Backup(ctx, copied, BackupOptions{})
		mustDo(t, err)
		r, err := Restore(ctx, copied, to, nil, RestoreOptions{})
		mustDo(t, err)
		if r.Messages != n || i > 0 && b.Revision <= last {
			t.Errorf("copy of revision %d: %+v; the one before was of %d", b.Revision, r, last)
		}
		last = b.Revision
		ids := map[string]bool{}
		for _, q := range stateIn(t, to).queues {
			for _, s := range q.slots {
				ids[s.id] = true
			}
		}
		if len(ids) != n {
			t.Errorf("%d IDs, want %d", len(ids), n)
		}
	}
	close(stop)
	mustDo(t, <-stopped)
}

// What cannot be copied is told, by its name; nothing of it counts as a copy.
func TestBackupRefuses(t *testing.T) {
	t.Parallel()
	payload := func(t *testing.T, dir, id string) string {
		return filepath.Join(dir, namespaceDir, objectsDir, objectOf(t, dir, id), payloadFile)
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, s *Store, dir, to string)
		to    func(dir, to string) string
		want  error
		names string
	}{
		{name: "something there", spoil: func(t *testing.T, _ *Store, _, to string) {
			mustDo(t, os.Mkdir(to, 0o700), os.WriteFile(filepath.Join(to, "notes.txt"), nil, 0o600))
		}, want: ErrNotEmpty, names: "notes.txt"},
		{name: "a directory that others write", spoil: func(t *testing.T, _ *Store, _, to string) {
			mustDo(t, os.Mkdir(to, 0o700), os.Chmod(to, 0o777))
		}, want: ErrUnsafe, names: "0777"},
		{name: "the store's own directory", to: func(dir, _ string) string { return dir }, want: queue.ErrInvalid, names: "elsewhere"},
		{name: "inside of the store", to: func(dir, _ string) string { return filepath.Join(dir, "copy") }, want: queue.ErrInvalid, names: "elsewhere"},
		{name: "inside of a directory of the store", to: func(dir, _ string) string { return filepath.Join(dir, namespaceDir, objectsDir, "copy") }, want: queue.ErrInvalid, names: "elsewhere"},
		{name: "a link to the store", spoil: func(t *testing.T, _ *Store, dir, to string) { mustDo(t, os.Symlink(dir, to)) }, want: queue.ErrInvalid, names: "elsewhere"},
		{name: "behind a link into the store", spoil: func(t *testing.T, _ *Store, dir, to string) {
			mustDo(t, os.Symlink(filepath.Join(dir, namespaceDir), to))
		}, to: func(_, to string) string { return filepath.Join(to, "copy") }, want: queue.ErrInvalid, names: "elsewhere"},
		{name: "above a link into the store", spoil: func(t *testing.T, _ *Store, dir, to string) {
			mustDo(t, os.Symlink(filepath.Join(dir, namespaceDir, objectsDir), to))
		}, to: func(_, to string) string { return to + "/../other" }},
		{name: "a link that leads nowhere", spoil: func(t *testing.T, _ *Store, dir, to string) {
			mustDo(t, os.Symlink(filepath.Join(dir, "copy"), to))
		}, want: os.ErrNotExist},
		{name: "a writer that did not finish", spoil: func(t *testing.T, _ *Store, dir, _ string) { mustDo(t, leaveDeadOwner(dir)) }, want: ErrStaleLock},
		{name: "a payload altered", spoil: func(t *testing.T, _ *Store, dir, _ string) {
			mustDo(t, os.WriteFile(payload(t, dir, "a"), []byte(`{"n":9999}`), 0o600))
		}, want: queue.ErrDamaged, names: "mail/a"},
		{name: "a payload gone", spoil: func(t *testing.T, _ *Store, dir, _ string) { mustDo(t, os.Remove(payload(t, dir, "a"))) }, want: queue.ErrDamaged, names: "missing"},
		{name: "no parent", to: func(_, to string) string { return filepath.Join(to, "x", "y") }, want: os.ErrNotExist},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, to := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "copy")
			s, err := Create(t.Context(), dir, &Options{prepare: -1})
			mustDo(t, err)
			defer s.Close()
			mustEnqueue(t, s, "mail", small("a"))
			mustEnqueue(t, s, "mail", small("b"))
			if c.spoil != nil {
				c.spoil(t, s, dir, to)
			}
			if c.to != nil {
				to = c.to(dir, to)
			}
			_, err = s.Backup(t.Context(), to, BackupOptions{})
			if c.want == nil { // what is written to is what was looked at: the path is read by its names
				mustDo(t, err)
				return
			}
			refusal(t, "backup", err, c.want, c.names)
			if !objectsAreFree(t, dir) {
				t.Error("collections are kept out")
			}
			if _, err := os.Lstat(filepath.Join(to, manifestFile)); err == nil {
				t.Error("there is a manifest")
			}
			if _, err := Restore(t.Context(), to, dir+"-restored", nil, RestoreOptions{}); err == nil {
				t.Error("it can be restored")
			}
		})
	}
}

// A damaged run stops a backup, and is named.
func TestBackupOfADamagedRun(t *testing.T) {
	dir, runs := deepIn(t, 40)
	path := filepath.Join(dir, namespaceDir, filepath.FromSlash(runPath(runs[0].name)))
	mustDo(t, os.WriteFile(path, []byte("{}"), 0o600))
	s, err := OpenReadOnly(t.Context(), dir, nil)
	mustDo(t, err)
	defer s.Close()
	_, err = s.Backup(t.Context(), dir+"-copy", BackupOptions{})
	refusal(t, "backup", err, ErrCorrupt, runPath(runs[0].name))
}

// A handle that was opened for looking copies too, and changes nothing. The copy is no store.
func TestBackupByALook(t *testing.T) {
	s, dir, _ := backupScene(t, nil)
	o, w := watched(t)
	look, err := OpenReadOnly(t.Context(), dir, o)
	mustDo(t, err)
	defer look.Close()
	before := treeOf(t, dir)
	copied := filepath.Join(t.TempDir(), "copy")
	b, err := look.Backup(t.Context(), copied, BackupOptions{})
	mustDo(t, err)
	unchanged(t, dir, before)
	if time.Until(b.Taken) > time.Minute || b.Store != s.ID() {
		t.Errorf("%+v", b)
	}
	_, err = Open(t.Context(), copied, nil)
	refusal(t, "open", err, ErrNoStore, "copy")
	mustDo(t, look.Close())
	if open := w.Open(); len(open) > 0 {
		t.Errorf("left open: %q", open)
	}
}
