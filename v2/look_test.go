//go:build unix

package holdfast

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// changing are the operations that change a disk, or what is durable on it.
var changing = []fsguard.Op{
	fsguard.OpMkdir, fsguard.OpCreate, fsguard.OpWriteFile, fsguard.OpRename, fsguard.OpExchange, fsguard.OpRemove,
	fsguard.OpRemoveDir, fsguard.OpWrite, fsguard.OpAllocate,
}

// treeOf tells everything about a tree that a change would change: names, types,
// modes, inodes, times, contents.
func treeOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		what := fmt.Sprintf("mode %o, inode %d, links %d, size %d, mtime %d", st.Mode, st.Ino, st.Nlink, st.Size, st.Mtim.Nano())
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(", %x", sha256.Sum256(data))
		case unix.S_IFLNK:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " to " + target
		}
		tree[path] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// unchanged fails the test if the tree is not exactly as it was.
func unchanged(t testing.TB, dir string, before map[string]string) {
	t.Helper()
	after := treeOf(t, dir)
	for path, was := range before {
		if is := after[path]; is != was {
			t.Errorf("%s changed:\n was %s\n  is %q", path, was, is)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s is new", path)
		}
	}
}

// watched gives options whose operations on the real filesystem are noted. No call
// may keep a descriptor after it failed, or sync one twice after a failure.
func watched(t testing.TB) (*Options, *crashtest.Wrapper) {
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	t.Cleanup(func() {
		for _, v := range w.Violations() {
			t.Error(v)
		}
	})
	return &Options{fs: w}, w
}

// looks are all the calls that change nothing.
var looksAtAll = []struct {
	name string
	do   func(ctx context.Context, s *Store) error
}{
	{"status", func(ctx context.Context, s *Store) error {
		return second(s.Status(ctx, queue.StatusOptions{Orphans: true}))
	}},
	{"list", func(ctx context.Context, s *Store) error { return second(s.List(ctx, "mail", queue.ListOptions{})) }},
	{"show", func(ctx context.Context, s *Store) error { return second(s.Show(ctx, "mail", "b")) }},
	{"peek", func(ctx context.Context, s *Store) error { return second(s.Peek(ctx, "mail", 3)) }},
	{"list failed", func(ctx context.Context, s *Store) error {
		return second(s.ListFailed(ctx, queue.FailedOptions{}, queue.ListOptions{}))
	}},
	{"show failed", func(ctx context.Context, s *Store) error {
		return second(s.ShowFailed(ctx, "a", queue.FailedOptions{}))
	}},
	{"settings", func(ctx context.Context, s *Store) error { return second(s.Settings(ctx)) }},
	{"imports", func(ctx context.Context, s *Store) error { return second(s.Imports(ctx)) }},
	{"verify", func(ctx context.Context, s *Store) error { return second(s.Verify(ctx, VerifyOptions{})) }},
}

// writers are calls that would change something.
var writers = []struct {
	name string
	do   func(ctx context.Context, s *Store) error
}{
	{"enqueue", func(ctx context.Context, s *Store) error { return second(s.Enqueue(ctx, "mail", small("z"))) }},
	{"enqueue batch", func(ctx context.Context, s *Store) error { return second(s.EnqueueBatch(ctx, "mail", smalls(2))) }},
	{"claim", func(ctx context.Context, s *Store) error { return second(s.Claim(ctx, "mail", queue.ClaimOptions{})) }},
	{"load", func(ctx context.Context, s *Store) error {
		return second(s.Load(ctx, "mail", "b", queue.LoadOptions{}))
	}},
	{"ack", func(ctx context.Context, s *Store) error { return s.Ack(ctx, queue.Receipt{}) }},
	{"release", func(ctx context.Context, s *Store) error {
		return s.Release(ctx, queue.Receipt{}, queue.ReleaseOptions{})
	}},
	{"fail", func(ctx context.Context, s *Store) error {
		return second(s.Fail(ctx, queue.Receipt{}, queue.FailOptions{}))
	}},
	{"replace payload", func(ctx context.Context, s *Store) error { return s.ReplacePayload(ctx, queue.Receipt{}, []byte("1")) }},
	{"clear", func(ctx context.Context, s *Store) error { return second(s.Clear(ctx, "mail", queue.ClearOptions{})) }},
	{"purge", func(ctx context.Context, s *Store) error { return s.Purge(ctx, "a", queue.PurgeOptions{}) }},
	{"set", func(ctx context.Context, s *Store) error { return s.Set(ctx, Settings{OnDeadOwner: AutoRecover}) }},
	{"open an import", func(ctx context.Context, s *Store) error { return second(s.OpenImport(ctx, "mail", NewImportToken())) }},
	{"import", func(ctx context.Context, s *Store) error {
		return second((&Import{s: s, token: token{1}}).Add(ctx, foreign("z", ImportedPending)))
	}},
	{"close an import", func(ctx context.Context, s *Store) error { return (&Import{s: s, token: token{1}}).Close(ctx) }},
	{"abandon an import", func(ctx context.Context, s *Store) error { return (&Import{s: s, token: token{1}}).Abandon(ctx) }},
	{"recover", func(ctx context.Context, s *Store) error { return second(s.Recover(ctx)) }},
	{"resolve", func(ctx context.Context, s *Store) error {
		return second(s.Resolve(ctx, &queue.UncertainError{Store: s.ID(), Commit: namedToken("x").String()}))
	}},
}

