//go:build unix

package holdfast

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
			return bytes.Replace(b, []byte(`"version":2`), []byte(`"version":3`), 1)
		}), names: "version 3"},
		{name: "an older version", change: change(last, func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"version":2`), []byte(`"version":1`), 1)
		}), names: "version 1"},
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

// A token is that of one object, and an object has one file: a state that says otherwise is
// refused by the file and the message.
func TestRestoreRefusesTwoUsesOfAnObject(t *testing.T) {
	t.Parallel()
	good := tapedStore(t)
	m, err := decodeManifest(good[len(good)-1].data)
	mustDo(t, err)
	store, _ := parseToken(m.Store)
	for _, c := range []struct {
		name   string
		change func(st *state) (from, to token)
		names  []string
	}{
		{"a run, and an inline payload", func(st *state) (from, to token) {
			run, slot := st.queues[0].runs[0].name, st.queues[0].slots[0]
			from = slot.pending.object
			slot.pending.object, slot.enc = run, nil
			return from, run
		}, []string{payloadFile, "mail", "named as a run"}},
		{"a run, and payloads of another run", func(st *state) (from, to token) {
			runs := st.queues[0].runs
			b, err := decodeRun(good[1].data, runs[0], good[1].Name)
			mustDo(t, err)
			from, to = runs[1].name, b.slots[0].pending.object
			runs[1].name, runs[1].enc = to, nil
			return from, to
		}, []string{payloadFile, "mail m000", "named as a run"}},
		{"two runs", func(st *state) (from, to token) {
			runs := st.queues[0].runs
			runs[1].name, runs[1].enc = runs[0].name, nil
			return token{}, token{}
		}, []string{stateFile, "at byte", "twice"}},
		{"a payload of two lengths", func(st *state) (from, to token) {
			slots := st.queues[0].slots
			p, q := slots[0].pending, slots[1].pending
			q.object, q.off, q.size, slots[1].enc = p.object, p.off, p.size-1, nil
			return token{}, token{}
		}, []string{stateFile, "overlap"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			st, err := decodeState(good[0].data, stateFile, store)
			mustDo(t, err)
			from, to := c.change(st)
			entries := slices.Clone(good)
			entries[0].data = encodeState(nil, st)
			for i := range entries {
				if object, file, ok := splitObject(entries[i].Name); ok && object == from && !from.zero() {
					entries[i].Name = objectsDir + "/" + to.String() + "/" + file
				}
			}
			entries[len(entries)-1].data = bytes.Clone(entries[len(entries)-1].data)
			_, err = RestoreTar(t.Context(), bytes.NewReader(tape(t, remade(t, entries))), filepath.Join(t.TempDir(), "store"), nil, RestoreOptions{})
			for _, name := range c.names {
				refusal(t, "restore", err, ErrBackup, name)
			}
			refusal(t, "restore", err, ErrCorrupt, "")
		})
	}
}
