//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"example.com/holdfast/internal/fsguard"
)

// The sets are worked out by hand from the model in doc.go. In the yard's s are a, b and
// the directory d.
func TestImagesOfExchanges(t *testing.T) {
	exchange := func(y yard) { y.ok(y.s.Exchange("a", "b")) }
	for _, c := range []struct {
		name string
		do   func(y yard)
		want []string
	}{
		{"exchange", exchange, []string{"s/a=A s/b=B s/d/", "s/a=B s/b=A s/d/"}},
		{"synced", func(y yard) { exchange(y); y.ok(y.s.Sync()) }, []string{"s/a=B s/b=A s/d/"}},
		{"another directory synced", func(y yard) { exchange(y); y.ok(y.root.Sync(), y.k.Sync()) },
			[]string{"s/a=A s/b=B s/d/", "s/a=B s/b=A s/d/"}},
		{"sync fails", func(y yard) {
			exchange(y)
			y.s.(*simDir).failSync()
			y.ok(y.s.Sync())
		}, []string{"s/a=A s/b=B s/d/", "s/a=B s/b=A s/d/"}},
		{"with itself", func(y yard) { y.ok(y.s.Exchange("a", "a")) }, []string{"s/a=A s/b=B s/d/"}},
		{"there and back", func(y yard) { exchange(y); exchange(y) }, []string{"s/a=A s/b=B s/d/", "s/a=B s/b=A s/d/"}},
		{"a file with a directory", func(y yard) { y.ok(y.s.Exchange("a", "d")) }, []string{"s/a=A s/b=B s/d/", "s/a/ s/b=B s/d=A"}},
		{"with what was made and not synced", func(y yard) {
			y.ok(must(y.s.Create("n"))(y.t).Sync(), y.s.Exchange("n", "a"))
		}, []string{"s/a=A s/b=B s/d/", "s/a=A s/b=B s/d/ s/n=", "s/a= s/b=B s/d/ s/n=A"}},
		{"and the old one is removed", func(y yard) { exchange(y); y.ok(y.s.Remove("a")) },
			[]string{"s/a=A s/b=B s/d/", "s/a=B s/b=A s/d/", "s/b=B s/d/", "s/b=A s/d/"}},
		{"after a rename", func(y yard) { y.ok(y.s.Rename("a", "c"), y.s.Exchange("c", "b")) },
			[]string{"s/a=A s/b=B s/d/", "s/b=B s/c=A s/d/", "s/b=A s/c=B s/d/"}},
		{"before a rename", func(y yard) { exchange(y); y.ok(y.s.Rename("a", "c")) },
			[]string{"s/a=A s/b=B s/d/", "s/a=B s/b=A s/d/", "s/b=A s/c=B s/d/", "s/c=B s/d/"}}, // the rename alone takes a's place
		{"of a name that a move has freed", func(y yard) { // it rests on the move
			y.ok(y.s.Move("a", y.k, "e"), must(y.s.Create("a"))(y.t).Sync(), y.s.Exchange("a", "b"))
		}, []string{
			"s/a=A s/b=B s/d/", "s/a=A s/b=B s/d/ t/e=A", "s/b=B s/d/ t/e=A", "s/a= s/b=B s/d/ t/e=A", "s/a=B s/b= s/d/ t/e=A",
		}},
		{"with a second link of the one", func(y yard) {
			y.d.HardLink("/store/s/a", "/store/s/c")
			exchange(y)
		}, []string{"s/a=A s/b=B s/c=A s/d/", "s/a=B s/b=A s/c=A s/d/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newYard(t)
			y.d.WriteRaw("/store/s/b", []byte("B"))
			y.d.MkdirAll("/store/s/d")
			c.do(y)
			slices.Sort(c.want)
			if got := outcomes(t, y.d); !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
			y.d.Settle()
			if got := outcomes(t, y.d); len(got) != 1 {
				t.Errorf("after Settle: %q", got)
			}
		})
	}
}

// A move into a directory rests on the exchange that gave the directory its path.
func TestMoveIntoAnExchangedDirectory(t *testing.T) {
	y := newYard(t)
	y.ok(y.k.Mkdir("new"), y.k.Sync(), y.k.Mkdir("n"), y.k.Exchange("n", "new"))
	for _, name := range []string{"n", "new"} { // whichever of the two it is
		d := y.dir(y.k, name)
		y.ok(must(d.Create("f"))(t).Sync(), d.Move("f", y.dir(y.k, "n"), "g"), d.Sync())
	}
	for img := range y.d.Images(1<<14, 0) {
		if strings.Count(list(img), "f=")+strings.Count(list(img), "g=") > 2 {
			t.Errorf("image %s: %s", img.Desc(), list(img))
		}
	}
}

