//go:build unix

package holdfast

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// Open finds a store that a Create in progress is making either not at all or whole.
// It never calls a Create that is still at work an interrupted one.
func TestOpenDuringCreate(t *testing.T) {
	t.Parallel()
	for range 40 {
		d := crashtest.NewDisk()
		d.MkdirAll("/data")
		var wg sync.WaitGroup
		made := make(chan struct{})
		wg.Go(func() {
			defer close(made)
			s, err := Create(t.Context(), simDir, &Options{fs: d.Process()})
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
		for range 3 {
			wg.Go(func() {
				p := d.Process()
				for last := false; ; {
					select {
					case <-made:
						last = true
					default:
					}
					s, err := Open(t.Context(), simDir, &Options{fs: p})
					if err == nil {
						s.Close()
						break
					}
					if !errors.Is(err, ErrNoStore) || last {
						t.Errorf("open beside a create: %v", err)
						break
					}
				}
				if n := p.Open(); n != 0 {
					t.Errorf("%d descriptors are left open", n)
				}
			})
		}
		wg.Wait()
	}
}

// A store that was moved, or of which a part was put in the place of another, is
// noticed by the next call, which changes nothing.
func TestReplacedWhileOpen(t *testing.T) {
	t.Parallel()
	other := func(t *testing.T, dir string) string {
		s, err := Create(t.Context(), dir+"-other", nil)
		if err != nil {
			t.Fatal(err)
		}
		mustEnqueue(t, s, "mail", small("theirs"))
		s.Close()
		return dir + "-other"
	}
	swap := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			ours, theirs := filepath.Join(dir, namespaceDir, name), filepath.Join(other(t, dir), namespaceDir, name)
			mustDo(t, os.Rename(ours, ours+"-ours"), os.Rename(theirs, ours), os.Rename(ours+"-ours", theirs))
		}
	}
	for _, c := range []struct {
		name, names string
		do          func(t *testing.T, dir string)
		want        error
	}{
		{"the root was moved", "store", func(t *testing.T, dir string) { mustDo(t, os.Rename(dir, dir+"-moved")) }, ErrReplaced},
		{"the root was swapped", "store", func(t *testing.T, dir string) {
			there := other(t, dir)
			mustDo(t, os.Rename(dir, dir+"-moved"), os.Rename(there, dir))
		}, ErrReplaced},
		{"the root is another directory", "store", func(t *testing.T, dir string) {
			mustDo(t, os.Rename(dir, dir+"-moved"), os.Mkdir(dir, 0o700))
		}, ErrReplaced},
		{"the root became a symlink to another", "store", func(t *testing.T, dir string) {
			mustDo(t, os.Rename(dir, dir+"-moved"), os.Symlink(other(t, dir), dir))
		}, ErrReplaced},
		{"the namespace was swapped", namespaceDir, swap(""), ErrReplaced},
		{"the namespace is gone", namespaceDir, func(t *testing.T, dir string) {
			mustDo(t, os.Rename(filepath.Join(dir, namespaceDir), dir+"-away"))
		}, ErrReplaced},
		{"the lock was swapped", lockFile, swap(lockFile), ErrReplaced},
		{"the lock is gone", lockFile, func(t *testing.T, dir string) {
			mustDo(t, os.Remove(filepath.Join(dir, namespaceDir, lockFile)))
		}, ErrReplaced},
		{"the lock was removed and made anew", lockFile, func(t *testing.T, dir string) {
			path := filepath.Join(dir, namespaceDir, lockFile)
			mustDo(t, os.Remove(path), os.WriteFile(path, []byte(blankRecord), 0o600))
		}, ErrReplaced},
		{"the format was swapped", formatFile, swap(formatFile), ErrReplaced},
		{"objects/ was swapped", objectsDir, swap(objectsDir), ErrReplaced},
		{"the state is another store's", stateFile, swap(stateFile), ErrCorrupt},
		{"the state is gone", stateFile, func(t *testing.T, dir string) {
			mustDo(t, os.Remove(filepath.Join(dir, namespaceDir, stateFile)))
		}, ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			o, w := watched(t)
			s, err := Create(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			look, err := OpenReadOnly(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			defer look.Close()
			mustEnqueue(t, s, "mail", small("a"))

			c.do(t, dir)
			before := treeOf(t, filepath.Dir(dir))
			w.Arm(crashtest.Plan{})
			for i := range 2 { // the second call knows no better
				_, err := s.Enqueue(t.Context(), "mail", small("b"))
				refusal(t, "enqueue", err, c.want, c.names)
				_, err = s.Claim(t.Context(), "mail", queue.ClaimOptions{})
				refusal(t, "claim", err, c.want, c.names)
				_, err = look.Status(t.Context(), queue.StatusOptions{})
				refusal(t, "status", err, c.want, c.names)
				if t.Failed() {
					t.Fatalf("in round %d", i)
				}
			}
			if n := w.Count(changing...); n > 0 {
				t.Errorf("%d operations that change something:\n%s", n, w.Trace())
			}
			unchanged(t, filepath.Dir(dir), before)
		})
	}
}

// However state.json is changed between two calls of an open handle, the second one
// does not go on from what it remembers.
func TestChangedStateIsNoticed(t *testing.T) {
	// later gives the state as another program would have left it: message "b" more.
	later := func(t *testing.T, text []byte, store token) []byte {
		st, err := decodeState(text, stateFile, store)
		mustDo(t, err)
		d := newDraft(st, namedToken("a later commit"), systemClock{}.Now(), 0)
		if _, err := d.enqueue("mail", arrival{id: "b", payload: []byte("2")}, 1<<20); err != nil {
			t.Fatal(err)
		}
		r := d.st.queues[0].slots[1].pending
		r.object = namedToken("an object")
		return encodeState(nil, d.st)
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, path string, s *Store)
		check  func(t *testing.T, s *Store)
	}{
		{"by rename", func(t *testing.T, path string, s *Store) {
			mustDo(t, os.WriteFile(path+".new", later(t, mustRead(t, path), s.id), 0o600), os.Rename(path+".new", path))
		}, pendingAre(2)},
		{"in place", func(t *testing.T, path string, s *Store) {
			mustDo(t, os.WriteFile(path, later(t, mustRead(t, path), s.id), 0o600))
		}, pendingAre(2)},
		{"in place, same size, other revision", func(t *testing.T, path string, s *Store) {
			text := bytes.Replace(mustRead(t, path), []byte(`"revision":"2"`), []byte(`"revision":"8"`), 1)
			mustDo(t, os.WriteFile(path, inPlaceOf(text, resummed(text)), 0o600))
		}, func(t *testing.T, s *Store) {
			st, err := s.Status(t.Context(), queue.StatusOptions{})
			if err != nil || st.Revision != 8 {
				t.Errorf("revision %d, %v; want 8", st.Revision, err)
			}
		}},
		{"by rename, same bytes", func(t *testing.T, path string, s *Store) {
			mustDo(t, os.WriteFile(path+".new", mustRead(t, path), 0o600), os.Rename(path+".new", path))
		}, pendingAre(1)},
		{"in place, cut off", func(t *testing.T, path string, s *Store) {
			mustDo(t, os.Truncate(path, 300))
		}, func(t *testing.T, s *Store) {
			_, err := s.Status(t.Context(), queue.StatusOptions{})
			refusal(t, "status", err, ErrCorrupt, stateFile)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			s, err := Create(t.Context(), dir, nil)
			mustDo(t, err)
			defer s.Close()
			mustEnqueue(t, s, "mail", small("a"))
			parses := s.parses.Load()
			c.change(t, filepath.Join(dir, namespaceDir, stateFile), s)
			c.check(t, s)
			if got := s.parses.Load() - parses; got != 1 {
				t.Errorf("the changed file was parsed %d times, want once", got)
			}
		})
	}
}

