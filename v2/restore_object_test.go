//go:build unix

package holdfast

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A wideFS notes the longest buffer that payloads are read into or written from.
type wideFS struct {
	fsguard.FS
	most *atomic.Int64
}

func (f wideFS) OpenRoot(path string) (fsguard.Dir, error) {
	d, err := f.FS.OpenRoot(path)
	return wideDir{d, f.most}, err
}

type wideDir struct {
	fsguard.Dir
	most *atomic.Int64
}

func (d wideDir) OpenDir(name string) (fsguard.Dir, error) {
	in, err := d.Dir.OpenDir(name)
	return wideDir{in, d.most}, err
}

func (d wideDir) Open(name string) (fsguard.File, error) { return d.file(d.Dir.Open, name) }

func (d wideDir) Create(name string) (fsguard.File, error) { return d.file(d.Dir.Create, name) }

func (d wideDir) file(open func(string) (fsguard.File, error), name string) (fsguard.File, error) {
	f, err := open(name)
	if err == nil && name == payloadFile {
		f = wideFile{f, d.most}
	}
	return f, err
}

type wideFile struct {
	fsguard.File
	most *atomic.Int64
}

func (f wideFile) ReadAt(b []byte, off int64) (int, error) {
	wider(f.most, b)
	return f.File.ReadAt(b, off)
}

func (f wideFile) WriteAt(b []byte, off int64) (int, error) {
	wider(f.most, b)
	return f.File.WriteAt(b, off)
}

func wider(most *atomic.Int64, b []byte) { most.Store(max(most.Load(), int64(len(b)))) }

// A wideReader is wideFS of a stream.
type wideReader struct {
	io.Reader
	most *atomic.Int64
}

func (r wideReader) Read(b []byte) (int, error) {
	wider(r.most, b)
	return r.Reader.Read(b)
}

// oneLargeObject gives a copy in which some hundred messages lie in one object of many
// megabytes. No store makes such a one.
func oneLargeObject(t *testing.T) (entries []taped, bytesOfIt int) {
	s, _ := newTestStore(t, &Options{block: -1, prepare: -1})
	const each = 40 << 10
	payload := func(id string) []byte { return []byte(`"` + strings.Repeat(id, each/len(id)) + `"`) }
	var ms []queue.Message
	for _, m := range smalls(120) {
		ms = append(ms, queue.Message{ID: m.ID, Payload: payload(m.ID)})
	}
	mustEnqueue(t, s, "mail", ms...)
	var stream bytes.Buffer
	mustDo(t, second(s.BackupTar(t.Context(), &stream, BackupOptions{})))
	all := untape(t, stream.Bytes())
	st, err := decodeState(all[0].data, stateFile, s.id)
	mustDo(t, err)
	var text []byte
	object := st.queues[0].slots[0].pending.object
	for i, slot := range st.queues[0].slots {
		text = append(text, opening(i))
		slot.pending.object, slot.pending.off, slot.enc = object, int64(len(text)), nil
		text = append(text, payload(slot.id)...)
	}
	all[0].data = encodeState(nil, st)
	all[1].Name, all[1].data = payloadPath(object), append(text, ']')
	return remade(t, []taped{all[0], all[1], all[len(all)-1]}), len(text)
}

// oneLargeMessage gives a copy with one message of some megabytes.
func oneLargeMessage(t *testing.T) (entries []taped, bytesOfIt int) {
	s, _ := newTestStore(t, nil)
	payload := []byte(`{"é":["` + strings.Repeat("x\\u00e9é", 400<<10) + `"]}`)
	mustEnqueue(t, s, "mail", queue.Message{ID: "large", Payload: payload})
	var stream bytes.Buffer
	mustDo(t, second(s.BackupTar(t.Context(), &stream, BackupOptions{})))
	return untape(t, stream.Bytes()), len(payload)
}

// However large an object of a copy is, and a message in it, no more of it than a buffer is
// in memory.
func TestRestoreHoldsLittleOfAnObject(t *testing.T) {
	t.Parallel()
	t.Run("of many messages", func(t *testing.T) { restoresLittleByLittle(t, oneLargeObject) })
	t.Run("of one", func(t *testing.T) { restoresLittleByLittle(t, oneLargeMessage) })
}

