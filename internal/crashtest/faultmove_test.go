//go:build unix

package crashtest

import (
	"slices"
	"syscall"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// Moves and links know their two directories by both paths, and are counted by kind.
func TestMovesAreTraced(t *testing.T) {
	_, p, _ := store(t)
	b := newBench(t, p, "/store")
	b.w.Arm(Plan{})
	ok(t, b.dir.Link("f", b.sub, "link"))
	ok(t, b.dir.Move("f", b.sub, "moved"))
	ok(t, b.sub.MoveNew("moved", b.dir, "back"))
	ok(t, b.dir.MoveNew("back", b.dir, "here"))
	wantErr(t, b.dir.MoveNew("here", b.sub, "link"), fsguard.OpMoveNew, syscall.EEXIST)
	want := "    1 link sub/link from f\n    2 move sub/moved from f\n    3 movenew back from sub/moved\n" +
		"    4 movenew here from back\n    5 movenew sub/link from here = movenew here to link: file exists\n"
	if got := b.w.Trace(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	counts := []int{b.w.Count(fsguard.OpLink), b.w.Count(fsguard.OpMove), b.w.Count(fsguard.OpMoveNew), b.w.Count(fsguard.OpRename)}
	if !slices.Equal(counts, []int{1, 1, 3, 0}) {
		t.Errorf("counts are %v", counts)
	}
}

// A plan matches the new name, below the root of the directory that it is in.
func TestMovesAreMatched(t *testing.T) {
	_, p, _ := store(t)
	b := newBench(t, p, "/store")
	b.w.Arm(FailMatching(func(op fsguard.Op, path string) bool {
		return op == fsguard.OpMove && path == "sub/x"
	}, syscall.EIO, 1))
	ok(t, b.dir.Link("f", b.sub, "x"))
	ok(t, b.sub.Remove("x"))
	wantErr(t, b.dir.Move("f", b.sub, "x"), fsguard.OpMove, syscall.EIO)
	must(b.dir.Lstat("f"))(t)
	ok(t, b.dir.Move("f", b.sub, "x"))
}

// The other directory is used too: closed, it is a broken rule.
func TestMoveToAClosedDirectory(t *testing.T) {
	for name, inner := range map[string]func() (fsguard.FS, string){
		"sim": func() (fsguard.FS, string) { _, p, _ := store(t); return p, "/store" },
		"os":  func() (fsguard.FS, string) { return fsguard.OS(), t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			fs, root := inner()
			b := newBench(t, fs, root)
			b.w.Arm(Plan{})
			ok(t, b.sub.Close())
			if err := b.dir.Move("f", b.sub, "x"); err == nil {
				t.Error("moved into a closed directory")
			}
			want := []string{"move sub/x (operation 1) on a closed description"}
			if got := b.w.Violations(); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
