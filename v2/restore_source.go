//go:build unix

package holdfast

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"example.com/holdfast/internal/fsguard"
)

// A source gives the files of a copy in the order in which they were written: state.json,
// runs, payloads, and the manifest last. What it gives is anybody's: who takes it believes
// nothing.
type source interface {
	// next gives the path of the next file; io.EOF: there is none.
	next() (path string, err error)

	// open gives the content of that file, once. Its reader's errors are those of next.
	open() (io.ReadCloser, error)

	close()
}

// mostManifest bounds the manifest of so many objects: some ten million at most.
func mostManifest(objects int) int64 {
	const head, line, most = 4 << 10, 256, 2 << 30
	return min(head+line*int64(objects), most)
}

// readWhole reads the next file of a copy, of at most so many bytes, into memory.
func readWhole(from source, entry string, most int64) ([]byte, error) {
	in, err := from.open()
	if err != nil {
		return nil, err
	}
	defer in.Close() // only read
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(text)) > most {
		err = tooLong(entry, most)
	}
	return text, err
}

func tooLong(entry string, most int64) error {
	return &BackupError{Entry: entry, Reason: fmt.Sprintf("is longer than the %d bytes that it can have", most)}
}

// A dirSource reads a directory. Its manifest is read first: without one it is no whole copy.
// What the manifest does not name is not looked at.
type dirSource struct {
	root, objects fsguard.Dir
	manifest      []byte
	paths         []string // still to come
	path          string   // the one that has
}

func newDirSource(fsys fsguard.FS, from string) (source, error) {
	root, err := fsys.OpenRoot(from)
	if err != nil {
		return nil, fmt.Errorf("the copy: %w", err)
	}
	d := &dirSource{root: root}
	if err := d.begin(); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *dirSource) begin() error {
	var missing error
	var names []string
	if d.objects, missing = openDir(d.root, objectsDir); missing == nil {
		var err error
		if names, err = d.objects.ReadDir(); err != nil {
			return fmt.Errorf("reading %s/ of the copy: %w", objectsDir, err)
		}
	}
	d.path = manifestFile
	text, err := readWhole(d, d.path, mostManifest(len(names)))
	if err != nil {
		return err
	}
	m, err := decodeManifest(text)
	if err != nil {
		return err
	}
	for _, f := range m.Files {
		d.paths = append(d.paths, f.Path)
	}
	d.paths = append(d.paths, manifestFile)
	d.manifest = text
	return admitEntry(objectsDir, missing)
}

func (d *dirSource) next() (string, error) {
	if len(d.paths) == 0 {
		return "", io.EOF
	}
	d.path, d.paths = d.paths[0], d.paths[1:]
	return d.path, nil
}

func (d *dirSource) open() (io.ReadCloser, error) {
	switch {
	case d.path == manifestFile && d.manifest != nil: // it is one and the same that is followed and held against
		return io.NopCloser(bytes.NewReader(d.manifest)), nil
	case d.path == manifestFile, d.path == stateFile:
		return d.file(d.root, d.path)
	}
	object, file, ok := splitObject(d.path)
	if !ok {
		return nil, &BackupError{Entry: d.path, Reason: "is no path of a copy"}
	}
	dir, err := d.objects.OpenDir(object.String())
	if err != nil {
		return nil, admitEntry(d.path, err)
	}
	defer dir.Close() // only passed through
	return d.file(dir, file)
}

func (d *dirSource) file(in fsguard.Dir, name string) (io.ReadCloser, error) {
	file, err := in.Open(name)
	if err != nil {
		return nil, admitEntry(d.path, err)
	}
	return &dirFile{File: file, path: d.path}, nil
}

// A dirFile reads a file of a directory from its beginning.
type dirFile struct {
	fsguard.File
	path string
	at   int64
}

func (f *dirFile) Read(b []byte) (int, error) {
	n, err := f.ReadAt(b, f.at)
	f.at += int64(n)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("reading %s of the copy: %w", f.path, err)
	}
	return n, err
}

// admitEntry says what is wrong with an entry that could not be opened. An error of the
// disk says nothing about the copy.
func admitEntry(entry string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist) && entry == manifestFile:
		return &BackupError{Entry: entry, Reason: "is missing: this is no copy, or one that was not finished"}
	case errors.Is(err, fs.ErrNotExist):
		return &BackupError{Entry: entry, Reason: "is missing"}
	case errors.Is(err, fsguard.ErrLinked):
		return &BackupError{Entry: entry, Reason: "has more than one hard link; make a copy of its own first, as with cp -r", Err: typed(err)}
	case errors.Is(err, fsguard.ErrSymlink), errors.Is(err, fsguard.ErrNotPlain), errors.Is(err, ErrUnsafe):
		return &BackupError{Entry: entry, Reason: err.Error(), Err: typed(err)}
	}
	return fmt.Errorf("opening %s of the copy: %w", entry, err)
}

func (d *dirSource) close() {
	for _, dir := range []fsguard.Dir{d.objects, d.root} {
		if dir != nil {
			_ = dir.Close() // only read
		}
	}
}

// A tarSource reads a stream. Names in it open nothing: they are compared.
type tarSource struct {
	r    *tar.Reader
	path string
}

func newTarSource(r io.Reader) source { return &tarSource{r: tar.NewReader(r)} }

func (t *tarSource) next() (string, error) {
	h, err := t.r.Next()
	switch {
	case err == io.EOF:
		return "", io.EOF
	case errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, tar.ErrFieldTooLong):
		return "", &BackupError{Entry: t.path, Reason: "what follows it is no tar entry, or is cut off: " + err.Error(), Err: err}
	case err != nil:
		return "", fmt.Errorf("reading behind %q of the copy: %w", t.path, err)
	case h.Typeflag != tar.TypeReg:
		return "", &BackupError{Entry: h.Name, Reason: fmt.Sprintf("is no plain file (tar type %q)", h.Typeflag)}
	case isSparse(h):
		return "", &BackupError{Entry: h.Name, Reason: "is no plain file: it has holes"}
	}
	t.path = h.Name
	return t.path, nil
}

// isSparse reports whether an entry has holes, in the form that has the type of a plain
// file: a few bytes of the stream could be read as any number.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

func (t *tarSource) open() (io.ReadCloser, error) { return io.NopCloser(tarFile{t}), nil }

// A tarFile reads the entry at which a stream is.
type tarFile struct{ t *tarSource }

func (f tarFile) Read(b []byte) (int, error) {
	n, err := f.t.r.Read(b)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = &BackupError{Entry: f.t.path, Reason: "is cut off", Err: err}
	case err != nil && err != io.EOF:
		err = fmt.Errorf("reading %q of the copy: %w", f.t.path, err)
	}
	return n, err
}

func (t *tarSource) close() {}
