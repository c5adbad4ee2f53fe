//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// A bench is a filesystem under a wrapper with something open to try each
// operation on: a file that has unsynced content, and a locked directory that has
// an unsynced name.
type bench struct {
	w    *Wrapper
	root string
	dir  fsguard.Dir
	sub  fsguard.Dir
	file fsguard.File
}

func newBench(t *testing.T, inner fsguard.FS, root string) bench {
	t.Helper()
	b := bench{w: Wrap(inner, Plan{}), root: root}
	b.dir = must(b.w.OpenRoot(root))(t)
	b.file = must(b.dir.Create("f"))(t)
	ok(t, b.dir.Mkdir("sub"))
	b.sub = must(b.dir.OpenDir("sub"))(t)
	must(b.file.WriteAt([]byte("abc"), 0))(t)
	ok(t, b.dir.Lock(fsguard.Exclusive))
	return b
}

// drivers do one operation of each kind, and nothing else.
var drivers = map[fsguard.Op]func(b bench) error{
	fsguard.OpOpenRoot:  func(b bench) error { _, err := b.w.OpenRoot(b.root); return err },
	fsguard.OpStat:      func(b bench) error { _, err := b.w.Stat(b.root); return err },
	fsguard.OpSpace:     func(b bench) error { _, err := b.dir.Space(); return err },
	fsguard.OpInfo:      func(b bench) error { _, err := b.file.Info(); return err },
	fsguard.OpLstat:     func(b bench) error { _, err := b.dir.Lstat("f"); return err },
	fsguard.OpReadDir:   func(b bench) error { _, err := b.dir.ReadDir(); return err },
	fsguard.OpOpenDir:   func(b bench) error { _, err := b.dir.OpenDir("sub"); return err },
	fsguard.OpMkdir:     func(b bench) error { return b.dir.Mkdir("new") },
	fsguard.OpCreate:    func(b bench) error { _, err := b.dir.Create("new"); return err },
	fsguard.OpOpen:      func(b bench) error { _, err := b.dir.Open("f"); return err },
	fsguard.OpWriteFile: func(b bench) error { return b.dir.WriteFile("new", []byte("x")) },
	fsguard.OpRename:    func(b bench) error { return b.dir.Rename("f", "new") },
	fsguard.OpMove:      func(b bench) error { return b.dir.Move("f", b.sub, "new") },
	fsguard.OpMoveNew:   func(b bench) error { return b.dir.MoveNew("f", b.sub, "new") },
	fsguard.OpExchange:  func(b bench) error { return b.dir.Exchange("f", "sub") },
	fsguard.OpLink:      func(b bench) error { return b.dir.Link("f", b.sub, "new") },
	fsguard.OpRemove:    func(b bench) error { return b.dir.Remove("f") },
	fsguard.OpRemoveDir: func(b bench) error { return b.dir.RemoveDir("sub") },
	fsguard.OpSyncDir:   func(b bench) error { return b.dir.Sync() },
	fsguard.OpRead:      func(b bench) error { _, err := b.file.ReadAt(make([]byte, 2), 0); return err },
	fsguard.OpWrite:     func(b bench) error { _, err := b.file.WriteAt([]byte("x"), 0); return err },
	fsguard.OpAllocate:  func(b bench) error { return b.file.Allocate(9) },
	fsguard.OpSync:      func(b bench) error { return b.file.Sync() },
	fsguard.OpSyncData:  func(b bench) error { return b.file.SyncData() },
	fsguard.OpLock:      func(b bench) error { return b.file.Lock(fsguard.Exclusive) },
	fsguard.OpUnlock:    func(b bench) error { return b.dir.Unlock() },
	fsguard.OpDup:       dupOnce,
	fsguard.OpWatch:     watchOnce,
	fsguard.OpClose:     func(b bench) error { return b.dir.Close() },
}

func dupOnce(b bench) error {
	dup, err := b.file.Dup()
	switch {
	case err == nil:
		return dup.Close()
	case dup != nil:
		return fmt.Errorf("a duplicate beside %v", err)
	}
	return err
}

func watchOnce(b bench) error {
	watch, err := b.w.Watch(b.root, "f")
	if err == nil {
		return fmt.Errorf("a watch, %v", watch.Close())
	}
	return err
}

