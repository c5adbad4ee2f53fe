//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// deepIn gives a closed store in a directory with blocks of two and n messages in mail,
// and the runs that they lie in.
func deepIn(t *testing.T, n int) (dir string, runs []*run) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	o := &Options{block: 2, clock: &handClock{rigStart}, holders: &holderSet{}}
	s, err := Create(t.Context(), dir, o)
	mustDo(t, err)
	for _, m := range smalls(n) {
		mustEnqueue(t, s, "mail", m)
	}
	runs = s.cached.st.queue("mail").runs
	mustDo(t, s.Close())
	return dir, runs
}

// another opens the store as a process that has read no run yet.
func another(t *testing.T, dir string, files fsguard.FS) *Store {
	t.Helper()
	o := &Options{block: 2, clock: &handClock{rigStart}, holders: &holderSet{}, fs: files}
	s, err := Open(t.Context(), dir, o)
	mustDo(t, err)
	t.Cleanup(func() {
		mustDo(t, s.Close())
		o.holders.die()
	})
	return s
}

// A run that is not as its reference says stops what needs it, named in the error, and
// nothing else; nothing moves, and verify tells.
func TestRunDamage(t *testing.T) {
	rewrite := func(change func(text []byte) []byte) func(t *testing.T, at string, other string) {
		return func(t *testing.T, at, _ string) { mustDo(t, os.WriteFile(at, change(mustRead(t, at)), 0o600)) }
	}
	for _, c := range []struct {
		name   string
		spoil  func(t *testing.T, at, other string)
		reason string
		is     error
	}{
		{"missing", func(t *testing.T, at, _ string) { mustDo(t, os.Remove(at)) }, "missing: messages are in it", ErrCorrupt},
		{"its directory missing", func(t *testing.T, at, _ string) { mustDo(t, os.RemoveAll(filepath.Dir(at))) }, "missing", ErrCorrupt},
		{"cut", rewrite(func(text []byte) []byte { return text[:len(text)/2] }), "bytes with checksum", ErrCorrupt},
		{"empty", rewrite(func(text []byte) []byte { return nil }), "", ErrCorrupt},
		{"longer", rewrite(func(text []byte) []byte { return append(text, '\n') }), "bytes with checksum", ErrCorrupt},
		{"one bit flipped", rewrite(func(text []byte) []byte { text[len(text)/2] ^= 4; return text }), "bytes with checksum", ErrCorrupt},
		{"one bit of the filter flipped", rewrite(func(text []byte) []byte { text[len(filterBegin)] ^= 1; return text }), "checksum", ErrCorrupt},
		{"another run's text", func(t *testing.T, at, other string) { mustDo(t, os.WriteFile(at, mustRead(t, other), 0o600)) }, "with checksum", ErrCorrupt},
		{"a symlink", func(t *testing.T, at, other string) { mustDo(t, os.Remove(at), os.Symlink(other, at)) }, "symbolic link", ErrUnsafe},
		{"its directory a symlink", func(t *testing.T, at, other string) {
			mustDo(t, os.Rename(filepath.Dir(at), filepath.Dir(at)+"-moved"), os.Symlink(filepath.Dir(at)+"-moved", filepath.Dir(at)))
		}, "symbolic link", ErrUnsafe},
		{"two links", func(t *testing.T, at, _ string) { mustDo(t, os.Link(at, at+"-too")) }, "more than one hard link", ErrUnsafe},
		{"a directory", func(t *testing.T, at, _ string) { mustDo(t, os.Remove(at), os.Mkdir(at, 0o700)) }, "not of the expected type", ErrUnsafe},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, runs := deepIn(t, 13)
			if len(runs) != 3 {
				t.Fatalf("%d runs", len(runs))
			}
			at := func(r *run) string { return filepath.Join(dir, namespaceDir, filepath.FromSlash(runPath(r.name))) }
			c.spoil(t, at(runs[1]), at(runs[2]))
			damagedRun(t, dir, runs[1], c.reason, c.is)
		})
	}
}

