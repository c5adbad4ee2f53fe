//go:build unix

package holdfast

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// changing are the operations that change a disk, or what is durable on it.
var changing = []fsguard.Op{
	fsguard.OpMkdir, fsguard.OpCreate, fsguard.OpWriteFile, fsguard.OpRename, fsguard.OpRemove,
	fsguard.OpRemoveDir, fsguard.OpWrite, fsguard.OpAllocate,
}

// treeOf tells everything about a tree that a change would change: names, types,
// modes, inodes, times, contents.
func treeOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		what := fmt.Sprintf("mode %o, inode %d, links %d, size %d, mtime %d", st.Mode, st.Ino, st.Nlink, st.Size, st.Mtim.Nano())
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			what += fmt.Sprintf(", %x", sha256.Sum256(data))
		case unix.S_IFLNK:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			what += " to " + target
		}
		tree[path] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// unchanged fails the test if the tree is not exactly as it was.
func unchanged(t testing.TB, dir string, before map[string]string) {
	t.Helper()
	after := treeOf(t, dir)
	for path, was := range before {
		if is := after[path]; is != was {
			t.Errorf("%s changed:\n was %s\n  is %q", path, was, is)
		}
	}
	for path := range after {
		if _, ok := before[path]; !ok {
			t.Errorf("%s is new", path)
		}
	}
}

// watched gives options whose operations on the real filesystem are noted. No call
// may keep a descriptor after it failed, or sync one twice after a failure.
func watched(t testing.TB) (*Options, *crashtest.Wrapper) {
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	t.Cleanup(func() {
		for _, v := range w.Violations() {
			t.Error(v)
		}
	})
	return &Options{fs: w}, w
}
