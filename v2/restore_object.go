//go:build unix

package holdfast

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strings"

	"example.com/holdfast/internal/fsguard"
)

// unpackBuffer is how much of an object a restore holds at a time, once as it comes and once
// as it goes, whatever the object's size.
const unpackBuffer = 64 << 10

var blanks = strings.Repeat(" ", 4<<10)

// unpack makes an object of what a copy has of it: each message where the state says that it
// lies. What a copy leaves out becomes spaces, as they may stand in an array.
func (x *restoring) unpack(path string, parts []part) error {
	in, err := x.from.open()
	if err != nil {
		return err
	}
	defer in.Close() // only read
	u := x.unpacking
	if u == nil {
		u = &unpacking{in: bufio.NewReaderSize(nil, unpackBuffer), out: bufio.NewWriterSize(nil, unpackBuffer)}
		x.unpacking = u
	}
	came := &digest{Hash: sha256.New()}
	u.in.Reset(io.TeeReader(in, came))
	u.path, u.at = path, 0
	err = x.make(parts[0].object, payloadFile, func(f fsguard.File) error {
		u.out.Reset(&appending{File: f})
		return u.object(parts)
	})
	if err != nil {
		return err
	}
	x.arrived = append(x.arrived, manifestFact{path, came.size, hex.EncodeToString(came.Sum(nil))})
	return nil
}

// An unpacking has the buffers of a restore, and the object that goes through them.
type unpacking struct {
	in   *bufio.Reader
	out  *bufio.Writer
	path string
	at   int64 // where the object is written on
}

// object copies the messages to their places, and refuses one byte more or less.
func (u *unpacking) object(parts []part) error {
	several := len(parts) > 1
	for i := range parts {
		p := &parts[i]
		if several {
			if err := u.expect(opening(i)); err != nil {
				return err
			}
		}
		if err := u.blank(opening(i), p.off-u.at); err != nil {
			return err
		}
		n, err := io.CopyN(u.out, u.in, p.size)
		if u.at = p.off + n; err == io.EOF {
			err = u.bad("ends after %d of the %d bytes of %s/%s", n, p.size, p.queue, p.id)
		}
		if err != nil {
			return err
		}
	}
	if several {
		if err := u.expect(']'); err != nil {
			return err
		}
	}
	switch _, err := u.in.ReadByte(); {
	case err == nil:
		return u.bad("is longer than what %s names of it", stateFile)
	case err != io.EOF:
		return err
	}
	if parts[0].off > 0 {
		if err := u.out.WriteByte(']'); err != nil {
			return err
		}
	}
	return u.out.Flush()
}

// expect takes the byte that stands between messages.
func (u *unpacking) expect(want byte) error {
	c, err := u.in.ReadByte()
	switch {
	case err == io.EOF:
		return u.bad("ends where %q must stand", want)
	case err == nil && c != want:
		return u.bad("has %q where %q must stand", c, want)
	}
	return err
}

// blank fills a gap of so many bytes.
func (u *unpacking) blank(mark byte, size int64) error {
	if size <= 0 {
		return nil
	}
	if err := u.out.WriteByte(mark); err != nil {
		return err
	}
	for size--; size > 0; {
		n, err := u.out.WriteString(blanks[:min(size, int64(len(blanks)))])
		if size -= int64(n); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacking) bad(format string, args ...any) error {
	return &BackupError{Entry: u.path, Reason: fmt.Sprintf(format, args...)}
}

// A digest hashes what is written to it, and counts it.
type digest struct {
	hash.Hash
	size int64
}

func (d *digest) Write(b []byte) (int, error) {
	d.size += int64(len(b))
	return d.Hash.Write(b)
}

// An appending writes a file from its beginning.
type appending struct {
	fsguard.File
	at int64
}

func (a *appending) Write(b []byte) (int, error) {
	n, err := a.WriteAt(b, a.at)
	a.at += int64(n)
	return n, err
}
