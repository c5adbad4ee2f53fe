//go:build unix

package holdfast

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/queue"
)

func mustDo(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// refusal checks that err is want and names the file.
func refusal(t testing.TB, what string, err, want error, names string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), names) {
		t.Errorf("%s: %v; want %q, naming %q", what, err, want, names)
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	mustDo(t, err)
	return data
}

// A bad store is a good one with one thing wrong.
type badStore struct {
	name  string
	spoil func(t *testing.T, at func(names ...string) string) // at gives a path in the namespace
	want  error
	names string // stands in the error, beside the file
}

// text spoils a file by replacing the first old in it; old "" stands for all of it.
func text(file, old, with string) func(t *testing.T, at func(...string) string) {
	return func(t *testing.T, at func(...string) string) {
		was := string(mustRead(t, at(file)))
		is := with
		if old != "" {
			is = strings.Replace(was, old, with, 1)
		}
		if is == was {
			t.Fatalf("%q does not stand in %s", old, was)
		}
		mustDo(t, os.WriteFile(at(file), []byte(is), 0o600))
	}
}

// instead puts something else in the place of a file or directory, which stays beside
// the root under another name.
func instead(name string, put func(path, was string) error) func(t *testing.T, at func(...string) string) {
	return func(t *testing.T, at func(...string) string) {
		was := at("..", "..", "was")
		mustDo(t, os.Rename(at(name), was), put(at(name), was))
	}
}

func symlinkTo(path, was string) error  { return os.Symlink(was, path) }
func dirInstead(path, _ string) error   { return os.Mkdir(path, 0o700) }
func fileInstead(path, _ string) error  { return os.WriteFile(path, nil, 0o600) }
func fifoInstead(path, _ string) error  { return unix.Mkfifo(path, 0o600) }
func nothing(string, string) error      { return nil }
func danglingLink(path, _ string) error { return os.Symlink("nowhere", path) }

func socketInstead(path, _ string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	short, err := os.MkdirTemp("", "s") // the path of a socket is bounded
	if err != nil {
		return err
	}
	defer os.Remove(short)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: short + "/s"}); err != nil {
		return err
	}
	return os.Rename(short+"/s", path)
}

