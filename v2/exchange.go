//go:build unix

package holdfast

import (
	"errors"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/fsguard"
)

// In a store with the feature "spares" four files take turns with state.json. The commit of
// revision n overwrites one of them, the spare n mod 4, makes its data durable, and exchanges
// the two names, which a reader sees as atomically as a rename over state.json. No file
// is made, none is freed, no length changes, and the exchange itself need not be durable:
//
//	write    objects and whatever else the text names; sync
//	write    the spare's first bytes, the new commit token among them, then the rest
//	sync     the spare's data: from here on the commit is durable
//	admit    state.json and the spare are still the files that they were
//	exchange from here on everybody finds it
//
// A power loss may take the exchange back, and those of the commits before. Then state.json
// is an older state, and what was committed after it is found by the chain: a state says
// in its field "after" which commit it was made after, and its text has a checksum. The
// successor of a state of revision n is what the spare n+1 mod 4 holds, if that is whole and
// was made after this one; and so on. See successor.go.
//
// Two rules make that safe.
//
// A file is written into only when no crash can bring it back as state.json: when the
// namespace was synced after the exchange that retired it. So the namespace is synced beside
// the data of every third commit, n mod 3 = 0: of three commits in a row one has done that,
// and a file waits for three before its turn comes. That makes durable, too, which file
// the name of a spare means.
//
// Where a sync of the namespace failed, nothing is known of the names that it should have made
// durable, and no later sync tells. That leaves a record in the lock; a recovery renames a
// fresh file over state.json, and the commits after it, until each spare had its turn, sync
// the namespace after their exchange; one of these that replaces state.json instead removes
// its spare. The first commit of a store syncs too, and one that made its spare, or changed
// another name.
//
// Under the lock all this is so wherever the lock's record was blank. A tenure that found a
// record touches no spare before it has recovered: that publishes through a fresh file, by
// rename.
//
// A failure before the exchange is taken back: the spare is removed, and the namespace
// synced, so that no crash finds a successor there that the caller was told did not come.
//
// Plain replacement stays behind it: for recovery, where a spare is not what it should
// be, after a power loss until state.json is the newest state again, and where the system
// refuses the exchange although it was possible at creation.

// exchanges reports whether the commit of d is made by exchange.
func (s *Store) exchanges(t *tenure, d *draft) bool {
	return d.st.exchange && t.pins.chains && !s.noExchange && !s.crowded && !t.stale && !s.cached.beside
}

// chainsOn reports whether a namespace is on a filesystem of which is known what the rest
// stands on: that the data of a file can be made durable while the names of others are not,
// and that then each name means what it did or what it was given. These are the
// kinds that TestPowerCut cuts, and what keeps nothing anyway. (f2fs, for one, writes its own idea of a
// file's name with the data of the file; nobody has looked at what becomes of it.)
func chainsOn(space fsguard.Dir) (bool, error) {
	is, err := space.Space()
	return slices.Contains([]string{"ext4", "xfs", "btrfs", "tmpfs"}, is.Type), err
}

// syncsNames reports whether the commit of a revision syncs the namespace beside its spare.
func syncsNames(revision uint64) bool { return revision%(spares-1) == 0 }

// doubted reports whether d is the first commit of a store, whose maker may have died before
// state.json was durable; or one of those after a recovery for which it is not known which
// files the names of the spares mean on the disk.
func (d *draft) doubted() bool { return d.base.after == (token{}) || d.recovered() }

// recovered reports whether d is one of the commits after a recovery, until each spare had its
// turn.
func (d *draft) recovered() bool {
	n := len(d.st.resolved)
	return n > 0 && d.st.revision <= d.st.resolved[n-1].revision+1+spares
}

// passTurn lets the spare of d go where it has its turn after a recovery, and d is published
// through another file: what its name means on the disk would be unknown still when its turn
// comes again. Whoever makes it anew syncs the namespace.
func (d *draft) passTurn(p *pins) error {
	if !d.st.exchange || !d.recovered() {
		return nil
	}
	name := spareName(d.st.revision)
	info, err := p.space.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.Plain():
		return nil // no commit exchanges it
	case err != nil:
		return err
	}
	return p.space.Remove(name)
}

