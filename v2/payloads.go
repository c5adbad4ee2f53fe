//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"example.com/holdfast/internal/fsguard"
)

// payloads reads messages out of their objects. It keeps the object that it read
// last open, because messages that were enqueued together lie in one.
type payloads struct {
	objects fsguard.Dir
	name    token
	file    fsguard.File
}

// read gives r's payload. damage says why it can never be delivered: its object is
// missing, is not a plain file, is too short or does not match its checksum. Any
// other trouble is err and says nothing about the message.
func (p *payloads) read(r *ref) (payload []byte, damage string, err error) {
	if damage, err := p.open(r.object); damage != "" || err != nil {
		return nil, damage, err
	}
	payload, err = readRange(p.file, r.off, r.size)
	switch {
	case errors.Is(err, io.EOF):
		return nil, fmt.Sprintf("its object ends after %d of %d bytes", len(payload), r.size), nil
	case err != nil:
		return nil, "", err
	}
	if sum := checksum(payload); sum != r.sum {
		return nil, fmt.Sprintf("its checksum is %08x, not %08x", sum, r.sum), nil
	}
	return payload, "", nil
}

// open opens an object, unless it is open.
func (p *payloads) open(object token) (damage string, err error) {
	if p.file != nil && p.name == object {
		return "", nil
	}
	p.close()
	file, err := openObject(p.objects, object, payloadFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "its object is missing", nil
	case errors.Is(err, fsguard.ErrSymlink), errors.Is(err, fsguard.ErrNotPlain):
		return err.Error(), nil
	case errors.Is(err, fsguard.ErrLinked): // a backup's doing: the bytes are there
		return "", typed(err)
	case err != nil:
		return "", err
	}
	p.name, p.file = object, file
	return "", nil
}

func (p *payloads) close() {
	if p.file != nil {
		_ = p.file.Close() // only read from
		p.file = nil
	}
}

// readRange reads size bytes at off. The size is what the state says: memory is taken
// only for what is really there.
func readRange(f fsguard.File, off, size int64) ([]byte, error) {
	buf := make([]byte, 0, min(size, 64<<10))
	for int64(len(buf)) < size {
		if len(buf) == cap(buf) {
			more := make([]byte, len(buf), min(size, 4*int64(cap(buf))))
			copy(more, buf)
			buf = more
		}
		n, err := readFull(f, buf[len(buf):cap(buf)], off+int64(len(buf)))
		buf = buf[:len(buf)+n]
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

func readFull(f fsguard.File, b []byte, off int64) (int, error) {
	n := 0
	for n < len(b) {
		m, err := f.ReadAt(b[n:], off+int64(n))
		n += m
		if n == len(b) {
			break
		}
		if err != nil {
			return n, err
		}
		if m == 0 {
			return n, io.ErrNoProgress
		}
	}
	return n, nil
}

func openObject(objects fsguard.Dir, name token, file string) (fsguard.File, error) {
	d, err := objects.OpenDir(name.String())
	if err != nil {
		return nil, err
	}
	f, err := d.Open(file)
	_ = d.Close() // only passed through
	return f, err
}

// An unsynced is an object or a state temp that was written and not synced yet.
type unsynced struct {
	dir  fsguard.Dir
	file fsguard.File
}

// writeObject makes an object's directory and file, exclusively. Nothing of it is
// durable yet: the file, its directory and the edge in objects/ are to be synced.
func writeObject(objects fsguard.Dir, o object) (u unsynced, err error) {
	if u, err = makeObject(objects, o.name, o.file); err != nil {
		return u, err
	}
	_, err = u.file.WriteAt(o.data, 0)
	return u, err
}

// makeObject is writeObject with an empty file.
func makeObject(objects fsguard.Dir, name token, file string) (u unsynced, err error) {
	if err := objects.Mkdir(name.String()); err != nil {
		return u, err
	}
	if u.dir, err = objects.OpenDir(name.String()); err != nil {
		return u, err
	}
	u.file, err = u.dir.Create(file)
	return u, err
}

func (u unsynced) close() {
	if u.file != nil {
		_ = u.file.Close() // synced before, or given up
	}
	if u.dir != nil {
		_ = u.dir.Close()
	}
}

// dropObject takes back an object that no state names. What cannot be removed stays
// as an orphan, which is harmless.
func dropObject(objects fsguard.Dir, name token, file string) {
	if d, err := objects.OpenDir(name.String()); err == nil {
		_ = d.Remove(file)
		_ = d.Close()
	}
	_ = objects.RemoveDir(name.String())
}
