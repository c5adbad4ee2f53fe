//go:build unix

package holdfast

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/fsguard"
)

// In a store with the feature "exchange" two files take turns as state.json: the other
// one is the spare. A commit overwrites the spare and exchanges the two names, which a
// reader sees as atomically as a rename over state.json. No file is made and none is
// freed, and an ordinary commit changes no length, so that its two syncs have less to
// write than those of a replacement:
//
//	write    the spare's first bytes, the new commit token among them, then the rest
//	sync     the spare's data, beside the objects
//	admit    state.json and the spare are still the files that they were
//	exchange the commit point
//	sync     the namespace
//
// It rests on one rule. A file is written into only when no crash can bring it back as
// state.json: when the sync of the exchange that retired it has succeeded. Under the
// lock that is so wherever the lock's record was blank, for the record of a commit is
// blanked after that sync and after nothing less; so a tenure that found a record never
// touches the spare: it publishes through a fresh file, by rename, until a sync of its own
// has succeeded and the record is blank again.
//
// Plain replacement stays behind it: for recovery, where the spare is not what it should
// be, and where the system refuses the exchange although it was possible at creation.

// exchanges reports whether the commit of d is made by exchange.
func (s *Store) exchanges(t *tenure, d *draft) bool {
	return d.st.exchange && !s.noExchange && !t.stale
}

// put is the commit point. Before it a reader finds the old state, after it the new.
func (w *writing) put(s *Store) error {
	if !w.spare {
		return w.p.space.Rename(w.temp, stateFile)
	}
	err := w.p.space.Exchange(spareFile, stateFile)
	if err == nil || !exchangeRefused(err) || s.stillCurrent(w) != nil {
		return err
	}
	// Both names mean what they did: nothing happened. The store was moved to another
	// filesystem, or this process may make fewer calls than the one that created it.
	s.noExchange = true
	w.file.close()
	w.spare, w.lasting, w.temp = false, false, stateTemp(w.commit)
	if err := w.fill(s.text, true); err != nil {
		return err
	}
	if err := w.file.file.Sync(); err != nil {
		return err
	}
	if err := s.stillCurrent(w); err != nil {
		return err
	}
	return w.p.space.Rename(w.temp, stateFile)
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
	if s.opts.plain {
		return false, nil
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
