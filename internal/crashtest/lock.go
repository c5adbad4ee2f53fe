//go:build unix

package crashtest

import (
	"fmt"
	"io/fs"
	"syscall"

	"example.com/holdfast/internal/fsguard"
)

// errClosed is what a closed description answers: what package os says and what
// the kernel says.
var errClosed = fmt.Errorf("%w (%w)", fs.ErrClosed, syscall.EBADF)

// A desc is one open file description: what a simDir and a simFile have in common.
type desc struct {
	p      *Process
	n      *inode
	name   string
	write  bool
	closed bool
}

// describe makes a description of n. Callers hold the disk's lock.
func (p *Process) describe(n *inode, name string, write bool) *desc {
	s := &desc{p: p, n: n, name: name, write: write}
	n.opens++
	p.open[s] = true
	return s
}

// shut closes s and gives up its lock. Callers hold the disk's lock.
func (s *desc) shut() {
	s.closed = true
	delete(s.p.open, s)
	s.unlock()
	s.n.opens--
	s.p.d.release(s.n)
}

func (s *desc) unlock() {
	delete(s.n.locks, s)
	s.p.d.wake.Broadcast()
}

// do is Process.do for an open description.
func (s *desc) do(op fsguard.Op, name string, body func() error) error {
	return s.p.do(op, name, func() error {
		if s.closed {
			return errClosed
		}
		return body()
	})
}

func (s *desc) Name() string { return s.name }

func (s *desc) Info() (info fsguard.Info, err error) {
	err = s.do(fsguard.OpInfo, s.name, func() error {
		info = s.n.info(s.p.d.conf.sizeLies)
		return nil
	})
	return info, err
}

func (s *desc) Close() error {
	return s.do(fsguard.OpClose, s.name, func() error {
		s.shut()
		return nil
	})
}

// Lock waits until no other description, of any process, is in the way, or until
// the process is killed or this description closed.
func (s *desc) Lock(mode fsguard.LockMode) error {
	return s.do(fsguard.OpLock, s.name, func() error {
		for {
			if ok, err := s.try(mode); ok || err != nil {
				return err
			}
			s.p.d.waiting++
			s.p.d.wake.Wait()
			s.p.d.waiting--
			if s.p.dead {
				return ErrKilled
			}
			if s.closed {
				return errClosed
			}
		}
	})
}

// Waiting counts the calls of Lock that wait now, so that a test need not sleep to
// be sure that one does.
func (d *Disk) Waiting() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.waiting
}

func (s *desc) TryLock(mode fsguard.LockMode) (ok bool, err error) {
	err = s.do(fsguard.OpLock, s.name, func() (err error) {
		ok, err = s.try(mode)
		return err
	})
	return ok, err
}

func (s *desc) Unlock() error {
	return s.do(fsguard.OpUnlock, s.name, func() error {
		s.unlock()
		return nil
	})
}

// try takes the lock if nobody is in the way. A lock held in another mode is given
// up first, as Linux does.
func (s *desc) try(mode fsguard.LockMode) (bool, error) {
	if err := s.p.d.conf.lockErr; err != nil {
		return false, err
	}
	if held, ok := s.n.locks[s]; ok {
		if held == mode {
			return true, nil
		}
		s.unlock()
	}
	for _, other := range s.n.locks {
		if mode == fsguard.Exclusive || other == fsguard.Exclusive {
			return false, nil
		}
	}
	s.n.locks[s] = mode
	return true, nil
}

// failSync is a sync of s that fails in the kernel, for the wrapper: what it would
// have made durable is doomed.
func (s *desc) failSync() {
	s.p.d.mu.Lock()
	defer s.p.d.mu.Unlock()
	if !s.p.dead && !s.closed && !s.p.d.conf.forgiving {
		s.n.failSync()
	}
}