func pendingAre(n uint64) func(t *testing.T, s *Store) {
	return func(t *testing.T, s *Store) {
		t.Helper()
		st, err := s.Status(t.Context(), queue.StatusOptions{Queues: []string{"mail"}})
		if err != nil || st.Queues["mail"].Pending != n {
			t.Errorf("status %+v, %v; want %d pending", st, err, n)
		}
	}
}

// Where flock does not work, nothing is made and nothing is opened.
func TestT26NoFlock(t *testing.T) {
	for _, errno := range []error{syscall.ENOSYS, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.EINVAL, syscall.ENOLCK} {
		t.Run(fmt.Sprint(errno), func(t *testing.T) {
			unsupported(t, func(d *crashtest.Disk) { d.SetLockError(errno) }, errno, true)

			// An open store stops, and goes on when flock works again.
			d, s := simStore(t, nil)
			mustEnqueue(t, s, "mail", small("a"))
			before := d.Tree()
			d.SetLockError(errno)
			for _, write := range writers[:4] {
				refusal(t, write.name, write.do(t.Context(), s), ErrFilesystem, "flock")
			}
			refusal(t, "status", second(s.Status(t.Context(), queue.StatusOptions{})), ErrFilesystem, "flock")
			if after := d.Tree(); after != before {
				t.Errorf("changed:\n%s", after)
			}
			d.SetLockError(nil)
			mustEnqueue(t, s, "mail", small("b"))
		})
	}
}

