//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// simStore gives a disk in memory with a store in /data/store, and the process that
// made it.
func simStore(t testing.TB, o *Options) (*crashtest.Disk, *Store) {
	t.Helper()
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	return d, simCreate(t, d, o)
}

func simCreate(t testing.TB, d *crashtest.Disk, o *Options) *Store {
	t.Helper()
	with := Options{}
	if o != nil {
		with = *o
	}
	with.fs = d.Process()
	s, err := Create(context.Background(), simDir, &with)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

const simDir = "/data/store"

func inSim(names ...string) string {
	return filepath.Join(append([]string{simDir, namespaceDir}, names...)...)
}

func mustEnqueue(t testing.TB, s *Store, name string, ms ...queue.Message) {
	t.Helper()
	if _, err := s.EnqueueBatch(t.Context(), name, ms); err != nil {
		t.Fatal(err)
	}
}

func mustClaim(t testing.TB, s *Store, name string, o queue.ClaimOptions) []queue.Delivery {
	t.Helper()
	c, err := s.Claim(t.Context(), name, o)
	if err != nil || len(c.Damaged) > 0 {
		t.Fatalf("claim: %+v, %v", c, err)
	}
	return c.Deliveries
}

// What Create finds in the place decides: it makes a store or touches nothing.
func TestCreateWhere(t *testing.T) {
	t.Parallel()
	inside := func(names ...string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			for _, name := range names {
				if strings.HasSuffix(name, "/") {
					mustDo(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
				} else {
					mustDo(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600))
				}
			}
		}
	}
	mode := func(perm fs.FileMode) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { mustDo(t, os.Mkdir(dir, 0o700), os.Chmod(dir, perm)) }
	}
	store := func(t *testing.T, dir string) {
		s, err := Create(t.Context(), dir, nil)
		mustDo(t, err)
		s.Close()
	}
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
		o       Options
		want    error
		names   string // stands in the error
	}{
		{name: "nothing", prepare: func(*testing.T, string) {}},
		{name: "an empty directory", prepare: inside("./")},
		{name: "an empty directory that others may read", prepare: mode(0o755)},
		{name: "a directory by a symlink", prepare: func(t *testing.T, dir string) {
			mustDo(t, os.Mkdir(dir+"-real", 0o700), os.Symlink(dir+"-real", dir))
		}},
		{name: "no parent", prepare: func(t *testing.T, dir string) { mustDo(t, os.Remove(filepath.Dir(dir))) }, want: fs.ErrNotExist, names: "home"},
		{name: "a file", prepare: func(t *testing.T, dir string) { mustDo(t, os.WriteFile(dir, nil, 0o600)) }, want: ErrUnsafe, names: "store"},
		{name: "a dangling symlink", prepare: func(t *testing.T, dir string) { mustDo(t, os.Symlink("nowhere", dir)) }, want: fs.ErrNotExist, names: "store"},
		{name: "a FIFO", prepare: func(t *testing.T, dir string) { mustDo(t, unix.Mkfifo(dir, 0o600)) }, want: ErrUnsafe, names: "store"},
		{name: "a file beside", prepare: inside("notes.txt"), want: ErrNotEmpty, names: `"notes.txt"`},
		{name: "a hidden file beside", prepare: inside(".nomedia"), want: ErrNotEmpty, names: `".nomedia"`},
		{name: "a directory beside", prepare: inside("lost+found/"), want: ErrNotEmpty, names: `"lost+found"`},
		{name: "a store", prepare: store, want: ErrExists, names: "store"},
		{name: "a store and a file", prepare: func(t *testing.T, dir string) { store(t, dir); inside("zebra")(t, dir) }, want: ErrExists, names: "store"},
		{name: "an empty namespace", prepare: inside(namespaceDir + "/"), want: ErrInterruptedInit, names: "store"},
		{name: "a namespace of somebody's", prepare: inside(namespaceDir + "/notes.txt"), want: ErrCorrupt, names: "notes.txt"},
		{name: "a namespace with an object", prepare: inside(namespaceDir + "/objects/a/"), want: ErrCorrupt, names: "objects/ holds a"},
		{name: "a file as the namespace", prepare: inside(namespaceDir), want: ErrUnsafe, names: namespaceDir},
		{name: "a symlink as the namespace", prepare: func(t *testing.T, dir string) {
			store(t, dir+"-other")
			mustDo(t, os.Mkdir(dir, 0o700), os.Symlink(filepath.Join(dir+"-other", namespaceDir), filepath.Join(dir, namespaceDir)))
		}, want: ErrUnsafe, names: namespaceDir},
		{name: "a directory that the world may write", prepare: mode(0o707), want: ErrUnsafe, names: "0707"},
		{name: "a directory that the group may write", prepare: mode(0o770), want: ErrUnsafe, names: "0770"},
		{name: "a directory as /tmp is", prepare: mode(0o777 | fs.ModeSticky), want: ErrUnsafe, names: "0777"},
		{name: "a directory that others may write, allowed", prepare: mode(0o777), o: Options{AllowUnsafeRoot: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), "home")
			dir := filepath.Join(home, "store")
			mustDo(t, os.Mkdir(home, 0o700))
			c.prepare(t, dir)
			before := treeOf(t, filepath.Dir(home))
			o, w := watched(t)
			o.AllowUnsafeRoot = c.o.AllowUnsafeRoot
			s, err := Create(t.Context(), dir, o)
			if c.want != nil {
				refusal(t, "create", err, c.want, c.names)
				if errors.Is(c.want, ErrInterruptedInit) { // what is missing is for ResumeCreate to make
					return
				}
				unchanged(t, filepath.Dir(home), before)
				if _, err := ResumeCreate(t.Context(), dir, o); err == nil {
					t.Error("resume: no error")
				}
				unchanged(t, filepath.Dir(home), before)
				if !strings.HasPrefix(c.name, "a store") {
					_, err := OpenOrCreate(t.Context(), dir, o)
					refusal(t, "open or create", err, c.want, c.names)
				}
				unchanged(t, filepath.Dir(home), before)
				if open := w.Open(); len(open) > 0 {
					t.Errorf("left open: %q", open)
				}
				return
			}
			mustDo(t, err)
			mustEnqueue(t, s, "mail", small("a"))
			mustDo(t, s.Close())
			s, err = Open(t.Context(), dir, o)
			mustDo(t, err)
			pendingAre(1)(t, s)
			mustDo(t, s.Close())
			if open := w.Open(); len(open) > 0 {
				t.Errorf("left open: %q", open)
			}
		})
	}
}

