//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// behind gives a disk with a store of seven messages on which a power loss has taken back
// the exchanges of the last commits: so many messages are in spares alone.
func behind(t *testing.T, commits uint64) *crashtest.Disk {
	t.Helper()
	d, s, _ := onDisk(t)
	for n := range 7 {
		mustEnqueue(t, s, "mail", small(fmt.Sprint(n)))
	}
	last := s.seen.revision
	mustDo(t, s.Close())
	space := simSpace(t, d)
	defer space.Close()
	for n := range commits {
		mustDo(t, space.Exchange(spareName(last-n), stateFile))
	}
	return d
}

// However many exchanges the power took back, the newest state is found, by whoever opens
// the store; the next commit brings it back to its name, and those after it exchange again.
func TestFollow(t *testing.T) {
	for commits := range uint64(spares) {
		t.Run(fmt.Sprint(commits, " behind"), func(t *testing.T) {
			d := behind(t, commits)
			mustStand(t, d, 7)
			w := crashtest.Wrap(d.Process(), crashtest.Plan{})
			s, err := Open(t.Context(), crashDir, crashOptions(w))
			mustDo(t, err)
			defer s.Close()
			o := crashOptions(d.Process())
			looks, err := OpenReadOnly(t.Context(), crashDir, o)
			mustDo(t, err)
			defer looks.Close()
			stands := func(pending uint64) {
				t.Helper()
				for _, s := range []*Store{s, looks, looks} {
					st, err := s.Status(t.Context(), queue.StatusOptions{})
					if err != nil || !st.Settled || st.Queues["mail"].Pending != pending {
						t.Errorf("status %+v, %v; want %d pending", st, err, pending)
					}
				}
				mustStand(t, d, pending)
			}
			stands(7)
			if text := d.ReadRaw(inCrash(stateFile)); !bytes.Contains(text, fmt.Appendf(nil, `"revision":"%d"`, 8-commits)) {
				t.Errorf("looking changed state.json: %s", text)
			}
			for n := range uint64(spares + 2) {
				w.Arm(crashtest.Plan{})
				mustEnqueue(t, s, "mail", small(fmt.Sprint("new", n)))
				wantRenames := 0
				if n == 0 && commits > 0 {
					wantRenames = 1
				}
				if got := w.Count(fsguard.OpRename); got != wantRenames || w.Count(fsguard.OpExchange) != 1-wantRenames {
					t.Errorf("commit %d: %d renames, want %d:\n%s", n, got, wantRenames, w.Trace())
				}
				stands(8 + n)
			}
		})
	}
}

// A writing that the power cut off is no successor, whatever of it came to the disk: the
// state before it stands.
func TestFollowNothingTorn(t *testing.T) {
	d := behind(t, 1)
	at := inCrash(spareName(8))
	whole := d.ReadRaw(at)
	end := len(withoutPadding(whole))
	taken := 0
	for _, spoil := range []func(b []byte, i int) []byte{
		func(b []byte, i int) []byte { return b[:i] },
		func(b []byte, i int) []byte { b[i] ^= 1; return b },
		func(b []byte, i int) []byte { clear(b[i:]); return b },
	} {
		for i := 0; i < len(whole); i += 1 + i/end*509 {
			torn := spoil(bytes.Clone(whole), i)
			if bytes.Equal(withoutPadding(torn), withoutPadding(whole)) {
				taken++
				continue
			}
			d.WriteRaw(at, torn)
			mustStand(t, d, 6)
			if t.Failed() {
				t.Fatalf("torn at %d of %d", i, end)
			}
		}
	}
	if taken == 0 {
		t.Error("not one was cut behind the text")
	}
	d.WriteRaw(at, whole)
	mustStand(t, d, 7)
}

