//go:build unix

package crashtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// trees collects what the images of d look like below /store. No two are alike.
func trees(t *testing.T, d *Disk) []string {
	t.Helper()
	seen := map[string]string{}
	for img := range d.Images(1000, 0) {
		tree := strings.ReplaceAll(strings.TrimPrefix(img.Tree(), "/store/\n"), "/store/", "")
		tree = strings.ReplaceAll(strings.TrimSpace(tree), "\n", "; ")
		if other, twice := seen[tree]; twice {
			t.Errorf("images %s and %s are both %q", other, img.Desc(), tree)
		}
		seen[tree] = img.Desc()
	}
	if count, all := d.CountImages(1000, 0); !all || count != len(seen) {
		t.Errorf("CountImages says %d, %v; there are %d", count, all, len(seen))
	}
	return slices.Sorted(maps.Keys(seen))
}

// The sets are worked out by hand from the model in doc.go.
func TestImagesAreExactlyThePossibleOnes(t *testing.T) {
	write := func(t *testing.T, f fsguard.File, text string, off int64) {
		t.Helper()
		must(f.WriteAt([]byte(text), off))(t)
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, d *Disk, dir fsguard.Dir)
		want []string
	}{
		{"nothing", func(*testing.T, *Disk, fsguard.Dir) {}, []string{`state "old"`}},
		{"create and write", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			write(t, must(dir.Create("a"))(t), "1234", 0)
		}, []string{
			`state "old"`,
			`a ""; state "old"`, `a "1234"; state "old"`, `a "\x00\x00\x00\x00"; state "old"`,
			`a "1"; state "old"`, `a "12"; state "old"`, `a "123"; state "old"`,
			`a "\x00234"; state "old"`, `a "\x00\x0034"; state "old"`, `a "\x00\x00\x004"; state "old"`,
		}},
		{"commit without any sync", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			write(t, must(dir.Create("a"))(t), "n", 0)
			ok(t, dir.Rename("a", "state"))
		}, []string{
			`state "old"`, `a ""; state "old"`, `a "\x00"; state "old"`, `a "n"; state "old"`,
			`state ""`, `state "\x00"`, `state "n"`,
		}},
		{"commit with the temp synced", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			f := must(dir.Create("a"))(t)
			write(t, f, "n", 0)
			ok(t, f.Sync())
			ok(t, dir.Rename("a", "state"))
		}, []string{`state "old"`, `a "n"; state "old"`, `state "n"`}},
		{"directory synced between", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			f := must(dir.Create("a"))(t)
			ok(t, f.Sync())
			ok(t, dir.Sync())
			ok(t, dir.Rename("a", "state"))
		}, []string{`a ""; state "old"`, `state ""`}},
		{"whole commit", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			ok(t, dir.WriteFile("state", []byte("new")))
			ok(t, dir.Sync())
		}, []string{`state "new"`}},
		{"overwrite in place", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			write(t, must(dir.OpenWrite("state"))(t), "NEW", 0)
		}, []string{`state "old"`, `state "NEW"`, `state "Nld"`, `state "NEd"`, `state "oEW"`, `state "olW"`}},
		{"cut only where it matters", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			write(t, must(dir.OpenWrite("state"))(t), "oLD", 0)
		}, []string{`state "old"`, `state "oLD"`, `state "oLd"`, `state "olD"`}},
		{"two writes", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			f := must(dir.OpenWrite("state"))(t)
			write(t, f, "O", 0)
			write(t, f, "D", 2)
		}, []string{`state "old"`, `state "OlD"`, `state "Old"`, `state "olD"`}},
		{"synced and written again", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			f := must(dir.OpenWrite("state"))(t)
			write(t, f, "O", 0)
			ok(t, f.Sync())
			write(t, f, "D", 2)
		}, []string{`state "Old"`, `state "OlD"`}},
		{"sync through another descriptor", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			write(t, must(dir.OpenWrite("state"))(t), "O", 0)
			ok(t, must(dir.Open("state"))(t).Sync())
		}, []string{`state "Old"`}},
		{"allocate", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			ok(t, must(dir.OpenWrite("state"))(t).Allocate(5))
		}, []string{`state "old"`, `state "old\x00\x00"`, `state "old\x00"`}},
		{"directory with content", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			ok(t, dir.Mkdir("d"))
			sub := must(dir.OpenDir("d"))(t)
			ok(t, must(sub.Create("f"))(t).Sync())
		}, []string{`state "old"`, `d/; state "old"`, `d/; d/f ""; state "old"`}},
		{"only the inner directory synced", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			ok(t, dir.Mkdir("d"))
			sub := must(dir.OpenDir("d"))(t)
			must(sub.Create("f"))(t)
			ok(t, sub.Sync())
		}, []string{`state "old"`, `d/; d/f ""; state "old"`}},
		{"remove", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			ok(t, dir.Remove("state"))
			must(dir.Create("state"))(t)
		}, []string{``, `state "old"`, `state ""`}},
		{"two renames of one file", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			must(dir.Create("a"))(t)
			ok(t, dir.Rename("a", "b"))
			ok(t, dir.Rename("b", "c"))
		}, []string{`state "old"`, `a ""; state "old"`, `b ""; state "old"`, `c ""; state "old"`}},
		{"a lost rename leaves the temp", func(t *testing.T, d *Disk, dir fsguard.Dir) {
			d.WriteRaw("/store/a", []byte("1"))
			d.WriteRaw("/store/b", []byte("2"))
			ok(t, dir.Rename("a", "state"))
			ok(t, dir.Rename("b", "state"))
		}, []string{
			`a "1"; b "2"; state "old"`, `b "2"; state "1"`, `a "1"; state "2"`, `state "2"`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, _, dir := store(t)
			d.WriteRaw("/store/state", []byte("old"))
			c.do(t, d, dir)
			slices.Sort(c.want)
			if got := trees(t, d); !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
		})
	}
}

