//go:build unix

package crashtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// A yard is a disk with the directories s, t and u, and the file A at s/a.
type yard struct {
	t       *testing.T
	d       *Disk
	root    fsguard.Dir
	s, k, u fsguard.Dir
}

func newYard(t *testing.T) yard {
	t.Helper()
	d, _, root := store(t)
	for _, name := range []string{"s", "t", "u"} {
		d.MkdirAll("/store/" + name)
	}
	d.WriteRaw("/store/s/a", []byte("A"))
	dir := func(name string) fsguard.Dir { return must(root.OpenDir(name))(t) }
	return yard{t, d, root, dir("s"), dir("t"), dir("u")}
}

func (y yard) dir(in fsguard.Dir, name string) fsguard.Dir {
	y.t.Helper()
	return must(in.OpenDir(name))(y.t)
}

func (y yard) ok(errs ...error) {
	y.t.Helper()
	for _, err := range errs {
		ok(y.t, err)
	}
}

// list shows a disk in one line: s/a=A t/d/ for the file at s/a with the content A
// and the directory t/d. The directories of the yard are left out.
func list(d *Disk) string {
	var out []string
	for line := range strings.Lines(d.Tree()) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "/store/")
		if path, content, file := strings.Cut(line, " "); file {
			line = path + "=" + strings.Trim(content, `"`)
		}
		if !slices.Contains([]string{"", "s/", "t/", "u/"}, line) {
			out = append(out, line)
		}
	}
	return strings.Join(out, " ")
}

// identity shows which inode stands where: two images may differ in that only.
func identity(n *inode) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(n.names)) {
		child := n.names[name]
		fmt.Fprintf(&b, "%s:%d%q(%s)", name, child.birth, child.data, identity(child))
	}
	return b.String()
}

// outcomes lists what the images of d show, which are no two the same, and which
// their descriptions make again.
func outcomes(t *testing.T, d *Disk) []string {
	t.Helper()
	seen, lists := map[string]string{}, map[string]bool{}
	for img := range d.Images(1<<14, 0) {
		key := identity(img.root)
		if other, twice := seen[key]; twice {
			t.Errorf("images %s and %s are the same: %s", other, img.Desc(), list(img))
		}
		seen[key], lists[list(img)] = img.Desc(), true
		if again, err := d.Image(img.Desc()); err != nil || identity(again.root) != key {
			t.Errorf("image %s comes back as another: %v, %s, was %s", img.Desc(), err, list(again), list(img))
		}
	}
	if count, all := d.CountImages(1<<14, 0); !all || count != len(seen) {
		t.Errorf("CountImages says %d, %v; there are %d", count, all, len(seen))
	}
	if !lists[list(d)] {
		t.Errorf("none is what processes see: %s", list(d))
	}
	return slices.Sorted(maps.Keys(lists))
}

