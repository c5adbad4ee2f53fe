//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
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

// fillSpare writes the text into the spare, unsynced. Whether more than the first bytes may be
// there it tells also where it fails.
func (w *writing) fillSpare(s *Store) (begun bool, err error) {
	room := toBlocks(w.length)
	if size := int64(len(s.text)); room < size {
		room = toBlocks(size + size/2)
	}
	upTo := max(w.used, int64(len(s.text)))
	if room > w.length {
		upTo = room
	}
	w.length = room
	s.text = padded(s.text, upTo)
	text := s.text[:upTo]
	if _, err := w.file.file.WriteAt(text[:spareHead], 0); err != nil {
		return false, err
	}
	_, err = w.file.file.WriteAt(text[spareHead:], spareHead)
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

// openSpare opens the file that the commit of a revision is written into, and finds out how
// far it is used and how long it is. It makes one where there is none, or a far too long one.
// Not done: something else stands there, which is left to the operator (Verify tells of it),
// or the disk refuses; a plain replacement, which needs no spare, then says the rest.
func (w *writing) openSpare(s *Store, revision uint64) (done bool) {
	space, name := w.p.space, spareName(revision)
	var text *fileText
	info, err := space.Lstat(name)
	if err == nil && !info.Plain() {
		return false
	}
	var file fsguard.File
	if known := s.takeRetired(info.Identity); err == nil && known != nil {
		if text = &known.fileText; known.writable {
			file = known.file
		} else {
			known.close()
		}
	}
	if file == nil {
		file, err = space.OpenWrite(name)
		if errors.Is(err, fs.ErrNotExist) {
			return w.makeSpare(name)
		}
		if err != nil {
			return false
		}
		info, err = file.Info()
	}
	var used, length int64
	if err == nil {
		used, length, err = usedOf(file, info, text, s.cached.info.Identity)
	}
	if err == nil && length > 0 && length <= 2*int64(len(s.text))+spareSlack {
		w.temp, w.file.file, w.spare, w.used, w.length = name, file, true, used, length
		return true
	}
	_ = file.Close() // nothing was written through it
	if err != nil || space.Remove(name) != nil {
		return false
	}
	return w.makeSpare(name)
}

func (w *writing) makeSpare(name string) (done bool) {
	file, err := w.p.space.Create(name)
	if err != nil {
		return false
	}
	w.temp, w.file.file, w.spare, w.fresh, w.names = name, file, true, true, true
	return true
}

// lengthen gives all spares the room that this commit's needs where that has outgrown its own, so
// that a claim or a settlement on a full disk needs none. Their exchanges are made durable
// first: they are written into before their turn.
func (w *writing) lengthen(s *Store) error {
	size := int64(len(s.text))
	if size <= toBlocks(w.length) {
		return nil
	}
	space, room := w.p.space, toBlocks(size+size/2)
	short := map[string]fsguard.Info{}
	for n := range uint64(spares) {
		name := spareName(n)
		info, err := space.Lstat(name)
		if name != w.temp && err == nil && info.Plain() && info.Size < room {
			short[name] = info // what is not there or is something else is seen to when its turn comes
		}
	}
	if len(short) == 0 {
		return nil
	}
	if err := space.Sync(); err != nil {
		w.p.doubted = true
		return syncError(err)
	}
	w.syncs++
	for _, name := range slices.Sorted(maps.Keys(short)) {
		if known := s.takeRetired(short[name].Identity); known != nil {
			known.close() // what is known of it is so no longer
		}
		file, err := space.OpenWrite(name)
		if err != nil {
			return err
		}
		w.open = append(w.open, unsynced{file: file})
		size := short[name].Size
		if _, err := file.WriteAt(padded(nil, room-size)[:room-size], size); err != nil {
			return err
		}
		w.targets = append(w.targets, fsguard.DataOf(file))
	}
	return nil
}

// giveUpSpares frees the room of the spares for a commit that settles, and reports whether it
// did: that and those after it take room for one more state at a time, and give it back. What
// the spares hold must be known not to be the newest state of a crash: their exchanges are
// made durable first. Where that has failed in this tenure, a sync that succeeds tells nothing.
func (s *Store) giveUpSpares(p *pins) bool {
	if !s.cached.st.exchange || s.crowded || s.cached.beside || p.doubted {
		return false
	}
	if p.space.Sync() != nil {
		p.doubted = true
		return false
	}
	s.forgetRetired()
	for n := range uint64(spares) {
		if info, err := p.space.Lstat(spareName(n)); err == nil && info.Plain() {
			_ = p.space.Remove(spareName(n)) // its room is then not to be had
		}
	}
	s.crowded = true
	return true
}

// forgetRetired drops what is known of the spares.
func (s *Store) forgetRetired() {
	for _, c := range s.retired {
		c.close()
	}
	s.retired = s.retired[:0]
}

// retire keeps a file that is a spare now.
func (s *Store) retire(c *cachedState) {
	c.st = nil
	if len(s.retired) == spares {
		s.retired[0].close()
		s.retired = slices.Delete(s.retired, 0, 1)
	}
	s.retired = append(s.retired, c)
}

// takeRetired gives a file that is held open, which is then the caller's; nil: it is not.
func (s *Store) takeRetired(id fsguard.Identity) *cachedState {
	i := slices.IndexFunc(s.retired, func(c *cachedState) bool { return c.file != nil && c.info.Identity == id })
	if i < 0 {
		return nil
	}
	c := s.retired[i]
	s.retired = slices.Delete(s.retired, i, i+1)
	return c
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

// admitSpare checks that the spare is still the file that was written.
func (w *writing) admitSpare() error {
	info, err := w.p.space.Lstat(w.temp)
	if err == nil {
		err = admitPlain(w.temp, info)
	}
	written, e := w.file.file.Info()
	if e != nil {
		return e
	}
	return same(w.temp, info, err, written.Identity)
}