// badStores lists what is wrong in each, and which error says so.
func badStores() []badStore {
	bad := []badStore{
		{"empty state", text(stateFile, "", ""), ErrCorrupt, stateFile},
		{"foreign state", text(stateFile, "", `{"jobs":[{"id":1}]}`), ErrCorrupt, stateFile},
		{"state of zeros", text(stateFile, "", strings.Repeat("\x00", 900)), ErrCorrupt, stateFile},
		{"no JSON", text(stateFile, "", "hello"), ErrCorrupt, stateFile},
		{"future version", text(stateFile, `"version":2`, `"version":3`), ErrVersion, "version 3"},
		{"unknown feature", text(stateFile, `"features":[]`, `"features":["wings"]`), ErrVersion, `feature "wings"`},
		{"other protocol", text(stateFile, protocol, "fs-safe-xml-queue"), ErrCorrupt, "fs-safe-xml-queue"},
		{"duplicate key", text(stateFile, `"fence":`, `"fence":0,"fence":`), ErrCorrupt, `duplicate field "fence"`},
		{"case variant of a key", text(stateFile, `"fence":`, `"Fence":`), ErrCorrupt, `field "Fence"`},
		{"unknown key", text(stateFile, `"fence":`, `"hedge":0,"fence":`), ErrCorrupt, `"hedge"`},
		{"token that climbs", climb, ErrCorrupt, "token"},
		{"revision that is not canonical", text(stateFile, `"revision":"`, `"revision":"0`), ErrCorrupt, "revision"},
		{"overlapping ranges", overlap, ErrCorrupt, "overlap"},
		{"other store's state", func(t *testing.T, at func(...string) string) {
			text(stateFile, `"store":"`+namedToken("ours").String(), `"store":"`+namedToken("theirs").String())(t, at)
		}, ErrCorrupt, namedToken("theirs").String()},
		{"trailing bytes in the state", text(stateFile, "\"}\n", "\"}\n{}"), ErrCorrupt, "trailing"},

		{"empty format", text(formatFile, "", ""), ErrCorrupt, formatFile},
		{"foreign format", text(formatFile, "", `{"name":"app","version":"1.0"}`), ErrCorrupt, formatFile},
		{"format of a future version", text(formatFile, `"version":2`, `"version":3`), ErrVersion, formatFile},
		{"other store's format", text(formatFile, namedToken("ours").String(), namedToken("theirs").String()), ErrCorrupt, stateFile},
		{"case variant in the format", text(formatFile, `"store"`, `"Store"`), ErrCorrupt, formatFile},
		{"duplicate key in the format", text(formatFile, `"version":2`, `"version":2,"version":2`), ErrCorrupt, formatFile},
		{"format cut off", text(formatFile, "\"}\n", ""), ErrCorrupt, formatFile},
		{"format without end", text(formatFile, "}\n", strings.Repeat(" ", 5000)), ErrCorrupt, formatFile},

		{"root that others may write", chmod("..", 0o702), ErrUnsafe, "0702"},
		{"root that the group may write", chmod("..", 0o720), ErrUnsafe, "0720"},
		{"namespace that others may write", chmod("", 0o702), ErrUnsafe, namespaceDir + " has mode 0702"},
		{"namespace that the group may write", chmod("", 0o770), ErrUnsafe, namespaceDir + " has mode 0770"},
		{"symlink as the namespace", instead("", symlinkTo), ErrUnsafe, namespaceDir},
		{"file as the namespace", instead("", fileInstead), ErrUnsafe, namespaceDir},
		{"no namespace", instead("", nothing), ErrNoStore, "store"},
		{"no root", func(t *testing.T, at func(...string) string) { mustDo(t, os.Rename(at(".."), at("..", "..", "was"))) }, ErrNoStore, "store"},
	}
	for _, name := range []string{stateFile, formatFile, lockFile, objectsDir} {
		bad = append(bad,
			badStore{"no " + name, instead(name, nothing), ErrCorrupt, name + ": missing"},
			badStore{"symlink as " + name, instead(name, symlinkTo), ErrUnsafe, name},
			badStore{"dangling symlink as " + name, instead(name, danglingLink), ErrUnsafe, name},
			badStore{"FIFO as " + name, instead(name, fifoInstead), ErrUnsafe, name},
			badStore{"socket as " + name, instead(name, socketInstead), ErrUnsafe, name},
		)
		if name == objectsDir {
			bad = append(bad, badStore{"file as " + name, instead(name, fileInstead), ErrUnsafe, name})
		} else {
			bad = append(bad, badStore{"directory as " + name, instead(name, dirInstead), ErrUnsafe, name})
		}
	}
	return bad
}

func chmod(name string, mode fs.FileMode) func(t *testing.T, at func(...string) string) {
	return func(t *testing.T, at func(...string) string) { mustDo(t, os.Chmod(at(name), mode)) }
}

// climb names an object outside objects/.
func climb(t *testing.T, at func(...string) string) {
	names, err := os.ReadDir(at(objectsDir))
	mustDo(t, err)
	text(stateFile, `"`+names[0].Name()+`"`, `"../x"`)(t, at)
}

// overlap lets two messages name the same bytes.
func overlap(t *testing.T, at func(...string) string) {
	store, err := decodeFormat(mustRead(t, at(formatFile)), formatFile)
	mustDo(t, err)
	st, err := decodeState(mustRead(t, at(stateFile)), stateFile, store)
	mustDo(t, err)
	slots := st.queues[0].slots
	slots[0].pending.off = slots[1].pending.off
	for _, s := range slots {
		s.enc = nil
	}
	mustDo(t, os.WriteFile(at(stateFile), encodeState(nil, st), 0o600))
}

// spoilt makes a store with two messages and then one thing of it wrong.
func spoilt(file, old, with string) func(t *testing.T, s *Store, now *handClock) {
	return spoiltBy(text(file, old, with))
}

func spoiltBy(spoil func(t *testing.T, at func(...string) string)) func(t *testing.T, s *Store, now *handClock) {
	return func(t *testing.T, s *Store, _ *handClock) {
		mustEnqueue(t, s, "mail", small("a"), small("b"))
		spoil(t, func(names ...string) string {
			return filepath.Join(append([]string{s.dir, namespaceDir}, names...)...)
		})
	}
}