// Looking changes nothing: not a byte, a time or a mode on a real disk, whether the
// store was opened for looking or not. What was opened for looking only refuses to
// change anything, before it touches a file.
func TestLooksChangeNothing(t *testing.T) {
	dir, at := copyOf(t, goodStore(t))
	mustDo(t, os.WriteFile(at(stateTemp(namedToken("x"))), []byte("cut o"), 0o600), os.Mkdir(at(objectsDir, namedToken("orphan").String()), 0o700))
	before := treeOf(t, dir)
	for name, open := range map[string]func(context.Context, string, *Options) (*Store, error){"Open": Open, "OpenReadOnly": OpenReadOnly} {
		o, w := watched(t)
		s, err := open(t.Context(), dir, o)
		mustDo(t, err)
		for _, look := range looksAtAll {
			if err := look.do(t.Context(), s); err != nil {
				t.Errorf("%s: %s: %v", name, look.name, err)
			}
		}
		if name == "OpenReadOnly" {
			for _, write := range writers {
				refusal(t, write.name, write.do(t.Context(), s), ErrReadOnly, "")
			}
		}
		mustDo(t, s.Close())
		if n := w.Count(changing...); n != 0 {
			t.Errorf("%s: %d operations that change something:\n%s", name, n, w.Trace())
		}
		if n := w.Syncs(); name == "OpenReadOnly" && n != 0 {
			t.Errorf("%d syncs for looking:\n%s", n, w.Trace())
		}
	}
	unchanged(t, dir, before)
}

// A look needs no permission to write: neither on a disk that was mounted read-only,
// nor in a tree where nothing may be written, nor in one of another user.
func TestLookWithoutPermission(t *testing.T) {
	for name, lack := range map[string]func(d *crashtest.Disk){
		"a read-only mount": func(d *crashtest.Disk) { d.SetReadOnly(true) },
		"a tree of no write permission": func(d *crashtest.Disk) {
			for _, dir := range []string{"/data", simDir, inSim(), inSim(objectsDir), inSim(holdersDir)} {
				d.Chmod(dir, 0o500)
			}
			for _, file := range []string{stateFile, formatFile, lockFile, reserveFile} {
				d.Chmod(inSim(file), 0o400)
			}
		},
		"a full disk": func(d *crashtest.Disk) { d.SetFree(0) },
		"another user's": func(d *crashtest.Disk) {
			d.Chown(simDir, 4711)
			d.Chmod(simDir, 0o755)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := simStore(t, nil)
			mustEnqueue(t, s, "mail", small("a"), small("b"), small("c"))
			_, err := s.Fail(t.Context(), mustClaim(t, s, "mail", queue.ClaimOptions{})[0].Receipt, queue.FailOptions{})
			mustDo(t, err, s.Close())
			lack(d)
			before := d.Tree()
			w := crashtest.Wrap(d.Process(), crashtest.Plan{})
			s, err = OpenReadOnly(t.Context(), simDir, &Options{fs: w})
			mustDo(t, err)
			for _, look := range looksAtAll {
				if err := look.do(t.Context(), s); err != nil {
					t.Errorf("%s: %v", look.name, err)
				}
			}
			st, err := s.Status(t.Context(), queue.StatusOptions{})
			if q := st.Queues["mail"]; err != nil || !st.Settled || q.Pending != 2 || q.Failed != 1 {
				t.Errorf("status: %+v, %v", st, err)
			}
			mustDo(t, s.Close())
			if n := w.Count(append(changing, fsguard.OpSync, fsguard.OpSyncDir)...); n != 0 {
				t.Errorf("%d operations that change something:\n%s", n, w.Trace())
			}
			if d.Tree() != before {
				t.Errorf("changed:\n%s", d.Tree())
			}
		})
	}
}