func TestExchangesThatAreRefused(t *testing.T) {
	y := newYard(t)
	y.d.WriteRaw("/store/s/b", []byte("B"))
	before := list(y.d)
	closed := y.dir(y.s, ".")
	y.ok(closed.Close())
	refused := func(err, want error) {
		t.Helper()
		wantErr(t, err, fsguard.OpExchange, want)
		if got := list(y.d); got != before {
			t.Errorf("refused with %v, and yet %s, was %s", err, got, before)
		}
	}
	refused(y.s.Exchange("a", "none"), fs.ErrNotExist)
	refused(y.s.Exchange("none", "a"), fs.ErrNotExist)
	refused(y.s.Exchange("a", "../a"), fsguard.ErrName)
	refused(y.s.Exchange(".", "a"), fsguard.ErrName)
	refused(closed.Exchange("a", "b"), fs.ErrClosed)
	y.d.SetReadOnly(true)
	refused(y.s.Exchange("a", "b"), syscall.EROFS)
	y.d.SetReadOnly(false)
	y.d.Chmod("/store/s", 0o500)
	refused(y.s.Exchange("a", "b"), fs.ErrPermission)
	y.d.Chmod("/store/s", 0o700)
	y.d.SetExchangeError(syscall.EINVAL)
	image := must(y.d.Image("-"))(t) // the setting holds there too
	y.s = y.dir(openRoot(t, image.Process()), "s")
	refused(y.s.Exchange("a", "b"), syscall.EINVAL)
	refused(y.s.Exchange("a", "b"), errors.ErrUnsupported)
	image.SetExchangeError(nil)
	y.ok(y.s.Exchange("a", "b"))
	if got := list(image); got != "s/a=B s/b=A" {
		t.Errorf("got %s", got)
	}
}