// goodStore makes a store to copy and spoil. Its id is that of namedToken("ours").
func goodStore(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "good")
	s, err := Create(t.Context(), dir, &Options{plain: true})
	mustDo(t, err)
	mustEnqueue(t, s, "mail", small("a"), small("b"), small("c"))
	claimed := mustClaim(t, s, "mail", queue.ClaimOptions{})
	if _, err := s.Fail(t.Context(), claimed[0].Receipt, queue.FailOptions{Cause: "no"}); err != nil {
		t.Fatal(err)
	}
	id := s.ID()
	mustDo(t, s.Close())
	for _, file := range []string{formatFile, stateFile} {
		path := filepath.Join(dir, namespaceDir, file)
		mustDo(t, os.WriteFile(path, []byte(strings.Replace(string(mustRead(t, path)), id, namedToken("ours").String(), 1)), 0o600))
	}
	mustVerify(t, dir)
	return dir
}

// copyOf copies a store into a fresh directory of the test, with the modes that a
// store has: directories 0700, files 0600. at gives a path in its namespace.
func copyOf(t *testing.T, store string) (dir string, at func(names ...string) string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	mustDo(t, filepath.WalkDir(store, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := dir + strings.TrimPrefix(path, store)
		if e.IsDir() {
			return os.Mkdir(to, 0o700)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o600)
	}))
	return dir, func(names ...string) string {
		return filepath.Join(append([]string{dir, namespaceDir}, names...)...)
	}
}

// Every way into a bad store ends in the error that says what is wrong and where, and
// leaves every byte, name, mode and time as it was.
func TestBadStores(t *testing.T) {
	t.Parallel()
	good := goodStore(t)
	for _, c := range badStores() {
		t.Run(c.name, func(t *testing.T) {
			dir, at := copyOf(t, good)
			c.spoil(t, at)
			mustBeRefused(t, dir, c.want, c.names)
		})
	}
}

// The links of the store's files are one each. (These make hard links, which some
// sandboxes kill for: kept apart by their name.)
func TestBadStoresHardLink(t *testing.T) {
	good := goodStore(t)
	for _, name := range []string{stateFile, formatFile, lockFile} {
		t.Run(name, func(t *testing.T) {
			dir, at := copyOf(t, good)
			mustDo(t, os.Link(at(name), dir+"-link"))
			mustBeRefused(t, dir, ErrUnsafe, name)
		})
	}
}

// A state that was cut off anywhere is refused: whatever the cut leaves.
func TestBadStoresCutOff(t *testing.T) {
	t.Parallel()
	dir, at := copyOf(t, goodStore(t))
	path := at(stateFile)
	whole := mustRead(t, path)
	for n := 0; n < len(whole); n += 50 {
		mustDo(t, os.Truncate(path, int64(n)))
		mustBeRefused(t, dir, ErrCorrupt, stateFile)
		mustDo(t, os.WriteFile(path, whole[:n], 0o600), os.Truncate(path, int64(len(whole)))) // zeros at its end
		mustBeRefused(t, dir, ErrCorrupt, stateFile)
		mustDo(t, os.WriteFile(path, whole, 0o600))
	}
}

func mustBeRefused(t *testing.T, dir string, want error, names string) {
	t.Helper()
	home := filepath.Dir(dir)
	before := treeOf(t, home)
	o, w := watched(t)
	ctx := t.Context()
	for _, way := range []struct {
		name string
		do   func(context.Context, string, *Options) (*Store, error)
	}{{"Open", Open}, {"OpenReadOnly", OpenReadOnly}, {"OpenOrCreate", OpenOrCreate}, {"Create", Create}, {"ResumeCreate", ResumeCreate}} {
		if want == ErrNoStore && strings.Contains(way.name, "Create") && way.name != "ResumeCreate" {
			continue // nothing there is to be refused
		}
		s, err := way.do(ctx, dir, o)
		switch {
		case err == nil:
			t.Errorf("%s: no error", way.name)
			s.Close()
		case way.name == "Create" || way.name == "ResumeCreate":
			// Both have their own word for a place that is taken.
		default:
			refusal(t, way.name, err, want, names)
		}
	}
	report, err := VerifyDir(ctx, dir, o, VerifyOptions{})
	switch {
	case want != ErrCorrupt:
		refusal(t, "VerifyDir", err, want, names)
	case err != nil || report.OK || len(report.Faults) != 1:
		t.Errorf("VerifyDir: %+v, %v", report, err)
	case !strings.Contains(report.Faults[0].Reason, names) || report.Faults[0].File == "":
		t.Errorf("VerifyDir: fault %+v, want one that names %q", report.Faults[0], names)
	}
	unchanged(t, home, before)
	if n := w.Count(changing...); n > 0 {
		t.Errorf("%d operations that change something:\n%s", n, w.Trace())
	}
	if open := w.Open(); len(open) > 0 {
		t.Errorf("left open: %q", open)
	}
}

