//go:build unix

package holdfast

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A taped is an entry of a tar stream.
type taped struct {
	tar.Header
	data []byte
}

func untape(t *testing.T, stream []byte) (entries []taped) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(stream))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return entries
		}
		mustDo(t, err)
		data, err := io.ReadAll(r)
		mustDo(t, err)
		entries = append(entries, taped{*h, data})
	}
}

func tape(t *testing.T, entries []taped) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if e.Typeflag == tar.TypeReg {
			e.Size = int64(len(e.data))
		}
		mustDo(t, w.WriteHeader(&e.Header), second(w.Write(e.data)))
	}
	mustDo(t, w.Close())
	return b.Bytes()
}

// tapedStore gives the entries of a copy: the state, a run, an object of several messages,
// one of one, the manifest.
func tapedStore(t *testing.T) []taped {
	t.Helper()
	s, _ := newTestStore(t, &Options{block: 2, prepare: -1})
	mustEnqueue(t, s, "mail", smalls(9)...)
	mustEnqueue(t, s, "mail", small("one"))
	var b bytes.Buffer
	mustDo(t, second(s.BackupTar(t.Context(), &b, BackupOptions{})))
	entries := untape(t, b.Bytes())
	if len(entries) < 5 || entries[0].Name != stateFile || !strings.HasSuffix(entries[1].Name, runFile) || entries[len(entries)-1].Name != manifestFile {
		t.Fatalf("%d entries: the copy is not what it was meant to be", len(entries))
	}
	return entries
}

// remade gives the entries with a manifest that fits them, so that it is not what catches
// a change.
func remade(t *testing.T, entries []taped) []taped {
	t.Helper()
	last := len(entries) - 1
	m, err := decodeManifest(entries[last].data)
	mustDo(t, err)
	m.Files = nil
	for _, e := range entries[:last] {
		m.add(e.Name, e.data)
	}
	entries[last].data = m.encode()
	return entries
}