// A path of symlinks leads to the store as the straight one does: both are one store.
func TestTwoSpellings(t *testing.T) {
	dir := t.TempDir()
	mustDo(t, os.Mkdir(filepath.Join(dir, "user"), 0o700), os.Symlink("user", filepath.Join(dir, "data")))
	a, err := Create(t.Context(), filepath.Join(dir, "data", "store"), nil)
	mustDo(t, err)
	defer a.Close()
	b, err := Open(t.Context(), filepath.Join(dir, "user", "store"), nil)
	mustDo(t, err)
	defer b.Close()
	mustEnqueue(t, a, "mail", small("a"))
	mustEnqueue(t, b, "mail", small("b"))
	pendingAre(2)(t, a)
	if _, err := Create(t.Context(), filepath.Join(dir, "user", "store"), nil); !errors.Is(err, ErrExists) {
		t.Errorf("create by the other spelling: %v", err)
	}
}

func TestRootOfAnotherUser(t *testing.T) {
	for _, part := range []string{"", namespaceDir} {
		d, s := simStore(t, nil)
		mustEnqueue(t, s, "mail", small("a"))
		s.Close()
		d.Chown(filepath.Join(simDir, part), 4711)
		d.Chmod(filepath.Join(simDir, part), 0o755)
		before := d.Tree()
		names := filepath.Base(filepath.Join(simDir, part))
		_, err := Open(t.Context(), simDir, &Options{fs: d.Process()})
		refusal(t, "open", err, ErrUnsafe, names)
		if part == "" {
			_, err = Create(t.Context(), simDir, &Options{fs: d.Process()})
			refusal(t, "create", err, ErrUnsafe, names)
			_, err = ResumeCreate(t.Context(), simDir, &Options{fs: d.Process()})
			refusal(t, "resume", err, ErrUnsafe, names)
		}
		if d.Tree() != before {
			t.Errorf("changed:\n%s", d.Tree())
		}
	}
}

// Of racing Creates one wins, the others meet ErrExists; racing OpenOrCreates all get
// the one store.
func TestRacingCreates(t *testing.T) {
	t.Parallel()
	for range 100 {
		d := crashtest.NewDisk()
		d.MkdirAll("/data")
		raceToCreate(t, func() fsguard.FS { return d.Process() }, simDir)
	}
	for range 5 {
		dir := filepath.Join(t.TempDir(), "store")
		raceToCreate(t, fsguard.OS, dir)
		mustVerify(t, dir)
		mustVerify(t, dir+"-2")
	}
}

func raceToCreate(t *testing.T, fsys func() fsguard.FS, dir string) {
	t.Helper()
	race := func(dir string, way func(context.Context, string, *Options) (*Store, error)) (ids []string, errs []error) {
		const racers = 4
		ids, errs = make([]string, racers), make([]error, racers)
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range racers {
			wg.Go(func() {
				<-start
				s, err := way(t.Context(), dir, &Options{fs: fsys()})
				if errs[i] = err; err == nil {
					ids[i] = s.ID()
					s.Close()
				}
			})
		}
		close(start)
		wg.Wait()
		return ids, errs
	}
	won := 0
	_, errs := race(dir, Create)
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, ErrExists):
			t.Errorf("create: %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d creates won", won)
	}
	ids, errs := race(dir+"-2", OpenOrCreate)
	for i, err := range errs {
		if err != nil || ids[i] != ids[0] {
			t.Errorf("open or create: %v; stores %q", err, ids)
		}
	}
}