// The trace has both names, and an errno that a plan gives comes back as the kernel's
// does. The scheduler of interleavings is asked by the kind.
func TestExchangeIsWrapped(t *testing.T) {
	_, p, _ := store(t)
	b := newBench(t, p, "/store")
	b.w.Arm(FailMatching(func(op fsguard.Op, path string) bool {
		return op == fsguard.OpExchange && path == "sub"
	}, syscall.EINVAL, 1))
	err := b.dir.Exchange("f", "sub")
	wantErr(t, err, fsguard.OpExchange, syscall.EINVAL)
	wantErr(t, err, fsguard.OpExchange, errors.ErrUnsupported)
	ok(t, b.dir.Exchange("f", "sub"))
	want := "    1 exchange sub with f = invalid argument\n    2 exchange sub with f\n"
	if got := b.w.Trace(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if info := must(b.dir.Lstat("f"))(t); !info.Mode.IsDir() {
		t.Errorf("f is %v", info.Mode)
	}
	synctest.Test(t, func(t *testing.T) {
		d, _, _ := store(t)
		d.WriteRaw("/store/a", []byte("A"))
		d.WriteRaw("/store/b", []byte("B"))
		c := newClient(d, 0)
		root := must(c.FS.OpenRoot("/store"))(t)
		c.stepped = true
		done := make(chan error)
		go func() { done <- root.Exchange("a", "b") }()
		synctest.Wait()
		turns := c.waiting()
		if len(turns) != 1 || turns[0].String() != "exchange /store/b" {
			t.Fatalf("turns: got %v, want exchange /store/b", turns)
		}
		c.let(turns[0], passes)
		ok(t, <-done)
		if got := string(d.ReadRaw("/store/a")); got != "B" {
			t.Errorf("a is %q", got)
		}
	})
}

func TestImagesTellOfExchanges(t *testing.T) {
	y := newYard(t)
	y.d.WriteRaw("/store/s/b", []byte("B"))
	y.ok(y.s.Exchange("a", "b"))
	for img := range y.d.Images(10, 0) {
		word := map[string]string{"s/a=A s/b=B": "lost:    ", "s/a=B s/b=A": "survived:"}[list(img)]
		if got, want := img.Story(), word+" exchange a with b in /store/s\n"; got != want {
			t.Errorf("of %s got %q, want %q", list(img), got, want)
		}
	}
}

// Both names of an exchange count: disks that differ in the second alone are not alike.
func TestExchangesAreNotAlike(t *testing.T) {
	of := func(a, b string) fingerprint {
		d, _, root := store(t)
		for _, name := range []string{"a", "b", "c"} {
			d.WriteRaw("/store/"+name, []byte("same"))
		}
		ok(t, root.Exchange(a, b))
		return world{disk: d, journal: &Journal{}}.fingerprint("image")
	}
	first, again := of("a", "b"), of("a", "b")
	if first != again || first == of("a", "c") || first == of("c", "b") {
		t.Error("equal exchanges differ, or others do not")
	}
}

// swapScenario is a toy protocol of two files: a new value is written over the spare one in
// place, and then both names are exchanged. A bug is planted by name; "" is the right one.
func swapScenario(bug string) Scenario {
	value := func(i int) []byte {
		return fmt.Appendf(nil, "value=%04d object=%s.\n", i, strings.Repeat(fmt.Sprint(i), 4))
	}
	return Scenario{
		Name: "swap",
		Setup: func(_ testing.TB, d *Disk) {
			d.MkdirAll("/store")
			d.WriteRaw("/store/state", value(1))
			d.WriteRaw("/store/spare", value(0))
		},
		Run: func(fs fsguard.FS, j *Journal) {
			root, err := fs.OpenRoot("/store")
			for i := 2; i < 5 && err == nil; i++ {
				j.Begin("value", i)
				if err = swap(fs, root, value(i), bug); err == nil {
					j.Ack("value", i)
				}
			}
		},
		Check: func(_ testing.TB, fs fsguard.FS, j *Journal) error {
			root, err := fs.OpenRoot("/store")
			if err != nil {
				return err
			}
			text, err := (&register{store: root}).read("state")
			if err != nil {
				return err
			}
			got, object, err := parseState(text)
			if err == nil && object != strings.Repeat(fmt.Sprint(got), 4) {
				err = fmt.Errorf("state is damaged: %q", text)
			}
			if err != nil {
				return err
			}
			low, high := 1, 1
			if e, acked := j.Last("value", Acked); acked {
				low = e.Value.(int)
			}
			if e, begun := j.Last("value"); begun {
				high = max(low, 1)
				if e.State != Acked {
					high = e.Value.(int)
				}
			}
			if got < low || got > high {
				return fmt.Errorf("value is %d, want %d to %d", got, low, high)
			}
			return nil
		},
	}
}

// swap makes text the state.
func swap(fs fsguard.FS, root fsguard.Dir, text []byte, bug string) error {
	f, err := root.OpenWrite("spare")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.WriteAt(text, 0); err == nil && bug != "spare not synced" {
		err = fs.SyncAll(fsguard.DataOf(f))
	}
	if err == nil && bug == "directory synced before the exchange" {
		err = root.Sync()
	}
	if err == nil && bug == "two renames" {
		if err = root.Rename("state", "old"); err == nil {
			err = errors.Join(root.Rename("spare", "state"), root.Rename("old", "spare"))
		}
	} else if err == nil {
		err = root.Exchange("spare", "state")
	}
	if err == nil && bug != "directory not synced" && bug != "directory synced before the exchange" {
		err = root.Sync()
	}
	return err
}

func TestRightSwapPasses(t *testing.T) {
	stats := Explore(t, swapScenario(""), Options{SecondCrash: 4})
	if !stats.Exhaustive || stats.Ops != 12 || stats.Images < stats.Points {
		t.Errorf("too little was explored: %v", stats)
	}
	commit := func(path string) bool { return path == "state" }
	for _, stats := range []Stats{
		ExploreErrors(t, swapScenario(""), Options{Persistent: true, MaxImages: 16}),
		ExploreUncertain(t, swapScenario(""), Options{MaxImages: 16}, commit),
	} {
		if stats.Points < 6 {
			t.Errorf("too little was explored: %v", stats)
		}
	}
}

func TestPlantedBugsOfSwapAreFound(t *testing.T) {
	for _, c := range []struct{ bug, want string }{
		{"spare not synced", `image=.*(state is damaged|value is \d, want)`},
		{"directory not synced", `image=.*(state is damaged|value is \d, want)`},
		{"directory synced before the exchange", `image=.*(state is damaged|value is \d, want)`},
		{"two renames", `open state: no such file`},
	} {
		t.Run(c.bug, func(t *testing.T) {
			found := finding(t, func(t testing.TB) { Explore(t, swapScenario(c.bug), Options{}) })
			first, _, _ := strings.Cut(found, "\n")
			if !regexp.MustCompile(c.want).MatchString(first) {
				t.Fatalf("found %q, want %s", first, c.want)
			}
			path := regexp.MustCompile(`CRASHTEST_REPLAY='(.*)' go test`).FindStringSubmatch(found)
			t.Setenv("CRASHTEST_REPLAY", path[1])
			again := finding(t, func(t testing.TB) { Explore(t, swapScenario(c.bug), Options{}) })
			if again != found {
				t.Errorf("the replay says\n%s\nthe exploration said\n%s", again, found)
			}
		})
	}
}