// With the operator's word, a root that others may write is taken.
func TestAllowUnsafeRoot(t *testing.T) {
	dir, at := copyOf(t, goodStore(t))
	mustDo(t, os.Chmod(dir, 0o777), os.Chmod(at(), 0o777))
	s, err := Open(t.Context(), dir, &Options{AllowUnsafeRoot: true})
	mustDo(t, err)
	mustEnqueue(t, s, "mail", small("d"))
	mustDo(t, s.Close())
}

// An interrupted creation in which anything else stands is no longer only that: it is
// refused as it is.
func TestResumeRefusesWhatItDidNotMake(t *testing.T) {
	t.Parallel()
	good := goodStore(t)
	for _, c := range []badStore{
		{"an object", func(t *testing.T, at func(...string) string) {
			mustDo(t, os.Mkdir(at(objectsDir, namedToken("x").String()), 0o700))
		}, ErrCorrupt, stateFile},
		{"a file in holders/", func(t *testing.T, at func(...string) string) {
			mustDo(t, os.WriteFile(at(holdersDir, namedToken("x").String()), nil, 0o600))
		}, ErrCorrupt, stateFile},
		{"a foreign file", func(t *testing.T, at func(...string) string) {
			mustDo(t, os.WriteFile(at("notes.txt"), []byte("mine"), 0o600))
		}, ErrCorrupt, "notes.txt"},
		{"a foreign directory", func(t *testing.T, at func(...string) string) { mustDo(t, os.Mkdir(at("old"), 0o700)) }, ErrCorrupt, "old"},
		{"a directory as the reserve", func(t *testing.T, at func(...string) string) {
			mustDo(t, os.Remove(at(reserveFile)), os.MkdirAll(at(reserveFile, "photos"), 0o700))
		}, ErrUnsafe, reserveFile},
		{"a symlink as the format", instead(formatFile, symlinkTo), ErrUnsafe, formatFile},
		{"a FIFO as the lock", instead(lockFile, fifoInstead), ErrUnsafe, lockFile},
		{"a file as objects/", instead(objectsDir, fileInstead), ErrUnsafe, objectsDir},
		{"a symlink as holders/", instead(holdersDir, symlinkTo), ErrUnsafe, holdersDir},
		{"a directory named as a temp", func(t *testing.T, at func(...string) string) {
			mustDo(t, os.Mkdir(at(stateTemp(namedToken("x"))), 0o700))
		}, ErrUnsafe, stateTemp(namedToken("x"))},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, at := copyOf(t, good)
			mustDo(t, os.Remove(at(stateFile)), os.RemoveAll(at(objectsDir)), os.Mkdir(at(objectsDir), 0o700), os.RemoveAll(at(holdersDir)), os.Mkdir(at(holdersDir), 0o700))
			c.spoil(t, at)
			before := treeOf(t, filepath.Dir(dir))
			o, w := watched(t)
			_, err := ResumeCreate(t.Context(), dir, o)
			refusal(t, "resume", err, c.want, c.names)
			_, err = Create(t.Context(), dir, o)
			refusal(t, "create", err, c.want, c.names)
			unchanged(t, filepath.Dir(dir), before)
			if n := w.Count(changing...); n > 0 {
				t.Errorf("%d operations that change something:\n%s", n, w.Trace())
			}
		})
	}
}
