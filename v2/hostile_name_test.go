//go:build unix

package holdfast

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// IDs and queue names are no file names: those that a filesystem would fold into one, or
// would not take for their length, are messages like any other.
func TestNamesThatFilesystemsFold(t *testing.T) {
	s, dir := newTestStore(t, nil)
	long := strings.Repeat("n", queue.MaxNameBytes)
	deep := strings.Join([]string{long, long, long}, "/") // longer than a file name may be
	for _, name := range []string{"mail", "Mail", "MAIL", long, deep} {
		if queue.CheckQueue(name) != nil {
			continue
		}
		ids := []string{"a", "A", long, strings.ToUpper(long)}
		for _, id := range ids {
			mustEnqueue(t, s, name, small(id))
		}
		claimed := mustClaim(t, s, name, queue.ClaimOptions{Max: 9})
		if len(claimed) != len(ids) {
			t.Fatalf("%.20s: %d messages, want %d", name, len(claimed), len(ids))
		}
		for i, d := range claimed {
			if d.Receipt.ID != ids[i] || string(d.Payload) != string(small(ids[i]).Payload) {
				t.Errorf("%.20s: %s with %s", name, d.Receipt.ID, d.Payload)
			}
		}
	}
	// No name of the store's own differs from another, or from its lower case, by case only.
	mustDo(t, filepath.WalkDir(filepath.Join(dir, namespaceDir), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() != strings.ToLower(e.Name()) {
			t.Errorf("%s has upper case", e.Name())
		}
		return err
	}))
}

// A root whose name is as long as a name may be, and one whose path is.
func TestLongRoots(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("r", 255)
	deep := t.TempDir()
	for len(deep)+2*256 < 3900 { // 4096 with what is below
		deep = filepath.Join(deep, longest)
	}
	mustDo(t, os.MkdirAll(deep, 0o700))
	for _, root := range []string{filepath.Join(t.TempDir(), longest), filepath.Join(deep, longest)} {
		s, err := Create(t.Context(), root, nil)
		mustDo(t, err)
		mustEnqueue(t, s, "mail", small("a"))
		mustClaim(t, s, "mail", queue.ClaimOptions{WithoutHolder: true})
		mustDo(t, s.Close())
		mustVerify(t, root)
	}
	if _, err := Create(t.Context(), filepath.Join(t.TempDir(), longest+"r"), nil); err == nil || !strings.Contains(err.Error(), "name too long") {
		t.Errorf("a name of 256 bytes: %v", err)
	}
}

// Modes and owners of what is inside: the root keeps others out, so a file that others
// might read does no harm; one that this process may not write is an error that names it.
func TestModesAndOwnersInside(t *testing.T) {
	mode := func(perm fs.FileMode, names ...string) func(d *crashtest.Disk) {
		return func(d *crashtest.Disk) {
			for _, name := range names {
				d.Chmod(inSim(name), perm)
			}
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(d *crashtest.Disk)
		names string // in the error of an enqueue; empty: it works
	}{
		{"files that others may read", mode(0o644, stateFile, formatFile, lockFile, reserveFile), ""},
		{"a state that nobody may write", mode(0o400, stateFile), ""},
		{"a state that nobody may read", mode(0o200, stateFile), stateFile},
		{"a lock that nobody may write", mode(0o400, lockFile), lockFile},
		{"a format that nobody may read", mode(0, formatFile), formatFile},
		{"objects/ that nobody may write", mode(0o500, objectsDir), "permission denied"},
		{"a namespace of another user", func(d *crashtest.Disk) { d.Chown(inSim(), 4711) }, namespaceDir},
		{"a state of another user", func(d *crashtest.Disk) { d.Chown(inSim(stateFile), 4711) }, stateFile},
		{"a lock of another user", func(d *crashtest.Disk) { d.Chown(inSim(lockFile), 4711) }, lockFile},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, s := simStore(t, nil)
			mustEnqueue(t, s, "mail", small("a"))
			mustDo(t, s.Close())
			c.spoil(d)
			before := d.Tree()
			err := func() error {
				s, err := Open(t.Context(), simDir, &Options{fs: d.Process()})
				if err != nil {
					return err
				}
				defer s.Close()
				return second(s.Enqueue(t.Context(), "mail", small("b")))
			}()
			switch {
			case c.names == "" && err != nil:
				t.Errorf("enqueue: %v", err)
			case c.names != "" && (err == nil || !strings.Contains(err.Error(), c.names)):
				t.Errorf("enqueue: %v; want an error that names %s", err, c.names)
			case err != nil && d.Tree() != before:
				t.Errorf("refused, and changed:\n%s", d.Tree())
			}
		})
	}
}