// The sets are worked out by hand from the model in doc.go.
func TestImagesOfLinksAndMoves(t *testing.T) {
	move := func(y yard) { y.ok(y.s.Move("a", y.k, "e")) }
	over := func(y yard) {
		y.d.WriteRaw("/store/t/e", []byte("E"))
		move(y)
	}
	made := func(y yard) fsguard.Dir { // a directory t/d with A in it
		y.ok(y.k.Mkdir("d"))
		d := y.dir(y.k, "d")
		y.ok(y.s.MoveNew("a", d, "e"))
		return d
	}
	record := func(y yard) fsguard.Dir { // the durable t/d with the file R is emptied and removed
		y.d.MkdirAll("/store/t/d")
		y.d.WriteRaw("/store/t/d/e", []byte("R"))
		d := y.dir(y.k, "d")
		y.ok(y.s.Remove("a"), y.s.Sync(), d.MoveNew("e", y.s, "b"), y.k.RemoveDir("d"))
		return d
	}
	again := func(y yard) { // and t/d is made again, with the file N
		record(y)
		y.ok(y.k.Mkdir("d"))
		n := must(y.dir(y.k, "d").Create("n"))(y.t)
		must(n.WriteAt([]byte("N"), 0))(y.t)
		y.ok(n.Sync())
	}
	chain := func(y yard) { y.ok(y.s.Link("a", y.s, "b"), y.s.Move("b", y.k, "e"), y.k.Remove("e")) }
	onward := func(y yard) { y.ok(y.s.Move("a", y.k, "e"), y.k.Move("e", y.u, "f")) }
	reuse := func(y yard) { // the name that a move has freed
		move(y)
		y.d.WriteRaw("/store/s/n", []byte("N"))
		y.ok(y.s.Rename("n", "a"))
	}
	for _, c := range []struct {
		name string
		do   func(y yard)
		want []string
	}{
		{"link", func(y yard) { y.ok(y.s.Link("a", y.k, "b")) }, []string{"s/a=A", "s/a=A t/b=A"}},
		{"link, source synced", func(y yard) { y.ok(y.s.Link("a", y.k, "b"), y.s.Sync()) }, []string{"s/a=A", "s/a=A t/b=A"}},
		{"link, target synced", func(y yard) { y.ok(y.s.Link("a", y.k, "b"), y.k.Sync()) }, []string{"s/a=A t/b=A"}},
		{"link and remove", func(y yard) { y.ok(y.s.Link("a", y.s, "b"), y.s.Remove("a")) },
			[]string{"s/a=A", "s/a=A s/b=A", "s/b=A", ""}},

		{"move", move, []string{"s/a=A", "s/a=A t/e=A", "t/e=A"}},
		{"move, target synced", func(y yard) { move(y); y.ok(y.k.Sync()) }, []string{"s/a=A t/e=A", "t/e=A"}},
		{"move, source synced", func(y yard) { move(y); y.ok(y.s.Sync()) }, []string{"t/e=A"}},
		{"move, both synced", func(y yard) { move(y); y.ok(y.k.Sync(), y.s.Sync()) }, []string{"t/e=A"}},
		{"new move", func(y yard) { y.ok(y.s.MoveNew("a", y.k, "e")) }, []string{"s/a=A", "s/a=A t/e=A", "t/e=A"}},
		{"new move in one directory", func(y yard) { y.ok(y.s.MoveNew("a", y.s, "e")) }, []string{"s/a=A", "s/e=A"}},
		{"move in one directory", func(y yard) { y.ok(y.s.Move("a", y.s, "e")) }, []string{"s/a=A", "s/e=A"}},
		{"move over its own other name", func(y yard) {
			y.d.HardLink("/store/s/a", "/store/t/e")
			move(y)
		}, []string{"s/a=A t/e=A"}},

		{"move over a file", over, []string{"s/a=A t/e=E", "s/a=A t/e=A", "t/e=A"}},
		{"move over a file, target synced", func(y yard) { over(y); y.ok(y.k.Sync()) }, []string{"s/a=A t/e=A", "t/e=A"}},
		{"move over a file, source synced", func(y yard) { over(y); y.ok(y.s.Sync()) }, []string{"t/e=A"}},

		{"made", func(y yard) { made(y) }, []string{"s/a=A", "s/a=A t/d/", "s/a=A t/d/ t/d/e=A", "t/d/ t/d/e=A"}},
		{"made, itself synced", func(y yard) { y.ok(made(y).Sync()) }, []string{"s/a=A", "s/a=A t/d/ t/d/e=A", "t/d/ t/d/e=A"}},
		{"made, its name not synced", func(y yard) { y.ok(made(y).Sync(), y.s.Sync()) }, []string{"s/a=A", "t/d/ t/d/e=A"}},
		{"made, its name synced", func(y yard) { made(y); y.ok(y.k.Sync()) },
			[]string{"s/a=A t/d/", "s/a=A t/d/ t/d/e=A", "t/d/ t/d/e=A"}},
		{"made, its name synced after the source", func(y yard) { made(y); y.ok(y.s.Sync(), y.k.Sync()) }, []string{"t/d/ t/d/e=A"}},
		{"made in what was made", func(y yard) {
			y.ok(y.k.Mkdir("d"))
			d := y.dir(y.k, "d")
			y.ok(d.Mkdir("d"))
			dd := y.dir(d, "d")
			y.ok(y.s.Move("a", dd, "e"), y.s.Sync(), dd.Sync(), d.Sync())
		}, []string{"s/a=A", "t/d/ t/d/d/ t/d/d/e=A"}},
		{"made, emptied and removed", func(y yard) {
			d := made(y)
			y.ok(d.Move("e", y.u, "f"), y.k.RemoveDir("d"), y.k.Sync())
		}, []string{"s/a=A u/f=A", "u/f=A"}},

		{"record", func(y yard) { record(y) }, []string{"t/d/ t/d/e=R", "s/b=R t/d/ t/d/e=R", "s/b=R t/d/", "s/b=R"}},
		{"record, target synced", func(y yard) { record(y); y.ok(y.s.Sync()) }, []string{"s/b=R t/d/ t/d/e=R", "s/b=R t/d/", "s/b=R"}},
		{"record, itself synced", func(y yard) { y.ok(record(y).Sync()) }, []string{"s/b=R t/d/", "s/b=R"}},
		{"record, its name synced", func(y yard) { record(y); y.ok(y.k.Sync()) }, []string{"s/b=R"}},
		{"record made again", again, []string{
			"t/d/ t/d/e=R", "s/b=R t/d/ t/d/e=R", "s/b=R t/d/", "s/b=R", "s/b=R t/d/ t/d/n=N",
		}},
		{"record made again and removed", func(y yard) { again(y); y.d.Remove("/store/t/d") }, []string{"s/b=R"}},
		{"removed directory with content", func(y yard) {
			y.d.MkdirAll("/store/t/d")
			y.d.WriteRaw("/store/t/d/f", []byte("F"))
			d := y.dir(y.k, "d")
			y.ok(must(d.Create("g"))(y.t).Sync(), d.Remove("f"), d.Remove("g"), y.k.RemoveDir("d"))
		}, []string{"s/a=A", "s/a=A t/d/", "s/a=A t/d/ t/d/f=F", "s/a=A t/d/ t/d/g=", "s/a=A t/d/ t/d/f=F t/d/g="}},
		{"removed directory comes back as it was synced", func(y yard) {
			y.d.MkdirAll("/store/t/d")
			y.d.WriteRaw("/store/t/d/f", []byte("F"))
			d := y.dir(y.k, "d")
			y.ok(d.Remove("f"), d.Sync(), y.k.RemoveDir("d"), y.k.Mkdir("d"))
			y.ok(must(y.dir(y.k, "d").Create("n"))(y.t).Sync(), y.dir(y.k, "d").Sync())
		}, []string{"s/a=A", "s/a=A t/d/", "s/a=A t/d/ t/d/n="}},

		{"link, move, remove", chain, []string{"s/a=A", "s/a=A s/b=A", "s/a=A t/e=A", "s/a=A s/b=A t/e=A"}},
		{"link, move, remove, source synced", func(y yard) { chain(y); y.ok(y.s.Sync()) }, []string{"s/a=A", "s/a=A t/e=A"}},
		{"link, move, remove, target synced", func(y yard) { chain(y); y.ok(y.k.Sync()) }, []string{"s/a=A", "s/a=A s/b=A"}},
		{"link, move, remove, all synced", func(y yard) { chain(y); y.ok(y.k.Sync(), y.s.Sync()) }, []string{"s/a=A"}},
		{"move, remove", func(y yard) { move(y); y.ok(y.k.Remove("e")) }, []string{"s/a=A", "s/a=A t/e=A", "t/e=A", ""}},
		{"move, remove, target synced", func(y yard) { move(y); y.ok(y.k.Remove("e"), y.k.Sync()) }, []string{"s/a=A", ""}},
		{"move, remove, source synced", func(y yard) { move(y); y.ok(y.k.Remove("e"), y.s.Sync()) }, []string{"t/e=A", ""}},

		{"onward", onward, []string{
			"s/a=A", "s/a=A u/f=A", "s/a=A t/e=A", "t/e=A", "s/a=A t/e=A u/f=A", "t/e=A u/f=A", "u/f=A",
		}},
		{"onward, first synced", func(y yard) { onward(y); y.ok(y.s.Sync()) }, []string{"t/e=A", "t/e=A u/f=A", "u/f=A"}},
		{"onward, second synced", func(y yard) { onward(y); y.ok(y.k.Sync()) }, []string{"s/a=A u/f=A", "u/f=A"}},
		{"onward, third synced", func(y yard) { onward(y); y.ok(y.u.Sync()) },
			[]string{"s/a=A u/f=A", "s/a=A t/e=A u/f=A", "t/e=A u/f=A", "u/f=A"}},
		{"there and back", func(y yard) { move(y); y.ok(y.k.Move("e", y.s, "a")) }, []string{"s/a=A", "s/a=A t/e=A", "t/e=A"}},
		{"renamed first", func(y yard) { y.ok(y.s.Rename("a", "b"), y.s.Move("b", y.k, "e")) },
			[]string{"s/a=A", "s/b=A", "s/a=A t/e=A", "s/b=A t/e=A", "t/e=A"}},

		{"name used again", reuse, []string{
			"s/a=A s/n=N", "s/a=A s/n=N t/e=A", "s/n=N t/e=A", "s/a=N t/e=A",
		}},
		{"name used again, synced", func(y yard) { reuse(y); y.ok(y.s.Sync()) }, []string{"s/a=N t/e=A"}},
		{"name used again and removed", func(y yard) { reuse(y); y.ok(y.s.Remove("a")) }, []string{
			"s/a=A s/n=N", "s/a=A s/n=N t/e=A", "s/n=N t/e=A", "s/a=N t/e=A", "t/e=A",
		}},

		{"source's sync fails", func(y yard) {
			move(y)
			y.s.(*simDir).failSync()
			y.ok(y.s.Sync(), y.k.Sync())
		}, []string{"s/a=A t/e=A", "t/e=A"}},
		{"target's sync fails", func(y yard) {
			move(y)
			y.k.(*simDir).failSync()
			y.ok(y.k.Sync())
		}, []string{"s/a=A", "s/a=A t/e=A", "t/e=A"}},
		{"renamed before a failed sync", func(y yard) {
			y.ok(y.s.Rename("a", "b"))
			y.s.(*simDir).failSync()
			y.ok(y.s.Move("b", y.k, "e"), y.s.Sync())
		}, []string{"t/e=A"}},
		{"what is durable takes along what it rests on", func(y yard) {
			move(y)
			y.s.(*simDir).failSync()
			y.k.(*simDir).failSync()
			y.ok(must(y.s.Create("a"))(y.t).Sync(), y.s.Sync())
		}, []string{"s/a= t/e=A"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			y := newYard(t)
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

// With too many operations to try all there is a sample, of which each image is
// another one too.
func TestSamplesOfMoves(t *testing.T) {
	y := newYard(t)
	y.ok(y.s.Move("a", y.k, "e"), y.k.Move("e", y.u, "f"))
	for i := range most {
		y.ok(y.root.Mkdir(fmt.Sprint(i)))
	}
	if n, all := y.d.CountImages(200, 0); all || n != 200 {
		t.Errorf("CountImages says %d, %v", n, all)
	}
	seen := map[string]bool{}
	for img := range y.d.Images(200, 0) {
		key := identity(img.root)
		again, err := y.d.Image(img.Desc())
		if seen[key] || err != nil || identity(again.root) != key {
			t.Errorf("image %s comes twice or not again, %v: %s", img.Desc(), err, list(img))
		}
		seen[key] = true
	}
}
