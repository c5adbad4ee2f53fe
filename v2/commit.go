//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A cachedState is a state that was read or written, with the file it came from. The
// file is held open while the lock is, so that its inode number can name nothing else
// between two checks; and not longer where commits replace it, for a replaced state.json
// keeps its room on the disk for as long as anybody has it open. One that is exchanged
// stays, and so does its descriptor; after somebody's recovery or plain replacement it
// keeps that room until the next call.
type cachedState struct {
	st       *state
	file     fsguard.File
	writable bool // the descriptor is
	fileText

	at     fsguard.Info // of what state.json names
	beside bool         // that is an older state: this one is in a spare
}

func (c *cachedState) close() {
	if c.file != nil {
		_ = c.file.Close() // its content was synced or only read
		c.file = nil
	}
}

// forget drops the parsed state: the next call reads the file.
func (s *Store) forget() {
	if s.cached != nil {
		s.cached.close()
		s.cached = nil
	}
}

// current gives the committed state. Called under the lock. The parsed state in
// memory is current only if the path names a file of the same identity, size and
// ctime that begins with the same commit token and revision: no other commit has that
// token, so neither a reused inode number nor a file whose turn has come again can deceive.
func (s *Store) current(p *pins) (*state, error) {
	st, err := s.standing(p)
	if err == nil && st.exchange && !s.followed.Load() {
		if err = s.follow(p); err == nil {
			st = s.cached.st
		}
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

// standing gives the state that state.json holds.
func (s *Store) standing(p *pins) (*state, error) {
	if err := p.readmit(s.fs, s.dir); err != nil {
		return nil, err
	}
	if s.cached != nil && s.cached.beside {
		s.forget()
	}
	if s.cached != nil && s.cached.file != nil {
		info, err := lstatState(p)
		if err != nil {
			return nil, err
		}
		if same, err := s.cached.is(s.cached.file, info); err != nil {
			return nil, err
		} else if same {
			return s.cached.st, nil
		}
		if held := s.turned(info); held != nil {
			return s.read(p, held)
		}
	}
	file, err := openState(p)
	if err != nil {
		return nil, err
	}
	if same, err := s.isCached(file); err != nil {
		return nil, errors.Join(err, file.Close())
	} else if same {
		s.cached.close()
		s.cached.file, s.cached.writable = file, false
		return s.cached.st, nil
	}
	s.forget()
	s.forgetRetired() // state.json was replaced: one of them may be what it was
	return s.read(p, &cachedState{file: file})
}

// turned gives state.json, of which info was told, with another text to be read: where
// commits exchange files and others have committed, it is one of those that are held open.
// nil: it is none of them.
func (s *Store) turned(info fsguard.Info) *cachedState {
	c := s.cached
	if info.Identity != c.info.Identity {
		if c = s.takeRetired(info.Identity); c == nil {
			return nil
		}
		s.retire(s.cached)
	}
	s.cached = nil
	return &cachedState{file: c.file, writable: c.writable}
}

// read makes c the state that is known, when it has been read.
func (s *Store) read(p *pins, c *cachedState) (*state, error) {
	if err := s.readState(p, c); err != nil {
		c.close()
		return nil, err
	}
	c.at = c.info
	s.cached = c
	return c.st, nil
}

// isCached reports whether file is the one that the parsed state came from.
func (s *Store) isCached(file fsguard.File) (bool, error) {
	c := s.cached
	if c == nil {
		return false, nil
	}
	info, err := file.Info()
	if err != nil {
		return false, err
	}
	return c.is(file, info)
}

// is reports whether file, of which info was told, is the one that c came from.
func (c *cachedState) is(file fsguard.File, info fsguard.Info) (bool, error) {
	if info.Identity != c.info.Identity || info.Size != c.info.Size || info.CtimeNanos != c.info.CtimeNanos {
		return false, nil
	}
	return beginsWith(file, c.head)
}

// openState opens state.json, which must be there.
func openState(p *pins) (fsguard.File, error) {
	file, err := openFile(p.space.Open, stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &CorruptError{File: stateFile, Offset: -1, Reason: "missing"}
	}
	return file, err
}

func lstatState(p *pins) (fsguard.Info, error) {
	info, err := p.space.Lstat(stateFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return info, &CorruptError{File: stateFile, Offset: -1, Reason: "missing"}
	case err != nil:
		return info, err
	}
	return info, admitPlain(stateFile, info)
}

// readState reads an opened state.json to its end and checks it. Called under the lock.
func (s *Store) readState(p *pins, c *cachedState) error {
	format, err := readFormat(p)
	if err == nil {
		c.st, err = s.parse(c, format)
	}
	return err
}

func (s *Store) parse(c *cachedState, store token) (*state, error) {
	text, err := s.readText(c)
	if err != nil {
		return nil, err
	}
	return s.decode(c, text, stateFile, store)
}

// decode checks what was read of c's file, which has that name.
func (s *Store) decode(c *cachedState, text []byte, name string, store token) (*state, error) {
	c.size, c.length = int64(len(withoutPadding(text))), int64(len(text))
	if c.size > s.mostText() {
		return nil, s.tooLong()
	}
	s.parses.Add(1)
	st, err := decodeState(text, name, store)
	if err != nil {
		return nil, err
	}
	st.reader = s.runs
	c.head = bytes.Clone(stateHead(text))
	return st, nil
}

// An uncertainCommit is one that failed and may survive or not: its sync of names, its
// exchange or rename, or what should have taken it back, answered an error.
type uncertainCommit struct {
	owner               string // token of the record that was left in the lock
	store, commit, base token
	revision            uint64
	err                 error
}

func (u *uncertainCommit) Error() string { return "uncertain commit: " + u.err.Error() }
func (u *uncertainCommit) Unwrap() error { return u.err }

// commit makes the draft the committed state and durable. An error that is not an
// *uncertainCommit says that nothing happened.
func (s *Store) commit(t *tenure, d *draft, room roomFor) error {
	owner, err := newToken(s.rand)
	if err != nil {
		return err
	}
	if err := t.sign(newOwner(owner, d.now)); err != nil {
		return err
	}
	return s.publish(t, d, room, t.pins.space)
}

// publish writes what the draft names, then the draft, and syncs parent last. The
// lock's record stands when it is called.
func (s *Store) publish(t *tenure, d *draft, room roomFor, parent fsguard.Dir) error {
	p := t.pins
	fresh := func() (token, error) { return newToken(s.rand) }
	w := &writing{p: p, commit: d.st.commit, temp: stateTemp(d.st.commit)}
	defer w.closeObjects()
	d.ready = func(size int) *preparedObject { return w.take(s, int64(size)) }
	objects, err := d.pack(fresh)
	if err != nil {
		w.dropObjects()
		return err
	}
	if room == enqueuing { // settling costs no more syncs for the depth of a queue
		sealed, err := d.sealRuns(fresh, d.ripe)
		if err != nil {
			w.dropObjects()
			return err
		}
		for _, x := range sealed {
			s.runs.keep(x.run, x.body)
			objects = append(objects, object{name: x.run.name, file: runFile, data: x.text})
		}
	}
	if room == enqueuing || room == claiming && d.halfFull() && !s.opts.noSpill {
		evidence, err := s.sealFailed(d, fresh)
		if err != nil {
			w.dropObjects()
			return err
		}
		objects = append(objects, evidence...)
	}
	d.st.after = token{}
	if d.st.exchange {
		d.st.after = d.base.commit
	}
	s.text = encodeState(s.text[:0], d.st)
	most := s.mostText()
	if d.st.recoveries == d.base.recoveries {
		most -= recoveryRoom // a recovery adds to the state, and must always find room
	}
	size := int64(len(s.text))
	if size > most && size > s.cached.size { // what makes it smaller is never refused
		w.dropObjects()
		return fmt.Errorf("%s would be %d bytes, more than readers take: %w", stateFile, len(s.text), queue.ErrFull)
	}
	if err := d.st.representable(); err != nil {
		w.dropObjects()
		return err
	}
	if err := w.write(s, d, objects, room, s.exchanges(t, d)); err != nil {
		w.drop()
		return err
	}
	// Nothing orders these syncs against each other: none of what they make durable
	// is named by a committed state yet. If the power goes here, the old state is
	// found, and orphans at most.
	if err := w.sync(s); err != nil {
		w.drop()
		return err
	}
	if w.spare {
		return s.publishSpare(t, d, w, objects, parent)
	}
	if err := s.stillCurrent(w); err != nil {
		w.drop()
		return err
	}
	if err := w.replaceReserve(); err != nil {
		w.drop()
		return err
	}
	if !t.stale && !s.cached.beside {
		if err := d.passTurn(p); err != nil {
			w.drop()
			return err
		}
	}

	// The commit point. Before it a reader finds the old state, after it the new.
	if err := p.space.Rename(w.temp, stateFile); err != nil {
		if info, e := p.space.Lstat(stateFile); e == nil && info.Identity == s.cached.at.Identity {
			w.drop()
			return err // the old state stands: nothing happened
		}
		return s.leaveOpen(t, d, w, err)
	}
	// Until this sync returns, the power may still take that back. A failure
	// proves neither that it is durable nor that it is not, and is not repeated:
	// the kernel may have dropped what it could not write and answer nil next time.
	if err := parent.Sync(); err != nil {
		return s.leaveOpen(t, d, w, err)
	}
	w.syncs++
	s.counted.wrote(w, objects, len(s.text), d.st.revision)
	if room == enqueuing {
		s.crowded = false
	}
	s.adopt(d, w)
	return nil
}

// stillCurrent re-admits everything right before the commit point.
func (s *Store) stillCurrent(w *writing) error {
	if err := w.p.readmit(s.fs, s.dir); err != nil {
		return err
	}
	info, err := lstatState(w.p)
	if err := same(stateFile, info, err, s.cached.at.Identity); err != nil || !w.spare {
		return err
	}
	return w.admitSpare()
}

// leaveOpen records an uncertain commit: the owner record stays, marked, for every
// process to see; all objects are kept; what we hold parsed is no longer trusted.
func (s *Store) leaveOpen(t *tenure, d *draft, w *writing, cause error) error {
	w.file.close()
	if !t.written { // publishing over a dead owner's record: it stays that one's
		t.owner = t.found
	}
	s.counted.uncertain.Add(1)
	u := &uncertainCommit{
		owner: t.owner.Token, store: d.st.store, commit: d.st.commit, base: d.base.commit,
		revision: d.st.revision, err: syncError(cause),
	}
	if err := t.leaveUncertain(); err != nil {
		// The record of before still stands as it was: every process stops at it all the same.
		u.err = errors.Join(u.err, err)
	}
	s.open = u
	s.forgetRetired()
	t.pins.spent = true
	s.forget()
	s.wake.all() // it may be there for everybody to see: whoever looks resolves it
	return u
}

// adopt makes the committed draft the state in memory.
func (s *Store) adopt(d *draft, w *writing) {
	if w.spare {
		s.retire(s.cached)
		s.cached = nil
	}
	s.forget()
	s.pool.keep(w)
	d.seal()
	s.seen = outcome{d.st.commit, d.st.revision}
	s.commits.Add(1)
	s.wake.committed(d.st.commit)
	info, err := w.file.file.Info()
	if err != nil {
		w.file.close()
		return // the commit is durable; the next call reads the file
	}
	s.cached = &cachedState{
		st: d.st, file: w.file.file, writable: true,
		fileText: fileText{info: info, head: bytes.Clone(stateHead(s.text)), size: int64(len(s.text)), length: w.length},
		at:       info,
	}
}

// syncError types the answer of a filesystem that cannot sync.
func syncError(err error) error {
	var e *fsguard.Error
	if errors.As(err, &e) && e.Op == fsguard.OpSyncDir && isAny(err, syncUnsupported...) {
		return fmt.Errorf("%w: a directory cannot be synced here: %w", err, ErrFilesystem)
	}
	return err
}
