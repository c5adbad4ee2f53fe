//go:build unix

package holdfast

import (
	"fmt"
	"path"
	"strings"

	"example.com/holdfast/internal/fsguard"
)

// unsyncedFiles is how many files are written before they are synced together.
const unsyncedFiles = 32

// A fileBatch writes objects and syncs some at a time.
type fileBatch struct {
	fs      fsguard.FS
	objects fsguard.Dir
	written []unsynced
}

// write makes an object of one file.
func (b *fileBatch) write(o object) error {
	return b.make(o.name, o.file, func(f fsguard.File) error {
		_, err := f.WriteAt(o.data, 0)
		return err
	})
}

// make is write with a file that fill fills.
func (b *fileBatch) make(name token, file string, fill func(fsguard.File) error) error {
	u, err := makeObject(b.objects, name, file)
	b.written = append(b.written, u)
	if err == nil {
		err = fill(u.file)
	}
	if err == nil && len(b.written) == unsyncedFiles {
		err = b.sync()
	}
	return err
}

// sync makes what was written durable, but for the edges in objects/.
func (b *fileBatch) sync() error {
	var targets []fsguard.Syncer
	for _, u := range b.written {
		targets = append(targets, u.file, u.dir)
	}
	err := b.fs.SyncAll(targets...)
	b.close()
	return syncError(err)
}

func (b *fileBatch) close() {
	for _, u := range b.written {
		u.close()
	}
	b.written = nil
}

// splitObject takes the path of an object's file apart. No other path is one.
func splitObject(name string) (object token, file string, ok bool) {
	rest, ok := strings.CutPrefix(name, objectsDir+"/")
	dir, file := path.Split(rest)
	if !ok || file != payloadFile && file != runFile {
		return token{}, "", false
	}
	object, ok = parseToken(strings.TrimSuffix(dir, "/"))
	return object, file, ok && name == objectsDir+"/"+object.String()+"/"+file
}

// A dirSink makes a directory of a copy.
type dirSink struct {
	root fsguard.Dir
	fileBatch
}

func newDirSink(fsys fsguard.FS, dir string, o *Options) (sink, error) {
	if _, err := makeRoot(fsys, dir, true); err != nil {
		return nil, err
	}
	root, err := fsys.OpenRoot(dir)
	if err != nil {
		return nil, typed(err)
	}
	d := &dirSink{root: root, fileBatch: fileBatch{fs: fsys}}
	if err := d.begin(dir, o); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// begin refuses a directory that holds anything. Of two backups into one, the second does
// not make objects/.
func (d *dirSink) begin(dir string, o *Options) error {
	if err := admitOwner(d.root, o, false); err != nil {
		return err
	}
	names, err := d.root.ReadDir()
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%s holds %q: %w", dir, names[0], ErrNotEmpty)
	}
	if err := d.root.Mkdir(objectsDir); err != nil {
		return err
	}
	d.objects, err = openDir(d.root, objectsDir)
	return err
}

func (d *dirSink) put(name string, data []byte) error {
	if object, file, ok := splitObject(name); ok {
		return d.write(newObject(object, file, data))
	}
	return makeFile(d.root, name, func(f fsguard.File) error {
		_, err := f.WriteAt(data, 0)
		return err
	})
}

func newObject(name token, file string, data []byte) object {
	return object{name: name, file: file, data: data}
}

// seal writes the manifest behind a sync of all that it names, so that no crash leaves it
// beside less.
func (d *dirSink) seal(manifest []byte) error {
	if err := d.sync(); err != nil {
		return err
	}
	if err := d.fs.SyncAll(d.objects, d.root); err != nil {
		return syncError(err)
	}
	if err := d.root.WriteFile(manifestFile, manifest); err != nil {
		return err
	}
	return syncError(d.root.Sync())
}

func (d *dirSink) close() {
	d.fileBatch.close()
	for _, dir := range []fsguard.Dir{d.objects, d.root} {
		if dir != nil {
			_ = dir.Close() // synced before, or given up
		}
	}
}