// damagedRun checks a store of thirteen messages, whose second run, with m005 to m007, is
// damaged.
func damagedRun(t *testing.T, dir string, damaged *run, reason string, is error) {
	ctx := t.Context()
	s := another(t, dir, nil)
	refuses := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, is) || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), runPath(damaged.name)) {
			t.Errorf("%s: %v, want %v that names %s and says %q", what, err, is, runPath(damaged.name), reason)
		}
	}
	before := mustRead(t, filepath.Join(dir, namespaceDir, stateFile))
	_, err := s.Peek(ctx, "mail", 6)
	refuses("peek", err)
	_, err = s.List(ctx, "mail", queue.ListOptions{})
	refuses("list", err)
	_, err = s.Show(ctx, "mail", "m006")
	refuses("show", err)
	_, err = s.Load(ctx, "mail", "m006", queue.LoadOptions{})
	refuses("load", err)
	_, err = s.Enqueue(ctx, "mail", small("m006"))
	refuses("enqueue of a member", err)
	_, err = s.Claim(ctx, "mail", queue.ClaimOptions{Max: 6})
	refuses("a claim that comes to it", err)
	if now := mustRead(t, filepath.Join(dir, namespaceDir, stateFile)); string(now) != string(before) {
		t.Errorf("something moved:\n%s", now)
	}
	report, err := s.Verify(ctx, VerifyOptions{})
	if err != nil || report.OK || len(report.Faults) != 1 || report.Orphans != -1 || report.Runs != 3 || report.Messages != 10 {
		t.Fatalf("verify: %+v, %v", report, err)
	}
	if f := report.Faults[0]; f.Code != "run" || f.Queue != "mail" || f.File != runPath(damaged.name) || !strings.Contains(f.Reason, reason) {
		t.Errorf("the fault: %+v", f)
	}

	// All else goes on.
	status, err := s.Status(ctx, queue.StatusOptions{Orphans: true})
	if g := status.Queues["mail"]; err != nil || g.Pending != 13 || g.Ready != 13 || status.Orphans != -1 || status.OrphanBytes != -1 {
		t.Errorf("status: %+v, %v", status, err)
	}
	mustEnqueue(t, s, "mail", queue.Message{Payload: []byte(`"an ID of the store's"`)})
	mustEnqueue(t, s, "other", small("m006"))
	got := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 5})
	if want := idsOfSmalls(0, 5); !slices.Equal(idsOf(got), want) {
		t.Errorf("claimed %v, want %v", idsOf(got), want)
	}
	for _, d := range got {
		mustDo(t, s.Ack(ctx, d.Receipt))
	}
	_, err = s.Claim(ctx, "mail", queue.ClaimOptions{})
	refuses("a claim that would pass it over", err)
	if n, err := s.Clear(ctx, "mail", queue.ClearOptions{}); err != nil || n != 9 {
		t.Errorf("cleared %d, %v; want 9", n, err)
	}
	mustClaim(t, s, "other", queue.ClaimOptions{WithoutHolder: true})
	mustVerify(t, dir)
}

