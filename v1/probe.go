//go:build unix

package holdfast

import (
	"errors"
	"sync"

	"example.com/holdfast/internal/fsguard"
)

// A probe tries once, on a file of its own, whether a hard link is a hard link here.
// Where links are imitated the call answers success and has put a symlink in the place of
// both names: an entry must not be what that is learnt on.
type probe struct {
	mu     sync.Mutex
	proven bool
}

// check answers nil when a link was once proven to be one.
func (p *probe) check(prefix string, dir fsguard.Dir) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proven {
		return nil
	}
	if err := tryLink(prefix, dir); err != nil {
		return err
	}
	p.proven = true
	return nil
}

func tryLink(prefix string, dir fsguard.Dir) error {
	first, second := tempName(prefix), tempName(prefix)
	file, err := dir.Create(first)
	if err != nil {
		return err
	}
	// What a crash leaves here is a temporary file like any other.
	defer file.Close()
	if err := dir.Link(first, dir, second); err != nil {
		return errors.Join(refusal(err, HardLink, first, second), dir.Remove(first))
	}
	return errors.Join(imitation(dir, first, second), dir.Remove(first), dir.Remove(second))
}

// tryCreate says why no file can be made in dir, or nil.
func tryCreate(prefix string, dir fsguard.Dir) error {
	file, err := dir.Create(tempName(prefix))
	if err != nil {
		return err
	}
	return errors.Join(dir.Remove(file.Name()), file.Close())
}

// imitation says that what a link made at name is none. Its symlink is left if the
// name that it was made of is not a file any more: the two belong together then.
func imitation(dir fsguard.Dir, old, name string) error {
	info, there, err := lstat(dir, name)
	if err != nil || !there || info.Mode.IsRegular() {
		return err
	}
	return &LinkError{Route: HardLink, From: old, To: name, Imitated: true}
}