func restoresLittleByLittle(t *testing.T, scene func(t *testing.T) ([]taped, int)) {
	entries, size := scene(t)
	copied := t.TempDir()
	for _, e := range entries {
		path := filepath.Join(copied, filepath.FromSlash(e.Name))
		mustDo(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, e.data, 0o600))
	}
	stream := tape(t, entries)
	for name, restore := range map[string]func(dir string, most *atomic.Int64) error{
		"directory": func(dir string, most *atomic.Int64) error {
			return second(Restore(t.Context(), copied, dir, &Options{fs: wideFS{fsguard.OS(), most}}, RestoreOptions{Workers: 1}))
		},
		"tar": func(dir string, most *atomic.Int64) error {
			in := wideReader{bytes.NewReader(stream), most}
			return second(RestoreTar(t.Context(), in, dir, &Options{fs: wideFS{fsguard.OS(), most}}, RestoreOptions{Workers: 1}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var most atomic.Int64
			dir := filepath.Join(t.TempDir(), "store")
			mustDo(t, restore(dir, &most))
			if got := most.Load(); size < 40*unpackBuffer || got == 0 || got > unpackBuffer {
				t.Errorf("%d bytes at once of an object of %d, want at most %d", got, size, unpackBuffer)
			}
			mustVerify(t, dir)
		})
	}
}

// What is wrong with a large message is met in pieces as it is in the whole, though the state
// and the manifest agree with it.
func TestRestoreRefusesALargeObject(t *testing.T) {
	t.Parallel()
	good, size := oneLargeMessage(t)
	for _, c := range []struct {
		name   string
		change func(text []byte)
		sum    bool // the state has the checksum of what there is
		says   string
	}{
		{"another byte", func(text []byte) { text[size/2] ^= 1 }, false, "its checksum is"},
		{"no JSON in the middle", func(text []byte) { text[size/2] = '\n' }, true, "it is no JSON value"},
		{"no JSON at the end", func(text []byte) { text[size-1] = ' ' }, true, "it is no JSON value"},
		{"nothing wrong", func(text []byte) { text[bytes.IndexByte(text, 'x')] = 'y' }, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries := slices.Clone(good)
			entries[1].data = bytes.Clone(good[1].data)
			c.change(entries[1].data)
			m, err := decodeManifest(good[2].data)
			mustDo(t, err)
			store, _ := parseToken(m.Store)
			st, err := decodeState(good[0].data, stateFile, store)
			mustDo(t, err)
			if slot := st.queues[0].slots[0]; c.sum {
				slot.pending.sum, slot.enc = checksum(entries[1].data), nil
			}
			entries[0].data = encodeState(nil, st)
			_, err = RestoreTar(t.Context(), bytes.NewReader(tape(t, remade(t, entries))), filepath.Join(t.TempDir(), "store"), nil, RestoreOptions{})
			if c.says == "" {
				mustDo(t, err)
				return
			}
			refusal(t, "restore", err, ErrBackup, c.says)
			refusal(t, "restore", err, ErrBackup, "(mail large)")
		})
	}
}

