//go:build unix

package holdfast

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A PayloadReader reads the payload of a claimed message from its beginning to its end,
// piece by piece. It goes on whatever becomes of the message meanwhile: acked, superseded,
// claimed by another, collected. It is used by one goroutine at a time.
type PayloadReader struct {
	from io.ReaderAt
	file io.Closer // nil: it is in memory
	ref  ref
	name string
	done int64
	sum  uint32
	err  error // sticks
}

// OpenPayload opens the payload that a receipt is for, for a handler that does not want a
// large one in memory a second time, or hands it on. The receipt must be good: the errors
// are those of Ack. Close the reader: it holds a descriptor, and the room of a payload that
// was collected meanwhile.
func (s *Store) OpenPayload(ctx context.Context, r queue.Receipt) (*PayloadReader, error) {
	var out *PayloadReader
	drop := func() {
		if out != nil {
			_ = out.Close() // only opened
			out = nil
		}
	}
	err := s.look(ctx, func(v *view) error {
		drop() // of a commit that is tried anew
		slot, err := v.draft.held(r)
		if err != nil {
			return err
		}
		out, err = v.openPayload(r.Queue+"/"+r.ID, &slot.claimed.ref)
		return err
	})
	if err != nil {
		drop()
		return nil, err
	}
	return out, nil
}

// openPayload opens what r names: what is written over it later is another object.
func (v *view) openPayload(name string, r *ref) (*PayloadReader, error) {
	out := &PayloadReader{ref: *r, name: name}
	if i, ok := v.draft.itemOf[r.gen]; ok { // of this commit: it is not in its place yet
		out.from, out.ref.off = bytes.NewReader(bytes.Clone(v.draft.items[i].payload)), 0
		out.ref.size, out.ref.sum = int64(len(v.draft.items[i].payload)), checksum(v.draft.items[i].payload)
		return out, nil
	}
	file, err := openObject(v.pins.objects, r.object, payloadFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, out.damaged("its object is missing")
	case errors.Is(err, fsguard.ErrSymlink), errors.Is(err, fsguard.ErrNotPlain):
		return nil, out.damaged(err.Error())
	case err != nil: // a second link of it is a backup's doing: the bytes are there
		return nil, typed(err)
	}
	out.from, out.file = file, file
	return out, nil
}

// Size is the payload's length in bytes.
func (p *PayloadReader) Size() int64 { return p.ref.size }

// Read is io.Reader's. The end is told, as io.EOF, only when all bytes were read and match
// their checksum; else it answers queue.ErrDamaged, and what was read is not the payload.
func (p *PayloadReader) Read(b []byte) (int, error) {
	if p.err != nil || len(b) == 0 {
		return 0, p.err
	}
	if p.done == p.ref.size {
		if p.err = io.EOF; p.sum != p.ref.sum {
			p.err = p.damaged(fmt.Sprintf("its checksum is %08x, not %08x", p.sum, p.ref.sum))
		}
		return 0, p.err
	}
	n, err := p.from.ReadAt(b[:min(int64(len(b)), p.ref.size-p.done)], p.ref.off+p.done)
	p.sum = crc32.Update(p.sum, castagnoli, b[:n])
	switch p.done += int64(n); {
	case n > 0: // an error comes again
	case errors.Is(err, io.EOF):
		p.err = p.damaged(fmt.Sprintf("its object ends after %d of %d bytes", p.done, p.ref.size))
	case err != nil:
		p.err = err
	}
	return n, p.err
}

func (p *PayloadReader) damaged(why string) error {
	return fmt.Errorf("%s: %s: %w", p.name, why, queue.ErrDamaged)
}

// Close gives the descriptor back. Reading afterwards answers fs.ErrClosed.
func (p *PayloadReader) Close() error {
	p.err = fs.ErrClosed
	if p.file == nil {
		return nil
	}
	file := p.file
	p.file = nil
	return file.Close()
}
