//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// noLinks is a disk that refuses them.
func noLinks(fsys fsguard.FS) *crashtest.Wrapper {
	return crashtest.Wrap(fsys, crashtest.FailMatching(func(op fsguard.Op, _ string) bool { return op == fsguard.OpLink }, syscall.EACCES, 0))
}

// A crashCheck is the process after a crash.
type crashCheck struct {
	place  crashPlace
	from   crashState
	route  Route
	since  time.Time
	others map[string]crashState // that nothing may have touched
	brief  bool                  // it only recovers
}

// check recovers, compares with what the journal admits, and works on. By the second
// route it does so where every link is refused, and never asks for one.
func (c crashCheck) check(fsys fsguard.FS, j *crashtest.Journal) (err error) {
	if e, ok := j.Last(againKey); ok {
		return fmt.Errorf("the same call again: %w", e.Value.(error))
	}
	may := oracleOf(c.from, j)
	if c.route == RenameNoReplace {
		w := noLinks(fsys)
		defer func() {
			if n := w.Count(fsguard.OpLink); n > 0 {
				err = errors.Join(err, fmt.Errorf("%d links by the route that makes none:\n%s", n, w.Trace()))
			}
		}()
		fsys = w
	}
	r := startRun(c.place, fsys, c.route, j, c.since)
	if r.s == nil {
		return errors.New("the store does not open")
	}
	defer r.close()
	if err := present(r.s, may.states()); err != nil {
		return err
	}
	for id := range c.others {
		if err := operator(r.s, id); err != nil {
			return err
		}
	}
	if err := operator(r.s, crashID); err != nil {
		return err
	}
	if err := r.s.transfer(context.Background(), crashID, recoverOnly); err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	got, err := lookAt(r.s, crashID)
	if err != nil {
		return err
	}
	if !slices.Contains(may.states(), got) {
		return fmt.Errorf("found\n  %v\nwant one of\n%v", got, may)
	}
	j.Ack(foundKey, got)
	if c.brief {
		return nil
	}
	return c.workOn(r, got)
}

// recoverOnly is what begins every transition, and then nothing.
func recoverOnly(t *transfer) error {
	if err := t.settled(); err != nil {
		return err
	}
	if _, _, err := t.standing(); err != nil {
		return err
	}
	return t.sync()
}

// workOn claims what is left, settles it and enqueues anew.
func (c crashCheck) workOn(r *crashRun, got crashState) error {
	claim := r.batch()
	if want, has := moveLoad(got); has != (claim != nil) || has && want.claimed != string(claim.Payload) {
		return fmt.Errorf("with %v loaded %v", got, claim)
	}
	if claim != nil {
		defer claim.Close()
		end, move := r.s.Fail, moveFail
		if got.failed != "" {
			end, move = r.s.Ack, moveEnd
		}
		if !r.do(move(string(claim.Payload)), func() (func(crashState) bool, error) { return nil, end(context.Background(), claim) }) {
			return errors.New("the claim cannot be settled")
		}
	}
	if !r.enqueue(`"the next one"`) {
		return errors.New("nothing can be enqueued")
	}
	may := oracleOf(c.from, r.j)
	now, err := lookAt(r.s, crashID)
	if err != nil || !slices.Contains(may.states(), now) {
		return fmt.Errorf("worked on: found\n  %v, %w\nwant\n%v", now, err, may)
	}
	for id, want := range c.others {
		if got, err := lookAt(r.s, id); err != nil || got != want {
			return fmt.Errorf("%s: %v, %w; want %v", id, got, err, want)
		}
	}
	return noLitter(r.s)
}

// operator removes the transfer lock of id, which must be reported as stale first.
func operator(s *Store, id string) error {
	lock := namesOf(id).lock
	_, there, err := lstat(s.queue.dir, lock)
	if err != nil || !there {
		return err
	}
	touched := false
	err = s.transfer(context.Background(), id, func(*transfer) error { touched = true; return nil })
	var held *LockError
	if !errors.As(err, &held) || !errors.Is(err, ErrLockStale) || held.Lock.File != lock || touched {
		return fmt.Errorf("under a dead process's lock: %v, want %v", err, ErrLockStale)
	}
	return s.queue.dir.Remove(lock)
}

// noLitter says what is left in the queue besides entries.
func noLitter(s *Store) error {
	names, err := s.queue.dir.ReadDir()
	if err != nil {
		return err
	}
	for _, name := range names {
		if isTemp(name) || isLock(name) || strings.HasSuffix(name, deliveredSuffix) {
			return fmt.Errorf("%s was left", name)
		}
	}
	root, err := openIn(s.queue.dir, retirementsDir)
	if root == nil || err != nil {
		return err
	}
	defer root.Close()
	if names, err = root.ReadDir(); err == nil && len(names) > 0 {
		err = fmt.Errorf("retirement records were left: %v", names)
	}
	return err
}

// lookAt tells where the generations of id are. Each must be whole, and have one name.
func lookAt(s *Store, id string) (crashState, error) {
	var st crashState
	n := namesOf(id)
	for _, at := range []struct {
		dir  fsguard.Dir
		name string
		to   *string
	}{{s.queue.dir, n.pending, &st.pending}, {s.queue.dir, n.processing, &st.claimed}, {s.fail.dir, n.failed(), &st.failed}} {
		file, text, err := readEntry(at.dir, at.name, DefaultMaxEntryBytes)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return st, fmt.Errorf("look: %w", err)
		}
		*at.to = string(text)
		if err := file.Close(); err != nil {
			return st, err
		}
	}
	return st, nil
}

// present says that none of the states can be there, because the bytes of a generation
// in it stand at no name at all, as told by their number. It changes nothing.
func present(s *Store, may []crashState) error {
	n := namesOf(crashID)
	sizes := map[int64]bool{0: true}
	see := func(dir fsguard.Dir, name string) error {
		info, there, err := lstat(dir, name)
		if there {
			sizes[info.Size] = true
		}
		return err
	}
	err := errors.Join(see(s.queue.dir, n.pending), see(s.queue.dir, n.processing), see(s.fail.dir, n.failed()))
	if root, _ := openIn(s.queue.dir, retirementsDir); root != nil {
		defer root.Close()
		if record, _ := openIn(root, n.pending); record != nil {
			defer record.Close()
			err = errors.Join(err, see(record, retiredEntry))
		}
	}
	if err != nil {
		return err
	}
	for _, st := range may {
		if sizes[int64(len(st.pending))] && sizes[int64(len(st.claimed))] && sizes[int64(len(st.failed))] {
			return nil
		}
	}
	return fmt.Errorf("lost: there are entries of %v bytes, want one of %v", sizes, may)
}