// A copy has of an object what is named of it, and not the payloads that lay beside that:
// they may be of messages that were settled long ago. What is restored has spaces there.
func TestBackupLeavesOutWhatIsSettled(t *testing.T) {
	t.Parallel()
	for _, form := range backupForms {
		t.Run(form.name, func(t *testing.T) {
			s, dir := newTestStore(t, &Options{prepare: 1})
			ctx := t.Context()
			long := strings.Repeat("secret", 500)
			const n = 40
			kept := []string{"m20", "m21", "m31", "m38", "m39"}
			for i := range n {
				m := queue.Message{ID: fmt.Sprint("m", i), Payload: []byte(`"short"`)}
				if !slices.Contains(kept, m.ID) || i == 21 || i == 38 {
					m.Payload = fmt.Appendf(nil, `{"%s":%d}`, long, i)
				}
				mustEnqueue(t, s, "mail", m)
			}
			for _, d := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: n}) {
				if !slices.Contains(kept, d.Receipt.ID) {
					mustDo(t, s.Ack(ctx, d.Receipt))
				}
			}
			was := contents(t, s)
			copied, to := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "restored")
			b, err := form.backup(ctx, s, copied, BackupOptions{})
			mustDo(t, err)
			if most := int64(2*len(long) + 8<<10); b.Messages != int64(len(kept)) || b.Bytes > most {
				t.Errorf("%+v; want at most %d bytes, of a store of %d", b, most, bytesIn(t, dir))
			}
			mustDo(t, second(form.restore(ctx, copied, to, &Options{clock: s.clock}, RestoreOptions{})))
			for place, settled := range map[string]int{dir: n - 3, copied: 2, to: 2} {
				if got := countIn(t, place, long); got != settled {
					t.Errorf("%s has %d of the long payloads, want %d", place, got, settled)
				}
			}
			again, err := OpenReadOnly(ctx, to, &Options{clock: s.clock})
			mustDo(t, err)
			defer again.Close()
			if is := contents(t, again); !slices.Equal(is, was) {
				t.Errorf("restored:\n%s\nwas:\n%s", strings.Join(is, "\n"), strings.Join(was, "\n"))
			}
			files, err := filepath.Glob(filepath.Join(to, namespaceDir, objectsDir, "*", payloadFile))
			if err != nil || len(files) < 2 {
				t.Fatalf("%d objects, %v", len(files), err)
			}
			for _, file := range files {
				if !json.Valid(mustRead(t, file)) {
					t.Errorf("%s is no JSON", file)
				}
			}
			mustVerify(t, to)
		})
	}
}

// everyFile gives each file below a path, or the file there.
func everyFile(t *testing.T, path string, look func(text []byte)) {
	t.Helper()
	mustDo(t, filepath.WalkDir(path, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			look(mustRead(t, path))
		}
		return err
	}))
}

func bytesIn(t *testing.T, path string) (size int) {
	everyFile(t, path, func(text []byte) { size += len(text) })
	return size
}

func countIn(t *testing.T, path, what string) (count int) {
	everyFile(t, path, func(text []byte) { count += bytes.Count(text, []byte(what)) })
	return count
}

// An object of a copy that is not made as the state says is refused by its name, although its
// manifest fits.
func TestRestoreRefusesAnObject(t *testing.T) {
	t.Parallel()
	good := tapedStore(t)
	at := slices.IndexFunc(good, func(e taped) bool { return strings.HasSuffix(e.Name, payloadFile) && e.data[0] == '[' })
	alone := slices.IndexFunc(good, func(e taped) bool { return strings.HasSuffix(e.Name, payloadFile) && e.data[0] == '{' })
	for _, c := range []struct {
		name   string
		at     int
		change func(b []byte) []byte
		names  string
	}{
		{"no array", at, func(b []byte) []byte { b[0] = ' '; return b }, `has ' ' where '[' must stand`},
		{"another mark", at, func(b []byte) []byte { b[len(small("m000").Payload)+1] = ';'; return b }, `has ';' where ',' must stand`},
		{"not closed", at, func(b []byte) []byte { return b[:len(b)-1] }, `ends where ']' must stand`},
		{"a message short", at, func(b []byte) []byte { return b[:len(b)-3] }, "ends after"},
		{"empty", at, func(b []byte) []byte { return nil }, `ends where '[' must stand`},
		{"a byte more", at, func(b []byte) []byte { return append(b, '\n') }, "is longer than"},
		{"a message alone that goes on", alone, func(b []byte) []byte { return append(b, '\n') }, "is longer than"},
		{"a message alone that is short", alone, func(b []byte) []byte { return b[:1] }, "ends after 1 of the"},
		{"as an array", alone, func(b []byte) []byte { return slices.Concat([]byte("["), b, []byte("]")) }, "is longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries := slices.Clone(good)
			entries[c.at].data = c.change(bytes.Clone(entries[c.at].data))
			entries[len(entries)-1].data = bytes.Clone(entries[len(entries)-1].data)
			_, err := RestoreTar(context.Background(), bytes.NewReader(tape(t, remade(t, entries))), filepath.Join(t.TempDir(), "store"), nil, RestoreOptions{})
			refusal(t, "restore", err, ErrBackup, entries[c.at].Name)
			if err != nil && !strings.Contains(err.Error(), c.names) {
				t.Errorf("%v, want %q", err, c.names)
			}
		})
	}
}
