//go:build unix

package crashtest

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// However a file is moved about, between directories that are made and removed and
// under names that others use before and after it, no image lacks it, one image is
// what processes see, and the only one once all is synced.
func TestMovesNeverLoseAFile(t *testing.T) {
	back, both := false, false
	for seed := range uint64(100) {
		y := newYard(t)
		w := walker{yard: y, r: rand.New(rand.NewPCG(seed, 0)), at: y.s, name: "a", fails: seed%5 == 0}
		for range 4 + seed%12 {
			w.step()
		}
		images, visible := 0, false
		for img := range y.d.Images(100, seed) {
			images++
			found := strings.Count(list(img), "=A")
			if found == 0 {
				t.Fatalf("seed %d: image %s lost the file: %s\n%s\nafter\n%s", seed, img.Desc(), list(img), img.Story(), w.log.String())
			}
			back, both = back || !img.Exists(w.path), both || found > 1
			visible = visible || identity(img.root) == identity(y.d.root)
			if again, err := y.d.Image(img.Desc()); err != nil || identity(again.root) != identity(img.root) {
				t.Fatalf("seed %d: image %s comes back as another, %v", seed, img.Desc(), err)
			}
		}
		if !visible {
			t.Fatalf("seed %d: none of %d images is what processes see: %s\nafter\n%s", seed, images, list(y.d), w.log.String())
		}
		if w.syncAll(); w.fails {
			continue
		}
		if got := outcomes(t, y.d); len(got) != 1 || got[0] != list(y.d) {
			t.Fatalf("seed %d: synced, and yet there are %q\nafter\n%s", seed, got, w.log.String())
		}
	}
	if !back || !both {
		t.Errorf("the runs met too little: a move undone %v, both names %v", back, both)
	}
}

// A walker moves the file A about. Of what it tries much is refused.
type walker struct {
	yard
	r     *rand.Rand
	dirs  []made
	at    fsguard.Dir // where A is
	name  string
	path  string // of A
	fails bool   // syncs fail now and then
	log   strings.Builder
}

// A made directory may have been removed again.
type made struct {
	in   fsguard.Dir
	name string
	dir  fsguard.Dir
}

func (w *walker) step() {
	dirs := []fsguard.Dir{w.s, w.k, w.u}
	for _, m := range w.dirs {
		dirs = append(dirs, m.dir)
	}
	d, name := dirs[w.r.IntN(len(dirs))], string("abde"[w.r.IntN(4)])
	here := d == w.at && name == w.name
	op, err := "", error(nil)
	switch x := w.r.IntN(16); {
	case x < 6:
		if op, err = "move A to", fs.ErrExist; d != w.at {
			err = w.at.MoveNew(w.name, d, name)
		}
		if err == nil {
			w.at, w.name = d, name
		}
	case x < 8:
		if op, err = "mkdir", d.Mkdir(name); err == nil {
			w.dirs = append(w.dirs, made{d, name, w.dir(d, name)})
		}
	case x < 11:
		if op = "removedir"; len(w.dirs) > 0 {
			m := w.dirs[w.r.IntN(len(w.dirs))]
			d, name, err = m.in, m.name, m.in.RemoveDir(m.name)
		}
	case x == 11 && w.fails:
		op = "fail to sync"
		d.(*simDir).failSync()
	case x < 13:
		op, err = "sync", d.Sync()
	case here:
		op = "nothing at"
	case x == 13:
		op, err = "create", d.WriteFile(name, []byte("N"))
	case x == 14:
		op, err = "remove", d.Remove(name)
	default:
		from := dirs[w.r.IntN(len(dirs))]
		w.ok(w.s.WriteFile("x", []byte("X")))
		op, err = "move x to", from.Move("x", d, name)
	}
	fmt.Fprintln(&w.log, op, w.where(d), name, err)
	w.path = w.where(w.at) + "/" + w.name
}

func (w *walker) where(d fsguard.Dir) string { return w.d.paths()[d.(*simDir).n] }

func (w *walker) syncAll() {
	for _, m := range append(w.dirs, made{dir: w.root}, made{dir: w.s}, made{dir: w.k}, made{dir: w.u}) {
		w.ok(m.dir.Sync())
	}
}
