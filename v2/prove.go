//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"io/fs"
	"sort"

	"example.com/holdfast/internal/fsguard"
)

const (
	maxSweep = 64 // files that one sweep asks about
	maxProof = 64 // locks of dead holders that a prover keeps
)

// A prover asks the kernel which holders are dead. It is used and closed under one
// exclusive transfer lock, which keeps new holders from coming between.
//
// Proof is the lock of the holder's file, obtained. Nothing else is: not a file that
// is missing, which somebody may have removed by hand, nor one that is no plain file,
// nor a lock that cannot be asked for now. A process that is stopped keeps its lock,
// and one whose child inherited the descriptor leaves it to the child.
type prover struct {
	s     *Store
	p     *pins
	dir   fsguard.Dir            // holders/, opened when first needed
	known map[token]bool         // dead or not, as it was found
	found []token                // the dead, in the order in which they were found
	locks map[token]fsguard.File // of the dead
}

func newProver(s *Store, p *pins) *prover {
	return &prover{s: s, p: p}
}

// dead reports whether the process of a holder is proven to be gone. An error says
// that it could not be asked now, and proves nothing.
func (v *prover) dead(h token) (bool, error) {
	if h.zero() || v.own(h) {
		return false, nil
	}
	if dead, asked := v.known[h]; asked {
		return dead, nil
	}
	dead, err := v.ask(h)
	if err != nil {
		return false, fmt.Errorf("asking whether holder %s is dead: %w", h, err)
	}
	if v.known == nil {
		v.known = map[token]bool{}
	}
	if v.known[h] = dead; dead {
		v.found = append(v.found, h)
	}
	return dead, nil
}

// own reports whether h is this process, on whatever handle.
func (v *prover) own(h token) bool {
	mine := v.s.opts.holders.get(v.s.holderKey(v.p))
	return mine != nil && mine.name == h
}

func (v *prover) ask(h token) (dead bool, err error) {
	dir, err := v.holders()
	if err != nil {
		return false, unlessSilent(err)
	}
	file, err := dir.Open(h.String())
	if err != nil {
		return false, unlessSilent(err)
	}
	free, err := file.TryLock(fsguard.Exclusive)
	if err != nil || !free {
		_ = file.Close() // it is nobody's lock
		return false, lockError(err)
	}
	if v.locks == nil {
		v.locks = map[token]fsguard.File{}
	}
	v.locks[h] = file
	if len(v.locks) > maxProof {
		v.let(h) // the proof stays good: nobody opens this file to live in it
	}
	return true, nil
}

// unlessSilent gives nil for an error that says what stands there, or that nothing
// does: that is no evidence of a death, and asking again would not change it.
func unlessSilent(err error) error {
	for _, silent := range []error{fs.ErrNotExist, fsguard.ErrSymlink, fsguard.ErrNotPlain, fsguard.ErrLinked} {
		if errors.Is(err, silent) {
			return nil
		}
	}
	return err
}

func (v *prover) holders() (fsguard.Dir, error) {
	if v.dir == nil {
		d, err := v.p.space.OpenDir(holdersDir)
		if err != nil {
			return nil, err
		}
		v.dir = d
	}
	return v.dir, nil
}

// sweep removes files of dead holders that live does not name. It is for after a
// commit that is durable, whose leases live tells: until then the state of before may
// come back, and its leases would wait for their deadlines. A file that a loss of
// power brings back is found again. What cannot be asked about or removed stays: it
// harms nothing.
//
// Beside those that were proven dead already, a sweep lists holders/ and asks about
// maxSweep files at most. The next sweep of this handle begins behind the last of
// them, so that many living ones hide no dead ones.
func (v *prover) sweep(live func(token) bool) {
	dir, err := v.holders()
	if err != nil {
		return
	}
	for _, h := range v.found {
		if !live(h) {
			v.remove(h)
		}
	}
	names, err := dir.ReadDir()
	if err != nil {
		return
	}
	asked, begin := 0, sort.Search(len(names), func(i int) bool { return names[i] > v.s.swept })
	for i := range names {
		name := names[(begin+i)%len(names)]
		h, ok := parseToken(name)
		if !ok || v.own(h) || live(h) {
			continue // an unknown name is left alone
		}
		if asked == maxSweep {
			return
		}
		asked++
		v.s.swept = name
		if dead, err := v.dead(h); err == nil && dead {
			v.remove(h)
		}
	}
	if len(names) > 0 {
		v.s.swept = names[len(names)-1] // once around: the next begins at the beginning
	}
}

// remove removes the file of a dead holder.
func (v *prover) remove(h token) {
	_ = v.dir.Remove(h.String()) // what stays harms nothing, and is found again
	v.let(h)
}

// let gives up the lock of a dead holder. Unlocking says so at once: a child that this
// process is just starting has the descriptor too, until its exec.
func (v *prover) let(h token) {
	if file := v.locks[h]; file != nil {
		_ = file.Unlock() // closing does it too, but for a child between fork and exec
		_ = file.Close()  // nothing was written
		delete(v.locks, h)
	}
}

// close gives up what was opened. It may be called twice.
func (v *prover) close() {
	for h := range v.locks {
		v.let(h)
	}
	if v.dir != nil {
		_ = v.dir.Close() // only read
		v.dir = nil
	}
}

// verifyHolders looks at every name in holders/ and takes no lock: a file that is
// locked and one that nobody holds any more are both as they must be.
func verifyHolders(p *pins, report *Report) error {
	dir, err := p.space.OpenDir(holdersDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		report.fault("file", holdersDir, "is missing: no claim can name its process")
		return nil
	case errors.Is(err, fsguard.ErrSymlink), errors.Is(err, fsguard.ErrNotPlain):
		return nil // told with the namespace
	case err != nil:
		return err
	}
	defer dir.Close()
	names, err := dir.ReadDir()
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a look without the lock can see one go
		}
		if err != nil {
			return err
		}
		if _, ok := parseToken(name); !ok {
			report.fault("file", holdersDir+"/"+name, "is not the store's")
		} else if !info.Plain() {
			report.fault("file", holdersDir+"/"+name, "is not a plain file with one link")
		}
	}
	return nil
}