// Where a directory cannot be synced, nothing is made and nothing is opened but for
// looking.
func TestT15NoDirectorySync(t *testing.T) {
	for _, errno := range []error{syscall.EINVAL, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOSYS} {
		t.Run(fmt.Sprint(errno), func(t *testing.T) {
			unsupported(t, func(d *crashtest.Disk) { d.SetSyncDirError(errno) }, errno, false)
		})
	}
}

func TestNetworkFilesystem(t *testing.T) {
	unsupported(t, func(d *crashtest.Disk) { d.SetSpace(fsguard.Space{Type: "nfs", Network: true}) }, nil, true)
}

// unsupported checks every way into a store on a filesystem that lacks something.
func unsupported(t *testing.T, lack func(*crashtest.Disk), errno error, looksToo bool) {
	type way struct {
		name string
		do   func(context.Context, string, *Options) (*Store, error)
	}
	ways := []way{{"Create", Create}, {"ResumeCreate", ResumeCreate}, {"Open", Open}, {"OpenOrCreate", OpenOrCreate}}
	if looksToo {
		ways = append(ways, way{"OpenReadOnly", OpenReadOnly})
	}
	for _, there := range []string{"nothing", "an empty root", "a store"} {
		for _, w := range ways {
			d := crashtest.NewDisk()
			d.MkdirAll("/data")
			switch there {
			case "an empty root":
				d.MkdirAll(simDir)
			case "a store":
				s := simCreate(t, d, nil)
				mustEnqueue(t, s, "mail", small("a"))
				s.Close()
			}
			opens := slices.Contains([]string{"Open", "OpenReadOnly"}, w.name)
			if opens && there == "nothing" || w.name == "ResumeCreate" && there == "nothing" {
				continue
			}
			before := d.Tree()
			lack(d)
			p := d.Process()
			s, err := w.do(t.Context(), simDir, &Options{fs: p})
			switch {
			case err == nil:
				t.Errorf("%s where %s is: no error", w.name, there)
				s.Close()
			case opens && there == "an empty root" && errors.Is(err, ErrNoStore):
			case !errors.Is(err, ErrFilesystem), errno != nil && !errors.Is(err, errno):
				t.Errorf("%s where %s is: %v; want %v and %v", w.name, there, err, ErrFilesystem, errno)
			}
			if after := d.Tree(); after != before {
				t.Errorf("%s where %s is left\n%swhere there was\n%s", w.name, there, after, before)
			}
			if n := p.Open(); n != 0 {
				t.Errorf("%s where %s is left %d descriptors open", w.name, there, n)
			}
		}
	}
}

// inPlaceOf gives a text with as many spaces behind it as make it as long as another one.
func inPlaceOf(was, text []byte) []byte { return padded(text, int64(len(was)))[:len(was)] }
