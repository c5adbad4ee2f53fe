//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"example.com/holdfast/internal/fsguard"
)

// The files that are exchanged end in spaces, so that a text that grows and shrinks a
// little leaves their length as it is, and a sync of their data suffices. They grow by
// half when the text outgrows them, and are made anew when it has become much smaller: a
// reader reads to the end.
const (
	spareBlock = 4 << 10  // their length is a multiple of this
	spareSlack = 64 << 10 // that a file may be longer than twice its text: less is not worth a new one

	// spareHead is what is written into a spare before anything else. It has the whole
	// commit token, so that whoever knows the first bytes of a file knows the rest.
	spareHead = 64
)

// toBlocks rounds up.
func toBlocks(n int64) int64 { return (n + spareBlock - 1) / spareBlock * spareBlock }

// A fileText is what a file is known to hold: a text that begins with head, and from
// there on nothing but spaces.
type fileText struct {
	info   fsguard.Info
	head   []byte // commit token and revision included
	size   int64  // of the text
	length int64  // of the file; not what stat tells, which may be wrong
}

// still reports whether file holds that text. Its first bytes vouch for the others:
// whoever writes into a spare writes those first, and no commit token comes twice. They do
// not vouch for a file whose sync failed and that could not be removed: of its blocks some
// may have come to the disk and others not. Its mtime does.
func (f *fileText) still(file fsguard.File, info fsguard.Info) (bool, error) {
	if f == nil || info.Identity != f.info.Identity || info.MtimeNanos != f.info.MtimeNanos {
		return false, nil
	}
	return beginsWith(file, f.head)
}

// beginsWith reports whether the first bytes of file are head.
func beginsWith(file fsguard.File, head []byte) (bool, error) {
	b := make([]byte, len(head))
	if _, err := readFull(file, b, 0); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return bytes.Equal(b, head), nil
}

// fillSpare writes the text into the spare, unsynced. Where there is no spare that it can
// be written into it does nothing, and says so.
func (w *writing) fillSpare(s *Store) (done bool, err error) {
	known := s.retired
	s.retired = nil // whatever comes of this
	file, used, length := w.openSpare(s, known, int64(len(s.text)))
	if file == nil {
		return false, nil
	}
	w.temp, w.file.file, w.spare, w.lasting = spareFile, file, true, length > 0
	if w.lasting {
		w.targets = append(w.targets, fsguard.DataOf(file))
	} else {
		w.targets = append(w.targets, file)
	}
	room := toBlocks(length)
	if size := int64(len(s.text)); room < size {
		room = toBlocks(size + size/2)
	}
	upTo := max(used, int64(len(s.text)))
	if room > length {
		upTo = room
	}
	w.length = room
	s.text = padded(s.text, upTo)
	text := s.text[:upTo]
	if _, err := file.WriteAt(text[:spareHead], 0); err != nil {
		return true, err
	}
	_, err = file.WriteAt(text[spareHead:], spareHead)
	return true, err
}

// padded gives text with enough spaces behind it, beyond its length.
func padded(text []byte, upTo int64) []byte {
	size := len(text)
	text = slices.Grow(text, max(0, int(upTo)-size))
	for rest := text[size:max(size, int(upTo))]; len(rest) > 0; {
		rest = rest[copy(rest, blankBlock):]
	}
	return text
}

var blankBlock = strings.Repeat(" ", spareBlock)

// openSpare opens the file that the next state is written into, and tells how far it is
// used and how long it is. It makes one where there is none, or a far too long one.
// nil: something else stands there, which is left to the operator (Verify tells of it),
// or the disk refuses; a plain replacement, which needs no spare, then says the rest.
func (w *writing) openSpare(s *Store, known *cachedState, size int64) (file fsguard.File, used, length int64) {
	space := w.p.space
	var text *fileText
	var info fsguard.Info
	var err error
	if known != nil {
		text = &known.fileText
		if file, info = known.stands(space); file == nil {
			known.close()
		}
	}
	if file == nil {
		file, err = space.OpenWrite(spareFile)
		if errors.Is(err, fs.ErrNotExist) {
			return makeSpare(space)
		}
		if err != nil {
			return nil, 0, 0
		}
		info, err = file.Info()
	}
	if err == nil {
		used, length, err = usedOf(file, info, text, s.cached.info.Identity)
	}
	if err == nil && length <= 2*size+spareSlack {
		return file, used, length
	}
	_ = file.Close() // nothing was written through it
	if err != nil || space.Remove(spareFile) != nil {
		return nil, 0, 0
	}
	return makeSpare(space)
}

// stands gives the file that is held open if it is the spare, under its name, and can be
// written into. What cannot be told now is found out by opening it anew.
func (c *cachedState) stands(space fsguard.Dir) (fsguard.File, fsguard.Info) {
	if c.file == nil || !c.writable {
		return nil, fsguard.Info{}
	}
	info, err := space.Lstat(spareFile)
	if err != nil || !info.Plain() || info.Identity != c.info.Identity {
		return nil, info
	}
	return c.file, info
}

// usedOf tells how far a spare is used, as far as is known, and its length.
func usedOf(file fsguard.File, info fsguard.Info, known *fileText, current fsguard.Identity) (used, length int64, err error) {
	if info.Identity == current {
		return 0, 0, errors.New("state.json and the spare are one file")
	}
	if same, err := known.still(file, info); err != nil {
		return 0, 0, err
	} else if same {
		return known.size, known.length, nil
	}
	// Whatever stands there is overwritten to its end. A filesystem may tell a wrong one.
	_, err = readFull(file, make([]byte, 1), info.Size)
	switch {
	case err == nil:
		return 0, math.MaxInt64, nil // it goes on, nobody knows how far
	case !errors.Is(err, io.EOF):
		return 0, 0, err
	}
	return info.Size, info.Size, nil
}

func makeSpare(space fsguard.Dir) (file fsguard.File, used, length int64) {
	file, err := space.Create(spareFile)
	if err != nil {
		return nil, 0, 0
	}
	return file, 0, 0
}

// admitSpare checks that the spare is still the file that was written.
func (w *writing) admitSpare() error {
	info, err := w.p.space.Lstat(spareFile)
	if err == nil {
		err = admitPlain(spareFile, info)
	}
	written, e := w.file.file.Info()
	if e != nil {
		return e
	}
	return same(spareFile, info, err, written.Identity)
}