// Whatever a copy says of itself, what does not belong to it is refused by its name, and
// nothing is left where the store should have been, or beside it.
func TestRestoreRefusesATape(t *testing.T) {
	t.Parallel()
	good := tapedStore(t)
	last := len(good) - 1
	first := slices.IndexFunc(good, func(e taped) bool { return strings.HasSuffix(e.Name, payloadFile) }) // behind the runs
	plain := func(name string, data string) taped {
		return taped{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600}, []byte(data)}
	}
	odd := func(kind byte, name string) taped {
		return taped{tar.Header{Typeflag: kind, Name: name, Linkname: "/etc/passwd", Mode: 0o777}, nil}
	}
	insert := func(at int, e ...taped) func([]taped) []taped {
		return func(x []taped) []taped { return slices.Insert(x, at, e...) }
	}
	change := func(at int, do func(data []byte) []byte) func([]taped) []taped {
		return func(x []taped) []taped {
			x[at].data = do(bytes.Clone(x[at].data))
			return x
		}
	}
	drop := func(at int) func([]taped) []taped {
		return func(x []taped) []taped { return slices.Delete(x, at, at+1) }
	}
	flip := func(data []byte) []byte { data[len(data)/2] ^= 1; return data }
	object := good[last-1].Name
	for _, c := range []struct {
		name   string
		change func([]taped) []taped
		names  string
		cut    int  // bytes off the end
		remade bool // the manifest fits
	}{
		{name: "a path out of the directory", change: insert(1, plain("../../escaped", "x")), names: "../../escaped"},
		{name: "an absolute path", change: insert(1, plain("/tmp/escaped", "x")), names: "/tmp/escaped"},
		{name: "a path that leads back in", change: insert(1, plain("objects/../state.json", "x")), names: "objects/../state.json"},
		{name: "a name that only begins so", change: insert(last, plain(object+"/x", "x")), names: object + "/x"},
		{name: "the store's own files", change: insert(1, plain(namespaceDir+"/"+lockFile, blankRecord)), names: lockFile},
		{name: "an object that nothing names", change: insert(last, plain(payloadPath(namedToken("x")), "1")), names: namedToken("x").String()},
		{name: "an object before its run", change: func(x []taped) []taped { return slices.Insert(slices.Delete(x, first, first+1), 1, good[first]) }, names: "comes before the runs"},
		{name: "an object before the state", change: func(x []taped) []taped { x[0], x[1] = x[1], x[0]; return x }, names: "comes before state.json"},
		{name: "a symbolic link", change: insert(1, odd(tar.TypeSymlink, object)), names: "is no plain file"},
		{name: "a hard link", change: insert(1, odd(tar.TypeLink, object)), names: "is no plain file"},
		{name: "a directory", change: insert(1, odd(tar.TypeDir, "objects/")), names: "is no plain file"},
		{name: "a device", change: insert(1, odd(tar.TypeChar, "state.json")), names: "is no plain file"},
		{name: "a FIFO", change: insert(0, odd(tar.TypeFifo, "state.json")), names: "is no plain file"},
		{name: "the state twice", change: insert(1, good[0]), names: `"state.json" in the copy: comes twice`},
		{name: "an object twice", change: insert(last, good[last-1]), names: "comes twice"},
		{name: "the manifest twice", change: insert(last+1, good[last]), names: "stands behind the manifest"},
		{name: "something behind the manifest", change: insert(last+1, plain("more", "x")), names: `"more"`},
		{name: "no manifest", change: drop(last), names: manifestFile},
		{name: "nothing", change: func([]taped) []taped { return nil }, names: manifestFile},
		{name: "a manifest alone", change: func(x []taped) []taped { return x[last:] }, names: stateFile},
		{name: "an object missing", change: drop(last - 1), names: object},
		{name: "a run missing", change: drop(1), names: good[first].Name},
		{name: "cut in an object", change: func(x []taped) []taped { return x }, cut: 0, names: ""},
		{name: "a byte of the state", change: change(0, flip), names: stateFile},
		{name: "another state", change: change(0, func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"revision":"`), []byte(`"revision":"1`), 1)
		}), names: stateFile},
		{name: "a state that is too long for its grammar", change: change(0, func(b []byte) []byte { return append(b, ' ') }), names: stateFile},
		{name: "a byte of a run", change: change(1, flip), names: good[1].Name},
		{name: "a run that goes on", change: change(1, func(b []byte) []byte { return append(b, '\n') }), names: good[1].Name},
		{name: "a byte of a payload", change: change(last-1, flip), names: object},
		{name: "a byte of a payload, and the manifest", change: change(last-1, flip), names: object, remade: true},
		{name: "a payload cut short, and the manifest", change: change(last-1, func(b []byte) []byte { return b[:len(b)-1] }), names: object, remade: true},
		{name: "an object without an end", change: change(last-1, func(b []byte) []byte { return append(b, make([]byte, 2<<20)...) }), names: object, remade: true},
		{name: "a byte of the manifest", change: change(last, flip), names: ""},
		{name: "a checksum of the manifest", change: change(last, func(b []byte) []byte {
			i := bytes.Index(b, []byte(`"sha256":"`)) + len(`"sha256":"`)
			b[i] = '0' + (b[i]+1)%2
			return b
		}), names: stateFile},
		{name: "another version", change: change(last, func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"version":1`), []byte(`"version":2`), 1)
		}), names: "version 2"},
		{name: "spaces in the manifest", change: change(last, func(b []byte) []byte { return append(b, ' ') }), names: manifestFile},
		{name: "a time that is none in UTC", change: change(last, func(b []byte) []byte { return retimed(b, "9999-12-31T23:59:59-23:59") }), names: manifestFile},
		{name: "a manifest without an end", change: change(last, func([]byte) []byte {
			return []byte(`{"files":[{}` + strings.Repeat(",{}", 100_000) + `]}`)
		}), names: "is longer than"},
		{name: "a long name", change: insert(1, plain(strings.Repeat("x", 100_000), "x")), names: "xxx\" in the copy"},
		{name: "counts that are not so", change: change(last, func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"failed":0`), []byte(`"failed":1`), 1)
		}), names: manifestFile},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries := c.change(slices.Clone(good))
			if c.remade {
				entries = remade(t, entries)
			}
			stream := tape(t, entries)
			if strings.HasPrefix(c.name, "cut") {
				at := bytes.Index(stream, good[last-1].data)
				stream = stream[:at+3]
			}
			home := t.TempDir()
			_, err := RestoreTar(t.Context(), bytes.NewReader(stream), filepath.Join(home, "in", "store"), nil, RestoreOptions{})
			if err == nil {
				t.Fatal("restored into a directory without a parent")
			}
			_, err = RestoreTar(t.Context(), bytes.NewReader(stream), filepath.Join(home, "store"), nil, RestoreOptions{})
			refusal(t, "restore", err, ErrBackup, c.names)
			var bad *BackupError
			if !errors.As(err, &bad) {
				t.Errorf("no *BackupError: %v", err)
			}
			left, err := os.ReadDir(home)
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
	// Cut anywhere, it is refused, and never is there a store.
	stream := tape(t, slices.Clone(good))
	end := bytes.LastIndexByte(stream, '\n') // the end of the manifest
	for at := 0; at <= end; at += 173 {
		dir := filepath.Join(t.TempDir(), "store")
		if _, err := RestoreTar(t.Context(), bytes.NewReader(stream[:at]), dir, nil, RestoreOptions{}); !errors.Is(err, ErrBackup) {
			t.Fatalf("cut to %d of %d bytes: %v", at, len(stream), err)
		}
	}
	mustDo(t, second(RestoreTar(t.Context(), bytes.NewReader(stream), filepath.Join(t.TempDir(), "store"), nil, RestoreOptions{})))
}

// The same of a directory: what is not a plain file of one link is not read.
func TestRestoreRefusesADirectory(t *testing.T) {
	t.Parallel()
	s, _, _ := backupScene(t, nil)
	copied := filepath.Join(t.TempDir(), "copy")
	mustDo(t, second(s.Backup(t.Context(), copied, BackupOptions{})))
	m, err := decodeManifest(mustRead(t, filepath.Join(copied, manifestFile)))
	mustDo(t, err)
	object := m.Files[len(m.Files)-1].Path
	for _, c := range []struct {
		name, path string
		spoil      func(t *testing.T, path string)
		ok         bool
	}{
		{name: "no manifest", path: manifestFile, spoil: func(t *testing.T, path string) { mustDo(t, os.Remove(path)) }},
		{name: "a manifest cut", path: manifestFile, spoil: func(t *testing.T, path string) { mustDo(t, os.Truncate(path, 100)) }},
		{name: "no state", path: stateFile, spoil: func(t *testing.T, path string) { mustDo(t, os.Remove(path)) }},
		{name: "an object gone", path: object, spoil: func(t *testing.T, path string) { mustDo(t, os.RemoveAll(filepath.Dir(path))) }},
		{name: "an object cut", path: object, spoil: func(t *testing.T, path string) { mustDo(t, os.Truncate(path, 1)) }},
		{name: "a symbolic link", path: object, spoil: func(t *testing.T, path string) {
			mustDo(t, os.Rename(path, path+"-real"), os.Symlink(path+"-real", path))
		}},
		{name: "a symbolic link as a directory", path: object, spoil: func(t *testing.T, path string) {
			dir := filepath.Dir(path)
			mustDo(t, os.Rename(dir, dir+"-real"), os.Symlink(dir+"-real", dir))
		}},
		{name: "a directory as a file", path: stateFile, spoil: func(t *testing.T, path string) { mustDo(t, os.Remove(path), os.Mkdir(path, 0o700)) }},
		{name: "files that are nobody's", path: "notes.txt", spoil: func(t *testing.T, path string) { mustDo(t, os.WriteFile(path, nil, 0o600)) }, ok: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := copyStore(t, copied)
			c.spoil(t, filepath.Join(from, filepath.FromSlash(c.path)))
			dir := filepath.Join(t.TempDir(), "store")
			_, err := Restore(t.Context(), from, dir, &Options{clock: s.clock}, RestoreOptions{})
			if c.ok {
				mustDo(t, err)
				return
			}
			refusal(t, "restore", err, ErrBackup, c.path)
			if _, err := os.Lstat(dir); err == nil {
				t.Error("something is left")
			}
		})
	}
}

// Nothing is overwritten, and what stood there stands there.
func TestRestoreOverwritesNothing(t *testing.T) {
	t.Parallel()
	good := tape(t, tapedStore(t))
	for _, c := range []struct {
		name  string
		there func(t *testing.T, dir string)
		want  error
		names string
	}{
		{"a store", func(t *testing.T, dir string) {
			s, err := Create(t.Context(), dir, nil)
			mustDo(t, err, s.Close())
		}, ErrExists, "store"},
		{"a file", func(t *testing.T, dir string) {
			mustDo(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600))
		}, ErrNotEmpty, "notes.txt"},
		{"an interrupted restore", func(t *testing.T, dir string) {
			mustDo(t, os.MkdirAll(filepath.Join(dir, restoringDir, objectsDir), 0o700))
		}, ErrInterruptedRestore, "store"},
		{"an interrupted creation", func(t *testing.T, dir string) { mustDo(t, os.Mkdir(filepath.Join(dir, namespaceDir), 0o700)) }, ErrExists, "store"},
		{"a directory that others write", func(t *testing.T, dir string) { mustDo(t, os.Chmod(dir, 0o777)) }, ErrUnsafe, "0777"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			mustDo(t, os.Mkdir(dir, 0o700))
			c.there(t, dir)
			before := treeOf(t, dir)
			_, err := RestoreTar(t.Context(), bytes.NewReader(good), dir, nil, RestoreOptions{})
			refusal(t, "restore", err, c.want, c.names)
			unchanged(t, dir, before)
		})
	}
	// An empty directory of one's own serves.
	dir := t.TempDir()
	mustDo(t, os.Chmod(dir, 0o700), second(RestoreTar(t.Context(), bytes.NewReader(good), dir, nil, RestoreOptions{})))
	mustVerify(t, dir)
}

// What hard-link backup tools do to a store is noticed, and ends when their copy goes; a
// copy that they have linked is refused by name, and restores from one of its own. (This
// makes hard links, which some sandboxes kill for: kept apart by its name.)
func TestBackupByHardLinks_HardLink(t *testing.T) {
	s, dir := newTestStore(t, &Options{prepare: -1})
	mustEnqueue(t, s, "mail", small("a"))
	linked := filepath.Join(t.TempDir(), "linked")
	link := func(from, to string) {
		mustDo(t, os.MkdirAll(filepath.Dir(to), 0o700), os.Link(from, to))
	}
	link(filepath.Join(dir, namespaceDir, stateFile), filepath.Join(linked, stateFile))
	if _, err := s.Enqueue(t.Context(), "mail", small("b")); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), stateFile) {
		t.Errorf("enqueue beside a linked state: %v", err)
	}
	mustDo(t, os.RemoveAll(linked))
	mustEnqueue(t, s, "mail", small("b"))

	copied := filepath.Join(t.TempDir(), "copy")
	mustDo(t, second(s.Backup(t.Context(), copied, BackupOptions{})))
	own := copyStore(t, copied)
	link(filepath.Join(copied, stateFile), filepath.Join(linked, stateFile))
	_, err := Restore(t.Context(), copied, filepath.Join(t.TempDir(), "store"), nil, RestoreOptions{})
	refusal(t, "restore", err, ErrBackup, "cp -r")
	mustDo(t, second(Restore(t.Context(), own, filepath.Join(t.TempDir(), "store"), nil, RestoreOptions{})))
}

// retimed puts another time into a manifest.
func retimed(text []byte, taken string) []byte {
	before, rest, _ := bytes.Cut(text, []byte(`"taken":"`))
	_, after, _ := bytes.Cut(rest, []byte(`"`))
	return slices.Concat(before, []byte(`"taken":"`+taken+`"`), after)
}

// An entry with holes has the type of a plain file. A few bytes would be read as a gigabyte.
func TestRestoreRefusesHoles(t *testing.T) {
	t.Parallel()
	s, _ := newTestStore(t, &Options{prepare: -1})
	mustEnqueue(t, s, "mail", small("a"))
	var copied bytes.Buffer
	mustDo(t, second(s.BackupTar(t.Context(), &copied, BackupOptions{})))
	entries := untape(t, copied.Bytes())
	st, err := decodeState(entries[0].data, stateFile, s.id)
	mustDo(t, err)
	const far = 1 << 30
	slot := st.queues[0].slots[0]
	slot.pending.off, slot.enc = far, nil
	entries[0].data = encodeState(nil, st)
	stream := tape(t, entries[:1])
	stream = stream[:len(stream)-1024] // without its end

	header := func(kind byte, name string, size int) []byte {
		h := make([]byte, 512)
		copy(h, name)
		copy(h[100:], "0000600\x00")
		copy(h[124:], fmt.Sprintf("%011o\x00", size))
		h[156] = kind
		copy(h[257:], "ustar\x0000")
		sum := 8 * int(' ')
		for i, c := range h {
			if i < 148 || i >= 156 {
				sum += int(c)
			}
		}
		copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
		return h
	}
	block := func(text string) []byte { return append([]byte(text), make([]byte, -len(text)&511)...) }
	var pax string
	for _, r := range [][2]string{{"major", "1"}, {"minor", "0"}, {"name", entries[1].Name}, {"realsize", fmt.Sprint(far + 100)}} {
		record := " GNU.sparse." + r[0] + "=" + r[1] + "\n"
		pax += fmt.Sprint(len(record)+2) + record // all are of two digits
	}
	empty := block("0\n") // the map of what is not a hole
	stream = slices.Concat(stream, header('x', "x", len(pax)), block(pax), header('0', "x", len(empty)), empty, make([]byte, 1024))
	_, err = RestoreTar(t.Context(), bytes.NewReader(stream), filepath.Join(t.TempDir(), "store"), nil, RestoreOptions{})
	refusal(t, "restore", err, ErrBackup, entries[1].Name)
	if err != nil && !strings.Contains(err.Error(), "holes") {
		t.Error(err)
	}
}

// A file of a copied directory that is larger than the disk is not read.
func TestRestoreRefusesMoreThanTheDisk(t *testing.T) {
	t.Parallel()
	s, _ := newTestStore(t, &Options{prepare: -1})
	mustEnqueue(t, s, "mail", small("a"))
	copied := filepath.Join(t.TempDir(), "copy")
	mustDo(t, second(s.Backup(t.Context(), copied, BackupOptions{})))
	text := mustRead(t, filepath.Join(copied, stateFile))
	st, err := decodeState(text, stateFile, s.id)
	mustDo(t, err)
	slot := st.queues[0].slots[0]
	slot.pending.off, slot.enc = 1<<52, nil
	mustDo(t, os.WriteFile(filepath.Join(copied, stateFile), encodeState(nil, st), 0o600))
	_, err = Restore(t.Context(), copied, filepath.Join(t.TempDir(), "store"), nil, RestoreOptions{})
	refusal(t, "restore", err, unix.ENOSPC, payloadPath(slot.pending.object))
}

// While a restore waits for its stream, others wait for it no longer than they want to.
func TestOpenBesideARestore(t *testing.T) {
	t.Parallel()
	good := tape(t, tapedStore(t))
	r, w := io.Pipe()
	dir := filepath.Join(t.TempDir(), "store")
	done := make(chan error, 1)
	go func() { done <- second(RestoreTar(context.Background(), r, dir, nil, RestoreOptions{})) }()
	mustDo(t, second(w.Write(good[:1000])))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for what, err := range map[string]error{
		"open":    second(Open(ctx, dir, nil)),
		"restore": second(RestoreTar(ctx, bytes.NewReader(good), dir, nil, RestoreOptions{})),
	} {
		if want := context.DeadlineExceeded; !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	mustDo(t, second(w.Write(good[1000:])), w.Close(), <-done)
	mustVerify(t, dir)
}
