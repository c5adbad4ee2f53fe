//go:build unix

package holdfast

import (
	"archive/tar"
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

	// read gives the content of that file, of at most so many bytes.
	read(most int64) ([]byte, error)

	close()
}

// mostManifest bounds a manifest: some ten million files. One that comes behind the files
// that it names is no longer than they need.
const (
	mostManifest = 2 << 30
	manifestHead = 4 << 10
	manifestLine = 256
)

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
	var err error
	if d.manifest, err = d.text(d.root, manifestFile, manifestFile, mostManifest); err != nil {
		return err
	}
	m, err := decodeManifest(d.manifest)
	if err != nil {
		return err
	}
	for _, f := range m.Files {
		d.paths = append(d.paths, f.Path)
	}
	d.paths = append(d.paths, manifestFile)
	d.objects, err = openDir(d.root, objectsDir)
	return admitEntry(objectsDir, err)
}

func (d *dirSource) next() (string, error) {
	if len(d.paths) == 0 {
		return "", io.EOF
	}
	d.path, d.paths = d.paths[0], d.paths[1:]
	return d.path, nil
}

func (d *dirSource) read(most int64) ([]byte, error) {
	switch d.path {
	case manifestFile:
		return d.manifest, nil
	case stateFile:
		return d.text(d.root, stateFile, d.path, most)
	}
	object, file, ok := splitObject(d.path)
	if !ok {
		return nil, &BackupError{Entry: d.path, Reason: "is no path of a copy"}
	}
	dir, err := d.objects.OpenDir(object.String())
	if err != nil {
		return nil, admitEntry(d.path, err)
	}
	defer dir.Close() // only read
	return d.text(dir, file, d.path, most)
}

func (d *dirSource) text(in fsguard.Dir, name, entry string, most int64) ([]byte, error) {
	file, err := in.Open(name)
	if err != nil {
		return nil, admitEntry(entry, err)
	}
	defer file.Close() // only read
	text, err := fsguard.ReadAll(file, most)
	if errors.Is(err, fsguard.ErrTooLong) {
		return nil, tooLong(entry, most)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s of the copy: %w", entry, err)
	}
	return text, nil
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

func (t *tarSource) read(most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(t.r, most+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &BackupError{Entry: t.path, Reason: "is cut off", Err: err}
	case err != nil:
		return nil, fmt.Errorf("reading %q of the copy: %w", t.path, err)
	case int64(len(text)) > most:
		return nil, tooLong(t.path, most)
	}
	return text, nil
}

func (t *tarSource) close() {}
