//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/sandbox"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// again starts this test binary as another process that runs only the test of t,
// with the environment that is given besides. That test must tell its part by it.
func again(t *testing.T, dir string, env ...string) string {
	t.Helper()
	sandbox.StartsProcess(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("the other process: %v\n%s", err, out)
	}
	return string(out)
}

func TestOptions(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, c := range []struct {
		name  string
		o     *Options
		names string // "": it works
	}{
		{"nil", nil, ""},
		{"zero", &Options{}, ""},
		{"all set", &Options{MaxPayloadBytes: 1, MaxPayloadDepth: 1, MaxStateBytes: 1 << 20, MinFreeBytes: 1, AllowUnsafeRoot: true, OnDeadOwner: AutoRecover, LookAfter: time.Second}, ""},
		{"no floor", &Options{MinFreeBytes: -1}, ""},
		{"the greatest", &Options{MaxPayloadBytes: math.MaxInt, MaxPayloadDepth: math.MaxInt, MaxStateBytes: mostStateBytes, LookAfter: math.MaxInt64}, ""},
		{"payload bytes", &Options{MaxPayloadBytes: -1}, "MaxPayloadBytes"},
		{"payload depth", &Options{MaxPayloadDepth: -1}, "MaxPayloadDepth"},
		{"state bytes", &Options{MaxStateBytes: -1}, "MaxStateBytes"},
		{"state bytes that cannot be doubled", &Options{MaxStateBytes: math.MaxInt64}, "MaxStateBytes"},
		{"look after", &Options{LookAfter: -1}, "LookAfter"},
		{"on dead owner", &Options{OnDeadOwner: "guess"}, `"guess"`},
		{"on dead owner in upper case", &Options{OnDeadOwner: "Stop"}, `"Stop"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(home, strings.ReplaceAll(c.name, " ", "-"))
			s, err := Create(t.Context(), dir, c.o)
			if c.names != "" {
				refusal(t, "create", err, queue.ErrInvalid, c.names)
				if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a refused create left %s: %v", dir, err)
				}
				_, err = Open(t.Context(), dir, c.o)
				refusal(t, "open", err, queue.ErrInvalid, c.names)
				return
			}
			mustDo(t, err)
			defer s.Close()
			mustEnqueue(t, s, "mail", queue.Message{ID: "a", Payload: []byte("1")})
			other, err := Open(t.Context(), dir, c.o)
			mustDo(t, err)
			defer other.Close()
			pendingAre(1)(t, other)
			set, err := other.Settings(t.Context())
			want := Stop
			if c.o != nil && c.o.OnDeadOwner != "" {
				want = c.o.OnDeadOwner
			}
			if err != nil || set.OnDeadOwner != want {
				t.Errorf("settings %+v, %v; want %s", set, err, want)
			}
		})
	}
}

// The options that the caller passed are not the store's to change.
func TestOptionsAreCopied(t *testing.T) {
	o := &Options{}
	s, err := Create(t.Context(), filepath.Join(t.TempDir(), "store"), o)
	mustDo(t, err)
	defer s.Close()
	if *o != (Options{}) {
		t.Errorf("the caller's options became %+v", o)
	}
	o.MaxPayloadBytes = 1
	mustEnqueue(t, s, "mail", small("a"))
}

// IDs that differ only in case are two messages, on every disk: no name of a file is
// made of an ID. What is refused is refused by the name of the rule.
func TestT24Names(t *testing.T) {
	t.Parallel()
	s, dir := newTestStore(t, nil)
	ctx := t.Context()
	accepted := []string{"A", "a", "state", "format", "-", "_x.y-z", "state.json", "payload.json", "lock", strings.Repeat("x", queue.MaxNameBytes)}
	for _, id := range accepted {
		mustEnqueue(t, s, "Mail", queue.Message{ID: id, Payload: fmt.Appendf(nil, "%q", id)})
		mustEnqueue(t, s, "mail", queue.Message{ID: id, Payload: fmt.Appendf(nil, "%q", id+"/lower")})
	}
	for _, id := range accepted {
		for name, want := range map[string]string{"Mail": id, "mail": id + "/lower"} {
			d, err := s.Load(ctx, name, id, queue.LoadOptions{})
			if err != nil || string(d.Payload) != fmt.Sprintf("%q", want) {
				t.Errorf("load %s/%s: %s, %v", name, id, d.Payload, err)
			}
		}
	}
	before := treeOf(t, dir)
	for _, c := range []struct{ id, rule string }{
		{"CON", "device name"}, {"nul.txt", "device name"}, {"Com1.json", "device name"}, {"x.", "end with a dot"}, {".x", "begin with a dot"},
		{"..", "begin with a dot"}, {".", "begin with a dot"}, {"a/b", "A-Z a-z 0-9"}, {"a\\b", "A-Z a-z 0-9"}, {"caf\u00e9", "A-Z a-z 0-9"}, {"cafe\u0301", "A-Z a-z 0-9"},
		{"a b", "A-Z a-z 0-9"}, {"a~b", "A-Z a-z 0-9"}, {"a\x00", "A-Z a-z 0-9"}, {"*", "A-Z a-z 0-9"}, {strings.Repeat("x", queue.MaxNameBytes+1), "at most 128"},
	} {
		_, err := s.Enqueue(ctx, "mail", queue.Message{ID: c.id, Payload: []byte("1")})
		refusal(t, fmt.Sprintf("enqueue %q", c.id), err, queue.ErrInvalidName, c.rule)
		_, err = s.Load(ctx, "mail", c.id, queue.LoadOptions{})
		refusal(t, fmt.Sprintf("load %q", c.id), err, queue.ErrInvalidName, c.rule)
	}
	if _, err := s.Load(ctx, "mail", "", queue.LoadOptions{}); !errors.Is(err, queue.ErrInvalidName) {
		t.Errorf("load without an ID: %v", err)
	}
	for _, c := range []struct{ name, rule string }{
		{"status", "reserved"}, {"a/ack", "reserved"}, {"a/Enqueue", "reserved"}, {"", "empty"}, {"a//b", "empty"}, {"/a", "empty"}, {"a/", "empty"},
		{"../a", "begin with a dot"}, {"a/..", "begin with a dot"}, {"prn/x", "device name"}, {"a:b", "A-Z a-z 0-9"}, {strings.Repeat("x/", 600) + "x", "at most 1024"},
	} {
		_, err := s.Enqueue(ctx, c.name, small("a"))
		refusal(t, fmt.Sprintf("enqueue into %q", c.name), err, queue.ErrInvalidName, c.rule)
		_, err = s.Claim(ctx, c.name, queue.ClaimOptions{})
		refusal(t, fmt.Sprintf("claim from %q", c.name), err, queue.ErrInvalidName, c.rule)
		_, err = s.Status(ctx, queue.StatusOptions{Queues: []string{c.name}})
		refusal(t, fmt.Sprintf("status of %q", c.name), err, queue.ErrInvalidName, c.rule)
	}
	unchanged(t, dir, before)
}

// The store asks nothing of HOME or TMPDIR, and writes nowhere but below its root.
func TestT28Environment(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("HOLDFAST_T28"); dir != "" { // the child
		w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
		s, err := Create(t.Context(), dir, &Options{fs: w, OnDeadOwner: AutoRecover})
		mustDo(t, err)
		mustEnqueue(t, s, "mail", small("a"), small("b"))
		d := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 2})
		mustDo(t, s.Ack(t.Context(), d[0].Receipt))
		plantRecord(t, dir, encodeRecord(queue.Owner{Token: namedToken("dead").String(), Host: "localhost"}))
		mustDo(t, s.Release(t.Context(), d[1].Receipt, queue.ReleaseOptions{}), s.Close())
		for _, e := range w.Events() {
			if e.Op == fsguard.OpOpenRoot && e.Path != dir && e.Path != filepath.Dir(dir) {
				t.Errorf("opened %s", e.Path)
			}
		}
		mustVerify(t, dir)
		return
	}
	for _, c := range []struct {
		name string
		env  func(home string) []string
	}{
		{"no HOME, no TMPDIR", func(string) []string { return []string{"HOME=", "TMPDIR="} }},
		{"TMPDIR missing", func(home string) []string { return []string{"HOME=" + home, "TMPDIR=" + home + "/nowhere"} }},
		{"TMPDIR read-only, on another disk", func(home string) []string { return []string{"HOME=" + home + "/ro", "TMPDIR=/proc"} }},
		{"TMPDIR beside", func(home string) []string { return []string{"HOME=" + home, "TMPDIR=" + home} }},
	} {
		home, parent := t.TempDir(), t.TempDir()
		mustDo(t, os.Mkdir(home+"/ro", 0o500))
		before := treeOf(t, home)
		dir := filepath.Join(parent, "store")
		again(t, home, append(c.env(home), "HOLDFAST_T28="+dir)...)
		unchanged(t, home, before)
		if names, err := os.ReadDir(parent); err != nil || len(names) != 1 {
			t.Errorf("%s: %v stand beside the store, %v", c.name, names, err)
		}
		mustVerify(t, dir)
	}
}

// plantRecord puts a record into a store's lock, as an owner that died leaves it.
func plantRecord(t testing.TB, dir string, record []byte) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, namespaceDir, lockFile), os.O_WRONLY, 0)
	mustDo(t, err)
	_, err = f.WriteAt(record, 0)
	mustDo(t, err, f.Close())
}

// Where the boot id cannot be read, leases go by the wall clock: evidence that is
// missing is not taken for death.
func TestT28NoBootID(t *testing.T) {
	now := &handClock{instant{Wall: time.UnixMilli(1_767_323_045_678)}}
	s, dir := newTestStore(t, &Options{clock: now})
	mustEnqueue(t, s, "mail", small("a"))
	first := mustClaim(t, s, "mail", queue.ClaimOptions{Lease: time.Minute})[0]
	now.Wall = first.Deadline.Add(-time.Millisecond)
	if _, err := s.Load(t.Context(), "mail", "a", queue.LoadOptions{}); !errors.Is(err, queue.ErrLeased) {
		t.Errorf("load before the deadline: %v", err)
	}
	// A process that can read the boot id knows no more about a lease without one.
	seeing := &handClock{instant{Wall: now.Wall, BootID: "11111111-2222-3333-4444-555555555555", Boot: time.Hour}}
	other, err := Open(t.Context(), dir, &Options{clock: seeing})
	mustDo(t, err)
	defer other.Close()
	if _, err := other.Load(t.Context(), "mail", "a", queue.LoadOptions{}); !errors.Is(err, queue.ErrLeased) {
		t.Errorf("load before the deadline, by another: %v", err)
	}
	seeing.Wall = first.Deadline
	second, err := other.Load(t.Context(), "mail", "a", queue.LoadOptions{Lease: time.Minute})
	mustDo(t, err)
	if err := s.Ack(t.Context(), first.Receipt); !errors.Is(err, queue.ErrStale) {
		t.Errorf("ack of the first: %v", err)
	}
	// And the other way round.
	now.Wall = second.Deadline.Add(-time.Millisecond)
	if _, err := s.Load(t.Context(), "mail", "a", queue.LoadOptions{}); !errors.Is(err, queue.ErrLeased) {
		t.Errorf("load before the second deadline: %v", err)
	}
}

// A handClock is moved by hand.
type handClock struct{ instant }

func (c *handClock) Now() instant { return c.instant }

// Whatever the umask and the parent, every directory has 0700 and every file 0600, at
// every instant: never more, and no less once the operation is over.
func TestT32Modes(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("HOLDFAST_T32"); dir != "" { // the child: the umask is the whole process's
		for _, c := range []struct {
			umask  int
			parent fs.FileMode
		}{{0, 0o700}, {0o022, 0o755}, {0o077, 0o700}, {0o777, 0o700}, {0o022, 0o755 | fs.ModeSetgid}, {0o777, 0o755 | fs.ModeSetgid}} {
			under := filepath.Join(dir, fmt.Sprintf("%03o-%s", c.umask, c.parent))
			mustDo(t, os.Mkdir(under, 0o700), os.Chmod(under, c.parent))
			old := unix.Umask(c.umask)
			checkModes(t, filepath.Join(under, "store"))
			unix.Umask(old)
		}
		return
	}
	again(t, "", "HOLDFAST_T32="+t.TempDir())
}

func checkModes(t *testing.T, dir string) {
	look := func(exactly bool) {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			want := fs.FileMode(0o600)
			if e.IsDir() {
				want = 0o700
			}
			if perm := info.Mode().Perm(); perm&^want != 0 || exactly && perm != want {
				t.Errorf("%s has mode %04o, want %04o", path, perm, want)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	// Between any two operations, and before the first. (A plan's Match is asked
	// about every operation; this one never matches.)
	watch := crashtest.FailMatching(func(op fsguard.Op, _ string) bool {
		if slices.Contains(changing, op) || op == fsguard.OpSync {
			look(true)
		}
		return false
	}, nil, 0)
	w := crashtest.Wrap(fsguard.OS(), watch)
	s, err := Create(t.Context(), dir, &Options{fs: w})
	mustDo(t, err)
	for i := range 5 {
		mustEnqueue(t, s, "mail", small(fmt.Sprint(i)))
	}
	for i := range 50 { // two commits each
		if i == 2 { // often enough; the rest is for the many commits
			w.Arm(crashtest.Plan{})
		}
		d := mustClaim(t, s, "mail", queue.ClaimOptions{})
		mustDo(t, s.Release(t.Context(), d[0].Receipt, queue.ReleaseOptions{}))
	}
	mustDo(t, s.Close())
	look(true)
	mustVerify(t, dir)
}
