//go:build unix

package fsguard

import (
	"errors"
	"os"
	"slices"
)

// errReplaced is returned when a directory was swapped for another between the
// two steps of opening it.
var errReplaced = errors.New("was replaced while it was being opened")

// An osDir pins one directory by two descriptors: an os.Root for what is done to
// names through package os, and a descriptor on the directory itself for fsync,
// flock and the *at calls.
type osDir struct {
	pinned
	root *os.Root
}

// pin makes a Dir of root, or closes it.
func pin(root *os.Root, name string) (Dir, error) {
	file, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	return &osDir{pinned{descriptor: &descriptor{file: file, name: name}}, root}, nil
}

// ReadDir lists through a description of its own, because the position in a
// directory belongs to the description and calls may be concurrent.
func (d *osDir) ReadDir() ([]string, error) {
	list, err := d.root.Open(".")
	if err != nil {
		return nil, wrap(OpReadDir, d.name, err)
	}
	defer list.Close()
	names, err := list.Readdirnames(-1)
	if err != nil {
		return nil, wrap(OpReadDir, d.name, err)
	}
	slices.Sort(names)
	return names, nil
}

// OpenDir opens name with O_NOFOLLOW and O_DIRECTORY. An os.Root cannot be made
// of that descriptor, so the name is resolved once more for it, and the two must
// turn out to be the same directory.
func (d *osDir) OpenDir(name string) (Dir, error) {
	if name == "." {
		root, err := d.root.OpenRoot(".")
		if err != nil {
			return nil, wrap(OpOpenDir, name, err)
		}
		dir, err := pin(root, name)
		return dir, wrap(OpOpenDir, name, err)
	}
	var sub *osDir
	err := d.at(name, func(fd int, _ string) (err error) {
		sub, err = d.openDir(fd, name)
		return err
	})
	if err != nil {
		return nil, wrap(OpOpenDir, name, err)
	}
	return sub, nil
}

func (d *osDir) openDir(dirfd int, name string) (*osDir, error) {
	fd, err := openDirectory(dirfd, name)
	if err != nil {
		return nil, err
	}
	sub := &osDir{pinned: pinned{descriptor: newDescriptor(fd, name)}}
	// "/." makes the kernel refuse what is no directory without opening it.
	if sub.root, err = d.root.OpenRoot(name + "/."); err != nil {
		sub.file.Close()
		return nil, err
	}
	if err := sub.sameAsRoot(); err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// sameAsRoot checks that both descriptors are on one directory.
func (d *osDir) sameAsRoot() error {
	here, err := d.file.Stat()
	if err != nil {
		return err
	}
	there, err := d.root.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(here, there) {
		return errReplaced
	}
	return nil
}

// Close closes both descriptors. A second Close is fs.ErrClosed and does nothing.
func (d *osDir) Close() error {
	err := d.descriptor.Close()
	d.root.Close() // never fails
	return err
}