// otherCalls are the methods that share an Op with another.
var otherCalls = map[string]func(b bench) error{
	"OpenWrite": func(b bench) error { _, err := b.dir.OpenWrite("f"); return err },
	"TryLock":   func(b bench) error { _, err := b.dir.TryLock(fsguard.Shared); return err },
	"Dir.Info":  func(b bench) error { _, err := b.dir.Info(); return err },
	"Dir.Lock":  func(b bench) error { return b.dir.Lock(fsguard.Exclusive) },
	"Unlock":    func(b bench) error { return b.file.Unlock() },
	"Close":     func(b bench) error { return b.file.Close() },
	"SyncAll":   func(b bench) error { return b.w.SyncAll(b.file) },
	"DataOf":    func(b bench) error { return b.w.SyncAll(fsguard.DataOf(b.file)) },
}

func TestEveryOpCanFail(t *testing.T) {
	if len(drivers) != len(fsguard.AllOps) {
		t.Errorf("%d drivers for %d operations", len(drivers), len(fsguard.AllOps))
	}
	plans := map[string]Plan{
		"FailAt":         FailAt(1, syscall.EMFILE),
		"FailAfter":      FailAfter(1, syscall.EMFILE),
		"FailAlwaysFrom": FailAlwaysFrom(1, syscall.EMFILE),
		"StopBefore":     StopBefore(1),
		"StopAfter":      StopAfter(1),
		"FailMatching":   FailMatching(func(fsguard.Op, string) bool { return true }, syscall.EMFILE, 0),
	}
	for name, plan := range plans {
		plan.Reads = true
		want := plan.Err
		if want == nil {
			want = ErrStopped
		}
		for _, op := range fsguard.AllOps {
			for where, b := range map[string]func() bench{
				"sim": func() bench { _, p, _ := store(t); return newBench(t, p, "/store") },
				"os":  func() bench { return newBench(t, fsguard.OS(), t.TempDir()) },
			} {
				t.Run(fmt.Sprintf("%s/%s/%s", name, op, where), func(t *testing.T) {
					drive := drivers[op]
					if drive == nil {
						t.Fatalf("operation %s is not covered", op)
					}
					b := b()
					b.w.Arm(plan)
					want := want
					if never := op == fsguard.OpDup || op == fsguard.OpWatch; never && where == "sim" && plan.Mode == FailingAfter {
						want = errors.ErrUnsupported // it never succeeds there
					}
					wantErr(t, drive(b), op, want)
					events := b.w.Events()
					if !b.w.Fired() || len(events) != 1 || events[0].Op != op || events[0].N != 1 || b.w.Count(op) != 1 {
						t.Errorf("the trace is %v", events)
					}
				})
			}
		}
		for call, drive := range otherCalls {
			t.Run(name+"/"+call, func(t *testing.T) {
				_, p, _ := store(t)
				b := newBench(t, p, "/store")
				b.w.Arm(plan)
				if err := drive(b); !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			})
		}
	}
}

// look prints everything that operations can change.
func look(t *testing.T, d *Disk, p *Process) string {
	t.Helper()
	images, _ := d.CountImages(1<<20, 0)
	text := fmt.Sprintf("%s%d images, %d open", d.Tree(), images, p.Open())
	q := d.Process()
	defer q.Kill()
	root := openRoot(t, q)
	if f, err := root.OpenWrite("f"); err == nil {
		text += fmt.Sprint(", file free: ", must(f.TryLock(fsguard.Shared))(t))
	}
	return text + fmt.Sprint(", directory free: ", must(root.TryLock(fsguard.Shared))(t))
}

// Before means not performed, after means performed. A close is always performed.
func TestBeforeAndAfter(t *testing.T) {
	for _, op := range fsguard.AllOps {
		t.Run(string(op), func(t *testing.T) {
			result := func(plan Plan) string {
				d := NewDisk()
				d.MkdirAll("/store")
				p := d.Process()
				b := newBench(t, p, "/store")
				if op == "" {
					return look(t, d, p)
				}
				plan.Reads = true
				b.w.Arm(plan)
				_ = drivers[op](b)
				return look(t, d, p)
			}
			saved := op
			op = ""
			untouched := result(Plan{})
			op = saved
			done := result(Plan{})
			if changes(op) && done == untouched {
				t.Fatalf("%s changes nothing that look sees:\n%s", op, done)
			}
			at, after := result(FailAt(1, syscall.EIO)), result(FailAfter(1, syscall.EIO))
			stopBefore, stopAfter := result(StopBefore(1)), result(StopAfter(1))
			wantAt := untouched
			if op == fsguard.OpClose {
				wantAt = done
			}
			if at != wantAt || stopBefore != untouched {
				t.Errorf("before: got\n%s\nand\n%s\nwant\n%s\nand\n%s", at, stopBefore, wantAt, untouched)
			}
			opens := func(s string) string { // what was opened and not given out is closed again
				return strings.Replace(s, "4 open", "3 open", 1)
			}
			if opens(done) != after || opens(done) != stopAfter {
				t.Errorf("after: got\n%s\nand\n%s\nwant\n%s", after, stopAfter, done)
			}
		})
	}
}