// With LookAfter a look does not wait for a writer for long: it shows the last
// committed state, unsettled and so never complete, and who is at work.
func TestLookAfter(t *testing.T) {
	d, s := simStore(t, nil)
	mustEnqueue(t, s, "mail", small("a"))
	mustDo(t, s.Ack(t.Context(), mustClaim(t, s, "mail", queue.ClaimOptions{})[0].Receipt))
	look, err := OpenReadOnly(t.Context(), simDir, &Options{fs: d.Process(), LookAfter: time.Millisecond})
	mustDo(t, err)
	defer look.Close()
	// One that has the time waits for the lock, and gets it when it is free.
	patient, err := OpenReadOnly(t.Context(), simDir, &Options{fs: d.Process(), LookAfter: time.Hour})
	mustDo(t, err)
	defer patient.Close()
	if st, err := patient.Status(t.Context(), queue.StatusOptions{}); err != nil || !st.Settled || !st.Complete() {
		t.Errorf("status with the lock free: %+v, %v", st, err)
	}

	held, err := acquire(s.pins, fsguard.Exclusive)
	mustDo(t, err)
	owner := newOwner(namedToken("a writer"), systemClock{}.Now())
	for _, signed := range []bool{false, true} {
		if signed {
			mustDo(t, held.sign(owner))
		}
		st, err := look.Status(t.Context(), queue.StatusOptions{Queues: []string{"mail"}})
		if err != nil || st.Settled || st.Complete() || st.Queues["mail"].Counters.Completed != 1 {
			t.Errorf("status beside a writer: %+v, %v", st, err)
		}
		if got := st.Owner != nil; got != signed || got && st.Owner.Token != owner.Token {
			t.Errorf("owner %+v, want %+v: %v", st.Owner, owner, signed)
		}
		page, err := look.List(t.Context(), "mail", queue.ListOptions{})
		if err != nil || page.Settled {
			t.Errorf("list beside a writer: %+v, %v", page, err)
		}
		r, err := look.Verify(t.Context(), VerifyOptions{})
		if err != nil || r.Settled || !r.OK {
			t.Errorf("verify beside a writer: %+v, %v", r, err)
		}
	}
	// The caller's own patience is the shorter one.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := look.Status(ctx, queue.StatusOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("status with a context that is over: %v", err)
	}
	waits := make(chan queue.Status)
	go func() {
		st, err := patient.Status(t.Context(), queue.StatusOptions{})
		if err != nil {
			t.Error(err)
		}
		waits <- st
	}()
	waitFor(patient, 1)
	held.release()
	if st := <-waits; !st.Complete() {
		t.Errorf("status after the wait: %+v", st)
	}
}

// Under a dead owner's record every look is unsettled, names the owner and is never
// complete; every call that would change something stops. With the consent given
// beforehand, the look still changes nothing where it was opened for looking only.
func TestLookUnderADeadOwner(t *testing.T) {
	dead := queue.Owner{Token: namedToken("dead").String(), PID: 4711, Host: "localhost", Since: time.UnixMilli(1_767_323_045_678).UTC(), Uncertain: true}
	for _, c := range []struct {
		name   string
		record string
		want   queue.Owner
	}{
		{"a record", string(encodeRecord(dead)), dead},
		{"a record that nobody can read", strings.Repeat("x", recordSize), queue.Owner{}},
		{"half a record", string(encodeRecord(dead)[:100]) + strings.Repeat(" ", recordSize-101) + "\n", queue.Owner{}},
	} {
		for _, on := range []OnDeadOwner{Stop, AutoRecover} {
			t.Run(c.name+", "+string(on), func(t *testing.T) {
				d, s := simStore(t, &Options{OnDeadOwner: on})
				mustEnqueue(t, s, "mail", small("b"))
				mustDo(t, s.Ack(t.Context(), mustClaim(t, s, "mail", queue.ClaimOptions{})[0].Receipt))
				d.WriteRaw(inSim(lockFile), []byte(c.record))
				before := d.Tree()
				look, err := OpenReadOnly(t.Context(), simDir, &Options{fs: d.Process()})
				mustDo(t, err)
				defer look.Close()
				stores := []*Store{look}
				if on == Stop {
					stores = append(stores, s)
				}
				for _, s := range stores {
					st, err := s.Status(t.Context(), queue.StatusOptions{})
					if err != nil || st.Settled || st.Complete() || st.Owner == nil || *st.Owner != c.want || st.Queues["mail"].Counters.Completed != 1 {
						t.Errorf("status: %+v, %v", st, err)
					}
					page, err := s.List(t.Context(), "mail", queue.ListOptions{})
					if err != nil || page.Settled {
						t.Errorf("list: %+v, %v", page, err)
					}
				}
				if on == Stop {
					for _, write := range writers {
						if strings.Contains("resolve recover", write.name) {
							continue
						}
						err := write.do(t.Context(), s)
						var stale *StaleLockError
						if !errors.As(err, &stale) || !errors.Is(err, ErrStaleLock) || stale.Owner != c.want {
							t.Errorf("%s: %v", write.name, err)
						}
					}
				}
				if d.Tree() != before {
					t.Errorf("changed:\n%s\nwas\n%s", d.Tree(), before)
				}
				if on == AutoRecover {
					st, err := s.Status(t.Context(), queue.StatusOptions{})
					if err != nil || !st.Complete() || st.Owner != nil {
						t.Errorf("status with consent: %+v, %v", st, err)
					}
				} else if _, err := s.Recover(t.Context()); err != nil {
					t.Error(err)
				}
				if st, err := look.Status(t.Context(), queue.StatusOptions{}); err != nil || !st.Complete() {
					t.Errorf("status after the recovery: %+v, %v", st, err)
				}
			})
		}
	}
}