// publishSpare is the end of a commit by exchange: what its text names is durable.
func (s *Store) publishSpare(t *tenure, d *draft, w *writing, objects []object, parent fsguard.Dir) error {
	p := t.pins
	if len(w.targets) > 0 { // that took its time
		if err := s.stillCurrent(w); err != nil {
			w.drop() // nothing was written into it
			return err
		}
	}
	if begun, err := w.fillSpare(s); err != nil {
		if !begun && !w.fresh {
			w.drop() // what is there of the text is not all of it
			return err
		}
		return s.takeBack(t, d, w, parent, err)
	}
	targets := []fsguard.Syncer{fsguard.DataOf(w.file.file)}
	if syncsNames(d.st.revision) {
		targets = append(targets, p.space)
	}
	// When this returns nil the commit is durable: whatever becomes of the names, this
	// state is found behind the one before it. If the power goes earlier it may be found too.
	if err := s.fs.SyncAll(targets...); err != nil {
		p.spent = true
		if failedNames(err) {
			return s.leaveOpen(t, d, w, err) // those of commits before this one are in doubt too
		}
		return s.takeBack(t, d, w, parent, syncError(err))
	}
	w.syncs += len(targets)
	if err := s.stillCurrent(w); err != nil {
		return s.takeBack(t, d, w, parent, err)
	}
	if err := w.replaceReserve(); err != nil {
		return s.takeBack(t, d, w, parent, err)
	}
	if err := p.space.Exchange(w.temp, stateFile); err != nil {
		if s.stillCurrent(w) != nil {
			return s.leaveOpen(t, d, w, err)
		}
		if !exchangeRefused(err) {
			return s.takeBack(t, d, w, parent, err)
		}
		// Both names mean what they did. The store was moved to another filesystem, or this
		// process may make fewer calls than the one that created it. The commit stands, in
		// its spare; a fresh file brings it to its name.
		s.noExchange = true
		if err := w.refill(s, d); err != nil {
			return s.leaveOpen(t, d, w, err)
		}
	}
	if w.names {
		if err := parent.Sync(); err != nil {
			return s.leaveOpen(t, d, w, err)
		}
		w.syncs++
	}
	s.counted.wrote(w, objects, len(s.text), d.st.revision)
	s.adopt(d, w)
	return nil
}

// failedNames reports whether one of the syncs that failed was that of a directory.
func failedNames(err error) bool {
	if e, ok := err.(*fsguard.Error); ok {
		return e.Op == fsguard.OpSyncDir
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), failedNames)
	case interface{ Unwrap() error }:
		return failedNames(e.Unwrap())
	}
	return false
}

// refill puts the text into a fresh file and renames it over state.json.
func (w *writing) refill(s *Store, d *draft) error {
	w.file.close()
	w.spare, w.temp, w.names = false, stateTemp(w.commit), true
	if err := w.fill(s.text, true); err != nil {
		return err
	}
	if err := w.file.file.Sync(); err != nil {
		return err
	}
	w.syncs++
	if err := s.stillCurrent(w); err != nil {
		return err
	}
	if err := w.p.space.Rename(w.temp, stateFile); err != nil {
		return err
	}
	return d.passTurn(w.p)
}

// takeBack ends a commit that failed before its exchange. What is in the spare, whole or not,
// may be on the disk; it goes, durably, so that no crash finds a successor that the caller
// was told did not come. Where that fails too, the commit is uncertain.
func (s *Store) takeBack(t *tenure, d *draft, w *writing, parent fsguard.Dir, cause error) error {
	err := w.admitSpare()
	if err == nil {
		err = w.p.space.Remove(w.temp)
	}
	if err == nil {
		err = parent.Sync()
	}
	if err != nil {
		return s.leaveOpen(t, d, w, errors.Join(cause, err))
	}
	w.drop()
	return cause
}

// exchangeRefused reports whether err says that names cannot be exchanged here at all. A
// sandbox may answer EPERM or EACCES to a call that it does not know.
func exchangeRefused(err error) bool {
	return isAny(err, errors.ErrUnsupported, unix.ENOSYS, unix.EINVAL, unix.EOPNOTSUPP, unix.EXDEV, unix.EPERM, unix.EACCES)
}

// proveExchange reports whether names can be exchanged in a namespace in the making, by
// doing it to two files of its own and looking: a filesystem may answer nil and have
// moved one of them.
func (s *Store) proveExchange(space fsguard.Dir) (works bool, err error) {
	if chains, err := chainsOn(space); s.opts.plain || !chains || err != nil {
		return false, err
	}
	var names [2]string
	var made [2]fsguard.Identity
	for i := range names {
		tok, err := newToken(s.rand)
		if err != nil {
			return false, err
		}
		names[i] = stateTemp(tok)
		err = makeFile(space, names[i], func(f fsguard.File) error {
			info, err := f.Info()
			made[i] = info.Identity
			return err
		})
		if err != nil {
			return false, err
		}
	}
	err = space.Exchange(names[0], names[1])
	works = err == nil
	if err != nil && !exchangeRefused(err) {
		return false, err
	}
	for i, name := range names {
		switch info, err := space.Lstat(name); {
		case errors.Is(err, fs.ErrNotExist):
			works = false
			continue
		case err != nil:
			return false, err
		case info.Identity != made[1-i]:
			works = false
		}
		if err := space.Remove(name); err != nil {
			return false, err
		}
	}
	return works, nil
}