// After a failed sync no later one makes durable what it had covered, only what
// came after it.
func TestFailedSyncDooms(t *testing.T) {
	for _, forgiving := range []bool{false, true} {
		t.Run(fmt.Sprint("forgiving ", forgiving), func(t *testing.T) {
			d, _, dir := store(t)
			d.SetForgiving(forgiving)
			f := must(dir.Create("a"))(t)
			must(f.WriteAt([]byte("1"), 0))(t)
			ok(t, dir.Rename("a", "b"))
			f.(*simFile).failSync()
			dir.(*simDir).failSync()
			must(f.WriteAt([]byte("2"), 1))(t)
			must(dir.Create("c"))(t)
			ok(t, f.Sync())
			ok(t, dir.Sync())
			want := []string{`b "12"; c ""`}
			if !forgiving {
				want = []string{`a "12"; c ""`, `a "\x002"; c ""`, `b "12"; c ""`, `b "\x002"; c ""`, `c ""`}
			}
			if got := trees(t, d); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			d.Settle()
			if got := trees(t, d); !slices.Equal(got, []string{`b "12"; c ""`}) {
				t.Errorf("after Settle: %q", got)
			}
		})
	}
}

func TestImageNumbersAreUnique(t *testing.T) {
	d, _, dir := store(t)
	d.WriteRaw("/store/a", []byte("old"))
	ok(t, dir.Remove("a"))
	must(dir.Create("b"))(t) // takes a's number
	both := 0
	for img := range d.Images(100, 0) {
		if !img.Exists("/store/a") || !img.Exists("/store/b") {
			continue
		}
		both++
		root := openRoot(t, img.Process())
		a, b := must(root.Lstat("a"))(t), must(root.Lstat("b"))(t)
		if a.Identity == b.Identity || a.Ino == 0 {
			t.Errorf("one identity twice: %v, %v", a, b)
		}
		if b.Identity != must(dir.Lstat("b"))(t).Identity {
			t.Error("the newer inode got another number")
		}
	}
	if both != 1 {
		t.Errorf("%d images with both, want 1", both)
	}
}

func TestImagesAreWholeDisks(t *testing.T) {
	d, p, dir := store(t)
	ok(t, dir.WriteFile("a", []byte("1")))
	ok(t, dir.Lock(fsguard.Exclusive))
	for img := range d.Images(100, 0) {
		q := img.Process()
		root := openRoot(t, q)
		try(t, root, fsguard.Exclusive, true) // no lock survives
		if n, all := img.CountImages(100, 0); n != 1 || !all {
			t.Errorf("image %s has %d images of its own", img.Desc(), n)
		}
		ok(t, root.WriteFile("z", []byte("2"))) // and it can be worked on
	}
	if d.Exists("/store/z") || p.Open() != 1 {
		t.Error("work on an image changed the disk that it is of")
	}
}

// messy makes a disk with many images.
func messy(t *testing.T) *Disk {
	d, _, dir := store(t)
	for i := range 6 {
		ok(t, dir.Mkdir(fmt.Sprint("d", i)))
		sub := must(dir.OpenDir(fmt.Sprint("d", i)))(t)
		must(must(sub.Create("f"))(t).WriteAt([]byte("some text"), 0))(t)
	}
	return d
}