// What was not made after the state that stands is not its successor.
func TestFollowNoStranger(t *testing.T) {
	for name, change := range map[string][2]string{
		"made after another commit": {`"after":"`, `"after":"` + namedToken("x").String() + `","x":"`},
		"of another store":          {`"store":"`, `"store":"` + namedToken("x").String() + `","x":"`},
		"of another revision":       {`"revision":"8"`, `"revision":"9"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := behind(t, 1)
			at := inCrash(spareName(8))
			text := string(withoutPadding(d.ReadRaw(at)))
			changed := strings.Replace(text, change[0], change[1], 1)
			if i := strings.Index(changed, `","x":"`); i > 0 { // the new token in the place of the old one
				changed = changed[:i] + changed[i+len(`","x":"`)+tokenChars:]
			}
			if len(changed) != len(text) || changed == text {
				t.Fatal(changed)
			}
			d.WriteRaw(at, resummed([]byte(changed)))
			mustStand(t, d, 6)
		})
	}
}

// A successor that cannot be read is not taken for one that is not there; nor is one of a
// later program, nor one that is whole and makes no sense.
func TestFollowRefuses(t *testing.T) {
	t.Run("EIO", func(t *testing.T) {
		for _, op := range []fsguard.Op{fsguard.OpOpen, fsguard.OpRead} {
			for n := 1; n <= 2; n++ {
				d := behind(t, 1)
				plan := crashtest.FailMatching(func(is fsguard.Op, path string) bool { return is == op && isSparePath(path) }, syscall.EIO, n)
				plan.Reads = true
				w := crashtest.Wrap(d.Process(), plan)
				s, err := Open(t.Context(), crashDir, crashOptions(w))
				mustDo(t, err)
				defer s.Close()
				for range n {
					_, err = s.Status(t.Context(), queue.StatusOptions{})
					refusal(t, fmt.Sprint("status at ", op), err, syscall.EIO, spareName(8))
				}
				st, err := s.Status(t.Context(), queue.StatusOptions{})
				if err != nil || st.Queues["mail"].Pending != 7 {
					t.Errorf("the next call: %+v, %v", st, err)
				}
			}
		}
	})
	for name, put := range map[string]func(d *crashtest.Disk, at string){
		"a directory": func(d *crashtest.Disk, at string) { d.MkdirAll(at) },
		"a symlink":   func(d *crashtest.Disk, at string) { d.Symlink(stateFile, at) },
	} {
		t.Run(name, func(t *testing.T) {
			d := behind(t, 1)
			d.Remove(inCrash(spareName(8)))
			put(d, inCrash(spareName(8)))
			s, err := Open(t.Context(), crashDir, crashOptions(d.Process()))
			mustDo(t, err)
			defer s.Close()
			_, err = s.Status(t.Context(), queue.StatusOptions{})
			refusal(t, "status", err, ErrUnsafe, spareName(8))
		})
	}
	for _, tt := range []struct {
		name, old, with string
		want            error
	}{
		{"a later program's", `"spares"]`, `"spares","zzz"]`, ErrVersion},
		{"nonsense", `"fence":0`, `"fence":x`, ErrCorrupt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := behind(t, 1)
			at := inCrash(spareName(8))
			text := bytes.Replace(d.ReadRaw(at), []byte(tt.old), []byte(tt.with), 1)
			d.WriteRaw(at, resummed(text))
			s, err := Open(t.Context(), crashDir, crashOptions(d.Process()))
			mustDo(t, err)
			defer s.Close()
			_, err = s.Status(t.Context(), queue.StatusOptions{})
			refusal(t, "status", err, tt.want, spareName(8))
		})
	}
}

// Under the record of somebody who did not finish, a recovery by who opens the store anew
// publishes the newest state.
func TestRecoverFollows(t *testing.T) {
	d := behind(t, 2)
	d.WriteRaw(inCrash(lockFile), encodeRecord(newOwner(namedToken("dead"), crashClock.at)))
	s, err := Open(t.Context(), crashDir, crashOptions(d.Process()))
	mustDo(t, err)
	defer s.Close()
	refusal(t, "enqueue", second(s.Enqueue(t.Context(), "mail", small("x"))), ErrStaleLock, "")
	st, err := s.Status(t.Context(), queue.StatusOptions{Queues: []string{"mail"}})
	if err != nil || st.Settled || st.Revision != 8 || st.Queues["mail"].Pending != 7 {
		t.Errorf("before: %+v, %v", st, err)
	}
	mustDo(t, second(s.Recover(t.Context())))
	mustStand(t, d, 7)
	if text := d.ReadRaw(inCrash(stateFile)); !bytes.Contains(text, []byte(`"revision":"9"`)) {
		t.Errorf("state.json: %s", text)
	}
}

// Where a collection's sync of the namespace fails, the names of the commits before are in
// doubt: that is left for every process to see, and this one's next call resolves it.
func TestCollectLeavesDoubt(t *testing.T) {
	d, s, w := collectScene(t, withGarbage)
	w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == fsguard.OpSyncDir && path == namespaceDir }, syscall.EIO, 1))
	_, err := s.Collect(t.Context(), CollectOptions{})
	refusal(t, "collect", err, syscall.EIO, "")
	other := beside(t, d)
	refusal(t, "enqueue by another", second(other.Enqueue(t.Context(), "mail", small("x"))), ErrStaleLock, "")
	w.Arm(crashtest.Plan{})
	mustEnqueue(t, s, "mail", small("x"))
	if got := w.Count(fsguard.OpRename); got == 0 {
		t.Errorf("no fresh file took its name:\n%s", w.Trace())
	}
	mustEnqueue(t, other, "mail", small("y"))
	report, err := other.Verify(t.Context(), VerifyOptions{})
	if err != nil || !report.OK {
		t.Errorf("verify %+v, %v", report, err)
	}
}

// After a recovery each spare has its turn before an exchange goes unsynced again.
func TestNamesAreSyncedAfterARecovery(t *testing.T) {
	d, s, w := onDisk(t)
	mustEnqueue(t, s, "mail", small("a"))
	d.WriteRaw(inCrash(lockFile), encodeRecord(newOwner(namedToken("dead"), crashClock.at)))
	mustDo(t, second(s.Recover(t.Context())))
	for n := range spares + 3 {
		w.Arm(crashtest.Plan{})
		mustDo(t, s.SetFailedNamespace(t.Context(), "mail", fmt.Sprint("x", n)))
		groups := w.SyncGroups()
		if last := groups[len(groups)-1]; (len(groups) == 2 && fmt.Sprint(last) == fmt.Sprint([]string{namespaceDir})) != (n < spares) {
			t.Errorf("commit %d: %v", n, groups)
		}
	}
}

// A commit that fails before its exchange is taken back, also where all of it has come to
// the disk; where that fails too, it is uncertain.
func TestTakenBack(t *testing.T) {
	fails := func(failing ...fsguard.Op) crashtest.Plan {
		return crashtest.FailMatching(func(op fsguard.Op, path string) bool {
			return len(failing) > 0 && op == failing[0] && (isSparePath(path) || op == fsguard.OpSyncDir && path == namespaceDir || isCommitPoint(op, path)) &&
				func() bool { failing = failing[1:]; return true }()
		}, syscall.EIO, len(failing))
	}
	for _, tt := range []struct {
		name      string
		fails     []fsguard.Op
		uncertain bool
	}{
		{"write", []fsguard.Op{fsguard.OpWrite}, false},
		{"sync", []fsguard.Op{fsguard.OpSyncData}, false},
		{"exchange", []fsguard.Op{fsguard.OpExchange}, false},
		{"sync and removal", []fsguard.Op{fsguard.OpSyncData, fsguard.OpRemove}, true},
		{"sync and the sync of the removal", []fsguard.Op{fsguard.OpSyncData, fsguard.OpSyncDir}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, s, w := onDisk(t)
			for _, id := range []string{"a", "b", "c"} { // the next is revision 5
				mustEnqueue(t, s, "mail", small(id))
			}
			w.Arm(fails(tt.fails...))
			err := second(s.Enqueue(t.Context(), "mail", small("d")))
			if !errors.Is(err, syscall.EIO) || errors.Is(err, queue.ErrUncertain) != tt.uncertain {
				t.Fatalf("%v; uncertain: want %v", err, tt.uncertain)
			}
			if !tt.uncertain {
				for image := range d.Images(100, 1) { // the record may be there, or not
					s, err := Open(t.Context(), crashDir, crashOptions(image.Process()))
					mustDo(t, err)
					st, err := s.Status(t.Context(), queue.StatusOptions{})
					if err != nil || st.Queues["mail"].Pending != 3 {
						t.Fatalf("after a power loss: %+v, %v", st, err)
					}
					mustDo(t, s.Close())
				}
			}
			w.Arm(crashtest.Plan{})
			mustEnqueue(t, s, "mail", small("e"))
			mustStand(t, d, 4)
		})
	}
}

// After a recovery the turn of a spare may be another's that exchanges nothing: what its name
// means on the disk would be unknown still when its turn comes again, and what is committed
// into it then could be lost.
func TestTurnsAfterARecoveryWithoutExchange(t *testing.T) {
	for _, how := range []string{"replaced", "refused"} {
		t.Run(how, func(t *testing.T) {
			d, s, w := onDisk(t)
			for n := range 5 {
				mustEnqueue(t, s, "mail", small(fmt.Sprint(n)))
			}
			for !syncsNames(s.seen.revision + 1) {
				mustEnqueue(t, s, "mail", small(fmt.Sprint("x", s.seen.revision)))
			}
			w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool { return op == fsguard.OpSyncDir && path == namespaceDir }, syscall.EIO, 1))
			refusal(t, "enqueue", second(s.Enqueue(t.Context(), "mail", small("f"))), queue.ErrUncertain, "")
			w.Arm(crashtest.Plan{})
			mustDo(t, second(s.Recover(t.Context())))
			if how == "refused" {
				d.SetExchangeError(syscall.EPERM)
			}
			for n := range spares {
				o := crashOptions(d.Process())
				o.plain = how == "replaced"
				other, err := Open(t.Context(), crashDir, o)
				mustDo(t, err)
				mustEnqueue(t, other, "mail", small(fmt.Sprint("p", n)))
				mustDo(t, other.Close())
			}
			d.SetExchangeError(nil)
			for n := range 2 * spares {
				mustEnqueue(t, s, "mail", small(fmt.Sprint("g", n)))
				revision := s.seen.revision
				for image := range d.Images(50, 1) {
					p := image.Process()
					s, err := Open(t.Context(), crashDir, crashOptions(p))
					mustDo(t, err)
					st, err := s.Status(t.Context(), queue.StatusOptions{})
					if err != nil || st.Revision != revision {
						t.Fatalf("after a power loss: revision %d, %v; want %d:\n%s", st.Revision, err, revision, image.Story())
					}
					mustDo(t, s.Close())
					p.Kill()
				}
			}
		})
	}
}

// A look without the lock shows the newest state too, and no damage where a collection has
// removed what only the older one names.
func TestGlanceFollows(t *testing.T) {
	d, s, _ := onDisk(t)
	mustEnqueue(t, s, "mail", small("a"))
	mustEnqueue(t, s, "mail", small("b"))
	held := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 1})
	mustDo(t, s.Ack(t.Context(), held[0].Receipt))
	mustEnqueue(t, s, "mail", small("c"))
	last := s.seen.revision
	mustDo(t, s.Close())
	space := simSpace(t, d)
	mustDo(t, space.Exchange(spareName(last), stateFile), space.Exchange(spareName(last-1), stateFile), space.Close())
	o := crashOptions(d.Process())
	o.LookAfter = time.Millisecond
	looks, err := OpenReadOnly(t.Context(), crashDir, o)
	mustDo(t, err)
	defer looks.Close()
	mustDo(t, second(beside(t, d).Collect(t.Context(), CollectOptions{})))
	space = simSpace(t, d)
	defer space.Close()
	lock, err := space.OpenWrite(lockFile)
	mustDo(t, err, lock.Lock(fsguard.Exclusive))
	defer lock.Close()
	st, err := looks.Status(t.Context(), queue.StatusOptions{})
	if err != nil || st.Settled || st.Revision != last || st.Queues["mail"].Pending != 2 {
		t.Errorf("status %+v, %v", st, err)
	}
	report, err := looks.Verify(t.Context(), VerifyOptions{})
	if err != nil || !report.OK || report.Revision != last {
		t.Errorf("verify %+v, %v", report, err)
	}
}
