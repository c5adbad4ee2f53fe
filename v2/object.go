//go:build unix

package holdfast

import (
	"hash/crc32"
	"unicode/utf8"

	"example.com/holdfast/queue"
)

const (
	smallPayload   = 64 << 10 // messages up to this share objects
	maxBatchObject = 1 << 20  // a shared object's size
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC-32C of a payload. It finds damage; it never stands for
// identity.
func checksum(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }

const (
	maxLastError = queue.MaxErrorBytes
	crowdedError = 64 // bytes as they are written, in a state that has outgrown its bound
)

// written is how many bytes s takes in state.json, its quotes aside.
func written(s string) int {
	n := 0
	for _, r := range s {
		n += writtenRune(r)
	}
	return n
}

func writtenRune(r rune) int {
	switch {
	case r < ' ':
		return len(`\u0000`)
	case r == '"', r == '\\':
		return 2
	}
	return utf8.RuneLen(r)
}

// cutWritten cuts s, on a rune, to at most so many written bytes.
func cutWritten(s string, most int) string {
	n := 0
	for i, r := range s {
		if n += writtenRune(r); n > most {
			return s[:i]
		}
	}
	return s
}

// An object is a file of objects/ in the making.
type object struct {
	name token
	file string // payloadFile or runFile
	data []byte

	ready *preparedObject // that it is put into; nil: it is made
}

// pack puts the draft's payloads into objects and points their references at them.
// A payload that its commit superseded again is not written. Small payloads that
// come together share objects: a JSON array, each element verbatim. A payload that
// is alone in its object is the object. In a prepared object either is an element.
func (d *draft) pack(newToken func() (token, error)) ([]object, error) {
	var objects []object
	var batch []item
	var batchBytes int
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		size := batchBytes + 1
		if len(batch) == 1 {
			size = len(batch[0].payload)
		}
		name, ready, err := d.place(size, newToken)
		if err != nil {
			return err
		}
		var at int64
		if ready != nil {
			at = ready.next + 1
		}
		if len(batch) == 1 {
			d.pointAt(batch[0], name, at)
			objects = append(objects, object{name, payloadFile, batch[0].payload, ready})
		} else {
			data := make([]byte, 0, size)
			for i, it := range batch {
				data = append(data, "[,"[min(i, 1)])
				d.pointAt(it, name, at+int64(len(data)))
				data = append(data, it.payload...)
			}
			objects = append(objects, object{name, payloadFile, append(data, ']'), ready})
		}
		batch, batchBytes = batch[:0], 0
		return nil
	}
	for i, it := range d.items {
		if d.itemOf[it.gen] != i || d.refOf(it) == nil {
			continue
		}
		if len(it.payload) > smallPayload {
			name, err := newToken()
			if err != nil {
				return nil, err
			}
			d.pointAt(it, name, 0)
			objects = append(objects, object{name: name, file: payloadFile, data: it.payload})
			continue
		}
		if batchBytes+len(it.payload)+2 > maxBatchObject {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		batch = append(batch, it)
		batchBytes += len(it.payload) + 1
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return objects, nil
}

// place gives the name of an object that payloads share: of the prepared one, if that has
// room for this size.
func (d *draft) place(size int, newToken func() (token, error)) (token, *preparedObject, error) {
	if d.ready != nil {
		if x := d.ready(size); x != nil {
			return x.name, x, nil
		}
	}
	name, err := newToken()
	return name, nil, err
}

// refOf finds where an item's generation stands in the draft; nil: it has left.
// The slot or the failed entry was made by this draft, so its references may still be
// changed.
func (d *draft) refOf(it item) *ref {
	if it.failed != "" {
		if e := d.st.failedEntry(it.space, it.failed); e != nil && e.ref.gen == it.gen {
			return &e.ref
		}
		return nil
	}
	q := d.st.queue(it.queue)
	if q == nil {
		return nil
	}
	s, _ := q.find(it.id)
	switch {
	case s == nil:
		return nil
	case s.pending != nil && s.pending.gen == it.gen:
		return s.pending
	case s.claimed != nil && s.claimed.gen == it.gen:
		return &s.claimed.ref
	}
	return nil
}

func (d *draft) pointAt(it item, name token, off int64) {
	r := d.refOf(it)
	r.object, r.off = name, off
}