// Whatever instant a Create is cut off at, the next process is told so, or that there
// is no store, or finds a whole one; and ResumeCreate, cut off at any instant too and
// called again, makes it whole.
func TestResumeAfterEveryPrefix(t *testing.T) {
	t.Parallel()
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	ops := cutOff(d, Create, crashtest.Plan{Mode: crashtest.StoppingBefore})
	found := map[string]int{}
	step := 1
	if raceDetector() {
		step = 3 // a creation is one goroutine's: all are tried without it
	}
	for n := 1; n <= ops; n += step {
		for _, mode := range []crashtest.Mode{crashtest.StoppingBefore, crashtest.StoppingAfter} {
			d := crashtest.NewDisk()
			d.MkdirAll("/data")
			cutOff(d, Create, crashtest.Plan{Mode: mode, N: n})
			at := fmt.Sprintf("create cut off at %d of %d", n, ops)
			state := whatIsThere(t, d, at)
			found[state]++
			resumed(t, d.Clone(), at, state)
			if state != "interrupted" || mode == crashtest.StoppingBefore {
				continue
			}
			resumeOps := cutOff(d.Clone(), ResumeCreate, crashtest.Plan{Mode: crashtest.StoppingBefore})
			for m := 1; m <= resumeOps; m += step {
				d := d.Clone()
				cutOff(d, ResumeCreate, crashtest.Plan{Mode: crashtest.StoppingAfter, N: m})
				at := fmt.Sprintf("%s, resume at %d of %d", at, m, resumeOps)
				resumed(t, d, at, whatIsThere(t, d, at))
			}
		}
	}
	t.Logf("%d operations; found: %v", ops, found)
	for _, state := range []string{"nothing", "interrupted", "whole"} {
		if found[state] == 0 {
			t.Errorf("no prefix was found as %s", state)
		}
	}
}

// cutOff lets a process die in a creation and counts what it did until then.
func cutOff(d *crashtest.Disk, way func(context.Context, string, *Options) (*Store, error), plan crashtest.Plan) int {
	p := d.Process()
	plan.Spell, plan.OnStop = true, p.Kill
	w := crashtest.Wrap(p, plan)
	if s, err := way(context.Background(), simDir, &Options{fs: w}); err == nil {
		s.Close()
	}
	p.Kill()
	return w.Ops()
}

// whatIsThere asks the next process.
func whatIsThere(t *testing.T, d *crashtest.Disk, at string) string {
	t.Helper()
	before := d.Tree()
	p := d.Process()
	s, err := Open(t.Context(), simDir, &Options{fs: p})
	state := ""
	switch {
	case err == nil:
		state = "whole"
		s.Close()
	case errors.Is(err, ErrNoStore):
		state = "nothing"
	case errors.Is(err, ErrInterruptedInit):
		state = "interrupted"
	default:
		t.Errorf("%s: open: %v\n%s", at, err, before)
	}
	_, err = OpenReadOnly(t.Context(), simDir, &Options{fs: p})
	if (err == nil) != (state == "whole") {
		t.Errorf("%s: %s, but open for looking: %v", at, state, err)
	}
	if d.Tree() != before {
		t.Errorf("%s: opening changed\n%sinto\n%s", at, before, d.Tree())
	}
	return state
}

// resumed checks what ResumeCreate makes of it.
func resumed(t *testing.T, d *crashtest.Disk, at, state string) {
	t.Helper()
	before := d.Tree()
	o := &Options{fs: d.Process()}
	if state == "interrupted" {
		for name, way := range map[string]func(context.Context, string, *Options) (*Store, error){"create": Create, "open or create": OpenOrCreate} {
			if _, err := way(t.Context(), simDir, o); !errors.Is(err, ErrInterruptedInit) || d.Tree() != before {
				t.Errorf("%s: %s: %v\n%s", at, name, err, d.Tree())
			}
		}
	}
	s, err := ResumeCreate(t.Context(), simDir, o)
	want := map[string]error{"interrupted": nil, "nothing": ErrNoStore, "whole": ErrExists}[state]
	if !errors.Is(err, want) {
		t.Errorf("%s: %s: resume: %v", at, state, err)
		return
	}
	if err != nil && d.Tree() != before {
		t.Errorf("%s: %s: resume changed\n%sinto\n%s", at, state, before, d.Tree())
	}
	if err != nil {
		if s, err = OpenOrCreate(t.Context(), simDir, o); err != nil {
			t.Errorf("%s: %s: open or create: %v", at, state, err)
			return
		}
	}
	mustEnqueue(t, s, "mail", small("a"))
	r, err := s.Verify(t.Context(), VerifyOptions{})
	if err != nil || !r.OK || !r.Settled || r.Temps > 0 || r.Messages != 1 {
		t.Errorf("%s: %s: verify: %+v, %v", at, state, r, err)
	}
	s.Close()
}
