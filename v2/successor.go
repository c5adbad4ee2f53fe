//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
)

// follow makes the newest committed state the one that is known. Called under the lock,
// when s.cached is what state.json holds.
//
// After a power loss that may be an older one: the exchanges of the last commits were
// not durable, their data were. While the machine is up it is the newest: a commit whose
// exchange did not come either is taken back or leaves a record in the lock. So a handle,
// which does not survive a power loss, looks until it has once found none.
//
// What is found under a record may be of a commit that nobody was told of. It is whole,
// and what it names was synced before it was written: a recovery publishes it anew.
func (s *Store) follow(p *pins) error {
	for {
		next, err := s.successor(p, s.cached.st)
		if err != nil {
			return err
		}
		if next == nil {
			s.followed.Store(!s.cached.beside)
			return nil
		}
		next.at, next.beside = s.cached.at, true
		s.cached.close()
		s.cached = next
	}
}

// followUnlocked is follow for a look without the lock, by a handle that does not know yet that
// state.json is the newest state. A spare that is being overwritten is not whole; one that is
// may be of a commit under way, which such a look may show as well as leave out.
func (s *Store) followUnlocked(p *pins, c *cachedState) (*cachedState, error) {
	for c.st.exchange && !s.followed.Load() {
		next, err := s.successor(p, c.st)
		if err != nil || next == nil {
			return c, err
		}
		c.close()
		c = next
	}
	return c, nil
}

// successor gives the state that was committed after st, from its spare; nil: there is none.
func (s *Store) successor(p *pins, st *state) (*cachedState, error) {
	name := spareName(st.revision + 1)
	file, err := openFile(p.space.Open, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	next := &cachedState{file: file}
	if err := s.readSuccessor(next, st, name); err != nil || next.st == nil {
		next.close()
		return nil, err
	}
	return next, nil
}

func (s *Store) readSuccessor(next *cachedState, st *state, name string) error {
	// All of how it must begin is known but its commit token.
	begin := appendHead(nil, head{store: st.store, revision: st.revision + 1})
	is := make([]byte, len(begin))
	if _, err := readFull(next.file, is, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	copy(commitOf(begin), commitOf(is))
	if !bytes.Equal(is, begin) {
		return nil
	}
	text, err := s.readText(next)
	if err != nil || !isWhole(text) {
		return err // a writing that the power cut off
	}
	found, err := s.decode(next, text, name, st.store)
	if err == nil && found.after == st.commit {
		next.st = found
	}
	return err
}

// commitOf gives the commit token of a text that begins as a state does.
func commitOf(text []byte) []byte { return text[len(`{"commit":"`):][:tokenChars] }

// isWhole reports whether a state with a checksum was written to its end.
func isWhole(text []byte) bool {
	text = withoutPadding(text)
	most := len(text) - len(`,"sum":"01234567","end":""}`+"\n") - tokenChars
	if most < headSize {
		return false
	}
	end := append([]byte(`,"sum":`), appendChecksum(nil, checksum(text[:most]))...)
	end = append(end, `,"end":"`...)
	end = append(end, commitOf(text)...)
	return bytes.Equal(text[most:], append(end, "\"}\n"...))
}
