//go:build unix

package fsguard

import (
	"cmp"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// ErrForeign is returned by Move, MoveNew and Link when the directory to is of
// another implementation than the one that is asked: take both from one FS.
var ErrForeign = errors.New("the two directories are not of one kind of FS")

// Rename is renameat: a reader finds the old file or the new one, never neither
// (rename(2)). It is not tried again after EINTR, because it may have happened.
// os.Root.Rename would ask about both names first and refuse some.
func (d *pinned) Rename(oldName, newName string) error {
	return d.two(OpRename, oldName, d, newName, unix.Renameat)
}

// Move is Rename between two pinned directories, which may be the same.
func (d *pinned) Move(oldName string, to Dir, newName string) error {
	return d.two(OpMove, oldName, d.peer(to), newName, unix.Renameat)
}

// MoveNew makes the one call that each system has for it: see renameNew. It is not
// tried again after EINTR either.
func (d *pinned) MoveNew(oldName string, to Dir, newName string) error {
	return d.two(OpMoveNew, oldName, d.peer(to), newName, renameNew)
}

// Exchange makes the one call that each system has for it: see exchange. It is not
// tried again after EINTR: a second try would undo what the first did.
func (d *pinned) Exchange(a, b string) error {
	return d.two(OpExchange, a, d, b, func(fromfd int, a string, tofd int, b string) error {
		return ExchangeError(exchange(fromfd, a, tofd, b))
	})
}

// ExchangeError is what Exchange answers where the kernel says err. EINVAL is the
// filesystem that does not know the flag, for it has no other meaning with two plain names
// of one directory. The other errnos that say so are errors.ErrUnsupported by themselves.
func ExchangeError(err error) error {
	if errors.Is(err, unix.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("%w: this filesystem cannot exchange two names: %w", errors.ErrUnsupported, err)
	}
	return err
}

// Link is linkat with flags 0: without AT_SYMLINK_FOLLOW a symlink gets the second
// name itself, or the call fails (linkat(2)). It is not tried again after EINTR: a
// second try would find the name that the first had made.
func (d *pinned) Link(oldName string, to Dir, newName string) error {
	return d.two(OpLink, oldName, d.peer(to), newName, linkat)
}

func linkat(fromfd int, oldName string, tofd int, newName string) error {
	return unix.Linkat(fromfd, oldName, tofd, newName, 0)
}

// peer is the directory to, or nil if it is not of this kind: the simulated disk's, a
// wrapper's, or one of OS for one of Paths.
func (d *pinned) peer(to Dir) *pinned {
	ours, isOurs := to.(interface{ base() *pinned })
	if !isOurs || (ours.base().path == "") != (d.path == "") {
		return nil
	}
	return ours.base()
}

// two checks both names and makes one call on both.
func (d *pinned) two(op Op, oldName string, to *pinned, newName string, call func(int, string, int, string) error) error {
	err := cmp.Or(CheckName(oldName), CheckName(newName))
	if err == nil && to == nil {
		err = ErrForeign
	}
	if err == nil {
		err = d.at(oldName, func(fromfd int, from string) error {
			return to.at(newName, func(tofd int, new string) error { return call(fromfd, from, tofd, new) })
		})
	}
	between := " to "
	if op == OpExchange {
		between = " with "
	}
	return wrap(op, oldName+between+newName, err)
}