func TestNumbersAndTrace(t *testing.T) {
	_, p, _ := store(t)
	b := newBench(t, p, "/store")
	b.w.Arm(Plan{})
	_ = drivers[fsguard.OpStat](b)
	_ = drivers[fsguard.OpRename](b)
	must(b.dir.ReadDir())(t)
	ok(t, b.w.SyncAll(b.file, b.dir))
	ok(t, b.dir.Sync())
	want := "      stat /store\n    1 rename new from f\n      readdir .\n    2 sync f\n    3 syncdir .\n    4 syncdir .\n"
	if got := b.w.Trace(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if b.w.Ops() != 4 || b.w.Syncs() != 3 || b.w.Count() != 6 || b.w.Count(fsguard.OpStat, fsguard.OpRename) != 2 {
		t.Errorf("%d numbered, %d syncs, %d in all", b.w.Ops(), b.w.Syncs(), b.w.Count())
	}
	if got, want := b.w.SyncGroups(), [][]string{{"f", "."}, {"."}}; !reflect.DeepEqual(got, want) {
		t.Errorf("sync groups: got %v, want %v", got, want)
	}
	if got := b.w.Open(); !slices.Equal(got, []string{".", "f", "sub"}) {
		t.Errorf("open: %v", got)
	}
}

func TestSyncGroupsOnTheOS(t *testing.T) {
	b := newBench(t, fsguard.OS(), t.TempDir())
	ok(t, b.w.SyncAll(b.file, b.sub, b.dir))
	ok(t, b.w.SyncAll())
	ok(t, b.dir.Sync())
	groups := b.w.SyncGroups()
	if len(groups) != 2 {
		t.Fatalf("groups: %v", groups)
	}
	slices.Sort(groups[0]) // they ran at the same time
	if want := [][]string{{".", "f", "sub"}, {"."}}; !reflect.DeepEqual(groups, want) {
		t.Errorf("got %v, want %v", groups, want)
	}
}

func TestMatching(t *testing.T) {
	_, p, _ := store(t)
	b := newBench(t, p, "/store")
	b.w.Arm(FailMatching(func(op fsguard.Op, path string) bool {
		return op == fsguard.OpLstat && path == "sub/x"
	}, syscall.EIO, 2))
	for i, want := range []error{syscall.EIO, syscall.EIO, syscall.ENOENT} {
		_, err := b.sub.Lstat("x")
		wantErr(t, err, fsguard.OpLstat, want)
		if _, err := b.dir.Lstat("f"); err != nil {
			t.Errorf("call %d: another path got %v", i, err)
		}
	}
}

func TestFailAlwaysFrom(t *testing.T) {
	_, p, _ := store(t)
	b := newBench(t, p, "/store")
	b.w.Arm(FailAlwaysFrom(2, syscall.EROFS))
	ok(t, b.dir.Mkdir("one"))
	for range 3 {
		wantErr(t, b.dir.Mkdir("two"), fsguard.OpMkdir, syscall.EROFS)
	}
	must(b.dir.Lstat("one"))(t) // reads are not numbered here
}

func TestSpelledWriteFile(t *testing.T) {
	want := []string{"writefile new", "create .new1", "write .new1", "sync .new1", "close .new1", "rename new from .new1"}
	for n := 0; n <= len(want); n++ {
		d, p, _ := store(t)
		w := Wrap(p, Plan{})
		dir := openRoot(t, w)
		plan := FailAt(n, syscall.EIO)
		plan.Spell, plan.Reads = true, true
		w.Arm(plan)
		err := dir.WriteFile("new", []byte("x"))
		var got []string
		for _, e := range w.Events() {
			got = append(got, strings.TrimSpace(Event{Op: e.Op, Path: e.Path, From: e.From}.String()))
		}
		if n == 0 {
			ok(t, err)
			if !slices.Equal(got, want) || d.Tree() != "/store/\n/store/new \"x\"\n" {
				t.Errorf("got %q", got)
			}
			continue
		}
		wantErr(t, err, fsguard.OpWriteFile, syscall.EIO)
		if d.Tree() != "/store/\n" {
			t.Errorf("failing at %d leaves\n%s", n, d.Tree())
		}
	}
}

func TestViolations(t *testing.T) {
	for _, c := range []struct {
		name string
		plan Plan
		do   func(b bench)
		want []string
	}{
		{"all is well", Plan{}, func(b bench) { b.file.Sync(); b.file.Sync(); b.dir.Sync(); b.file.Close() }, nil},
		{"sync again", FailAt(1, syscall.EIO), func(b bench) { b.file.Sync(); b.file.Sync() },
			[]string{"sync f (operation 2) on a description whose sync had failed"}},
		{"syncdata again", FailAt(1, syscall.EIO), func(b bench) { b.file.Sync(); b.file.SyncData() },
			[]string{"syncdata f (operation 2) on a description whose sync had failed"}},
		{"sync after syncdata", FailAt(1, syscall.EIO), func(b bench) { b.w.SyncAll(fsguard.DataOf(b.file)); b.file.Sync() },
			[]string{"sync f (operation 2) on a description whose sync had failed"}},
		{"sync again in a group", FailAfter(1, syscall.EIO), func(b bench) { b.dir.Sync(); b.w.SyncAll(b.file, b.dir) },
			[]string{"syncdir . (operation 3) on a description whose sync had failed"}},
		{"sync on another description", FailAt(1, syscall.EIO), func(b bench) {
			b.dir.Sync()
			again, _ := b.dir.OpenDir(".")
			again.Sync()
		}, nil},
		{"another operation after a failed sync", FailAt(1, syscall.EIO), func(b bench) { b.dir.Sync(); b.dir.Mkdir("x") }, nil},
		{"use after close", Plan{}, func(b bench) { b.file.Close(); b.file.Info(); b.file.Close() },
			[]string{"info f (operation 0) on a closed description", "close f (operation 0) on a closed description"}},
		{"use after a failed close", Plan{Mode: FailingAt, N: 1, Err: syscall.EIO, Reads: true},
			func(b bench) { b.file.Close(); b.file.Unlock() },
			[]string{"unlock f (operation 2) on a closed description"}},
		{"a dead process breaks no rule", StopAfter(1), func(b bench) { b.file.Sync(); b.file.Sync(); b.file.Close(); b.file.Close() }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, p, _ := store(t)
			b := newBench(t, p, "/store")
			b.w.Arm(c.plan)
			c.do(b)
			if got := b.w.Violations(); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestStopRunsOnceAndIsFinal(t *testing.T) {
	d, p, _ := store(t)
	b := newBench(t, p, "/store")
	stops := 0
	plan := StopAfter(2)
	plan.OnStop = func() { stops++; p.Kill() }
	b.w.Arm(plan)
	ok(t, b.dir.Mkdir("one"))
	wantErr(t, b.dir.Mkdir("two"), fsguard.OpMkdir, ErrStopped)
	wantErr(t, b.dir.Mkdir("three"), fsguard.OpMkdir, ErrStopped)
	wantErr(t, b.file.Close(), fsguard.OpClose, ErrStopped)
	_, err := b.w.Stat("/store")
	wantErr(t, err, fsguard.OpStat, ErrStopped)
	if stops != 1 || !d.Exists("/store/two") || d.Exists("/store/three") || b.w.Ops() != 2 {
		t.Errorf("%d stops, %d operations\n%s", stops, b.w.Ops(), d.Tree())
	}
}

// A real process dies by its own SIGKILL between two operations.
func TestKillSelf(t *testing.T) {
	const dirVar = "CRASHTEST_KILL_SELF"
	if dir := os.Getenv(dirVar); dir != "" {
		plan := StopBefore(2)
		plan.OnStop = KillSelf
		root := must(Wrap(fsguard.OS(), plan).OpenRoot(dir))(t)
		ok(t, root.Mkdir("one"))
		ok(t, root.Mkdir("two"))
		t.Fatal("still alive")
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKillSelf$")
	cmd.Env = append(os.Environ(), dirVar+"="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child ended with %v:\n%s", err, out)
	}
	_, one := os.Stat(filepath.Join(dir, "one"))
	_, two := os.Stat(filepath.Join(dir, "two"))
	if one != nil || !os.IsNotExist(two) {
		t.Errorf("one: %v, two: %v", one, two)
	}
}

// A duplicate whose success is hidden is closed: it keeps no lock.
func TestHiddenDupKeepsNothing(t *testing.T) {
	for name, plan := range map[string]Plan{
		"fails after": FailAfter(1, syscall.EMFILE), "stops after": StopAfter(1),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fsguard.OS(), t.TempDir())
			other := must(b.dir.Open("f"))(t).(*faultFile).file
			ok(t, b.file.Lock(fsguard.Exclusive))
			plan.Reads = true
			b.w.Arm(plan)
			if dup, err := b.file.Dup(); err == nil || dup != nil {
				t.Fatalf("got %v, %v", dup, err)
			}
			ok(t, b.file.(*faultFile).file.Close())
			if free := must(other.TryLock(fsguard.Exclusive))(t); !free {
				t.Error("the lock is still held")
			}
			ok(t, other.Close())
		})
	}
}