// What a run and the state cannot both say is met when the run's member would come back.
func TestRunContradictsState(t *testing.T) {
	for _, c := range []struct {
		name   string
		plant  func(st *state, member *slot)
		reason string
	}{
		{"its ID is inline too", func(st *state, member *slot) {
			inline := *member.pending
			inline.gen.index++
			inline.seq = st.queue("mail").next
			inline.object = namedToken("elsewhere")
			st.queue("mail").next++
			st.queue("mail").put(member.id, &inline, nil)
		}, "ID \"m003\" is in state.json too"},
		{"its sequence", func(st *state, member *slot) {
			inline := *member.pending
			inline.gen.index++
			inline.object = namedToken("elsewhere")
			st.queue("mail").put("twin", &inline, nil)
		}, "sequence 3 twice"},
		{"its generation", func(st *state, member *slot) {
			inline := *member.pending
			inline.object = namedToken("elsewhere")
			inline.seq = st.queue("mail").next
			st.queue("mail").next++
			st.queue("mail").put("twin", &inline, nil)
		}, "generation"},
		{"its payload", func(st *state, member *slot) {
			inline := *member.pending
			inline.gen.index++
			inline.seq = st.queue("mail").next
			st.queue("mail").next++
			st.queue("mail").put("twin", &inline, nil)
		}, "of object"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, runs := deepIn(t, 13)
			file := filepath.Join(dir, namespaceDir, stateFile)
			s := another(t, dir, nil)
			text := mustRead(t, file)
			st, err := decodeState(text, stateFile, s.id)
			mustDo(t, err)
			body, err := s.runs.members(runs[0])
			mustDo(t, err)
			i, ok := body.find("m003")
			if !ok {
				t.Fatal("m003 is in another run")
			}
			c.plant(st, body.slots[i])
			mustDo(t, os.WriteFile(file, encodeState(nil, st), 0o600))

			s = another(t, dir, nil)
			_, err = s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 4})
			refused(t, unwrapCorrupt(err), runPath(runs[0].name), c.reason, ErrCorrupt)
			report, err := s.Verify(t.Context(), VerifyOptions{})
			if err != nil || report.OK || !slices.ContainsFunc(report.Faults, func(f Fault) bool { return f.Code == "run" && f.File == stateFile }) {
				t.Errorf("verify: %+v, %v", report, err)
			}
			if after := mustRead(t, file); string(after) != string(encodeState(nil, st)) {
				t.Error("a refused claim changed the state")
			}
		})
	}
}

func unwrapCorrupt(err error) error {
	var c *CorruptError
	if errors.As(err, &c) {
		return c
	}
	return err
}

// An error of the disk at any operation of reading a run is returned as what it is: the
// call may be made again and works, and nothing has moved. That there is no such file is
// another matter: the state says that there is.
func TestRunReadFaults(t *testing.T) {
	ofRun := func(r *run) func(op fsguard.Op, path string) bool {
		return func(op fsguard.Op, path string) bool {
			return strings.Contains(path, r.name.String()) && op != fsguard.OpClose
		}
	}
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.EMFILE, syscall.EACCES, syscall.ENOENT} {
		t.Run(errno.Error(), func(t *testing.T) {
			dir, runs := deepIn(t, 13)
			points := 0
			for ; ; points++ {
				s, w := countedIn(t, dir)
				before := mustRead(t, filepath.Join(dir, namespaceDir, stateFile))
				met := 0
				w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool {
					if !ofRun(runs[0])(op, path) {
						return false
					}
					met++
					return met == points+1
				}, errno, 1))
				_, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 4, Lease: queue.NoDeadline, WithoutHolder: true})
				if !w.Fired() {
					mustDo(t, err)
					break
				}
				corrupt := errno == syscall.ENOENT && errors.Is(err, ErrCorrupt)
				if errno != syscall.ENOENT && (!errors.Is(err, errno) || errors.Is(err, ErrCorrupt)) || errno == syscall.ENOENT && !corrupt && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("operation %d: %v, want %v", points, err, errno)
				}
				if !strings.Contains(fmt.Sprint(err), runPath(runs[0].name)) {
					t.Errorf("operation %d: %v does not name the run", points, err)
				}
				if after := mustRead(t, filepath.Join(dir, namespaceDir, stateFile)); string(after) != string(before) {
					t.Errorf("operation %d: something moved", points)
				}
				w.Arm(crashtest.Plan{})
				if e, err := s.Peek(t.Context(), "mail", 4); err != nil || len(e) != 4 {
					t.Errorf("operation %d, the next try: %d, %v", points, len(e), err)
				}
			}
			if points < 3 {
				t.Errorf("a run is read in %d operations: the test shows little", points)
			}
		})
	}
}

// countedIn is another whose operations pass a wrapper.
func countedIn(t *testing.T, dir string) (*Store, *crashtest.Wrapper) {
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s := another(t, dir, w)
	waitIdle(s)
	return s, w
}