func TestSamples(t *testing.T) {
	d := messy(t)
	list := func(limit int, seed uint64) (descs, trees []string) {
		for img := range d.Images(limit, seed) {
			descs, trees = append(descs, img.Desc()), append(trees, img.Tree())
		}
		return descs, trees
	}
	descs, looks := list(300, 1)
	if n, all := d.CountImages(300, 1); all || n != len(descs) || n != 300 {
		t.Errorf("CountImages says %d, %v; there are %d", n, all, len(descs))
	}
	if again, _ := list(300, 1); !slices.Equal(again, descs) {
		t.Error("the same seed gives other images")
	}
	if other, _ := list(300, 2); slices.Equal(other, descs) {
		t.Error("another seed gives the same images")
	}
	if !slices.ContainsFunc(descs, regexp.MustCompile(`:[ht]\d+,.*:[ht]\d+`).MatchString) {
		t.Error("no two contents are torn at once")
	}
	for i, desc := range descs {
		if slices.Index(descs, desc) != i {
			t.Errorf("%s comes twice", desc)
		}
		img, err := d.Image(desc)
		ok(t, err)
		if img.Tree() != looks[i] || img.Desc() != desc {
			t.Errorf("%s comes back as %s:\n%s\nwas\n%s", desc, img.Desc(), img.Tree(), looks[i])
		}
	}
	// What every sample has, however small.
	_, looks = list(1, 1)
	full := d.Tree()
	want := map[string]string{"everything lost": "/store/\n", "everything survived": full}
	for i := range 6 {
		dir := fmt.Sprintf("/store/d%d", i)
		whole := fmt.Sprintf("%s/\n%s/f \"some text\"\n", dir, dir)
		want[fmt.Sprint("only the name of d", i)] = "/store/\n" + dir + "/\n"
		want[fmt.Sprint("all but the name of d", i)] = strings.Replace(full, whole, "", 1)
		want[fmt.Sprint("all but the name of the file in d", i)] = strings.Replace(full, whole, dir+"/\n", 1)
		for _, text := range []string{``, `s`, `some tex`, `\x00ome text`, `\x00\x00\x00\x00\x00\x00\x00\x00\x00`} {
			want[fmt.Sprintf("d%d/f is %q", i, text)] = strings.Replace(full, whole, fmt.Sprintf("%s/\n%s/f \"%s\"\n", dir, dir, text), 1)
		}
	}
	for what, tree := range want {
		if !slices.Contains(looks, tree) {
			t.Errorf("missing: %s\n%s", what, tree)
		}
	}
}

// Of the four images, none comes from another by leaving out what cannot be reached.
func TestSmallSample(t *testing.T) {
	d, _, dir := store(t)
	ok(t, dir.Mkdir("a"))
	ok(t, dir.Mkdir("b"))
	var got []string
	for img := range d.Images(1, 0) {
		got = append(got, img.Desc())
	}
	if want := []string{"2:00", "2:11", "2:01", "2:10"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestImagesAreOfTheMomentOfTheCall(t *testing.T) {
	d, _, dir := store(t)
	ok(t, dir.Mkdir("a"))
	images := d.Images(10, 0)
	ok(t, dir.Mkdir("b"))
	ok(t, dir.Sync())
	count := 0
	for img := range images {
		if count++; img.Exists("/store/b") {
			t.Errorf("image %s has what was made after the call", img.Desc())
		}
	}
	if count != 2 {
		t.Errorf("%d images, want 2", count)
	}
}

func TestTooManyNamesAreSampled(t *testing.T) {
	d, _, dir := store(t)
	for i := range most + 1 {
		ok(t, dir.Mkdir(fmt.Sprint(i)))
	}
	if n, all := d.CountImages(1<<14, 0); all || n <= 2*most {
		t.Errorf("CountImages says %d, %v", n, all)
	}
}

func TestImagesTellWhatTheyLost(t *testing.T) {
	d, _, dir := store(t)
	d.WriteRaw("/store/state", []byte("old"))
	f := must(dir.Create("a"))(t)
	must(f.WriteAt([]byte("new"), 0))(t)
	ok(t, dir.Rename("a", "state"))
	img, err := d.Image("2:01,4:h1")
	ok(t, err)
	want := "lost:     create a in /store\nsurvived: rename a to state in /store\n" +
		"content of /store/state: torn, only the first 1 of 3 new bytes\n"
	if got := img.Clone().Story(); got != want || d.Story() != "" {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := string(img.ReadRaw("/store/state")); got != "n" {
		t.Errorf("state is %q", got)
	}
	y := newYard(t)
	y.ok(y.k.Mkdir("d"), y.s.Move("a", y.dir(y.k, "d"), "e"), y.s.Sync())
	img, err = y.d.Image("4:0")
	ok(t, err)
	want = "undone:   move from a in /store/s\nlost:     mkdir d in /store/t\n"
	if got := img.Story(); got != want || list(img) != "s/a=A" {
		t.Errorf("of %s got\n%swant\n%s", list(img), got, want)
	}
	for _, bad := range []string{"", "x", "2", "2:", "x:1"} {
		if _, err := d.Image(bad); err == nil {
			t.Errorf("description %q was taken", bad)
		}
	}
}
