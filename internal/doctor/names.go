//go:build unix

package doctor

import (
	"errors"
	"fmt"
	"io/fs"

	"example.com/holdfast/internal/fsguard"
)

const scratchDirectory = "scratch_directory"

// nameTests try what is done to names.
var nameTests = []test{
	{Check: Check{
		Name: scratchDirectory, Needed: true,
		Tried: "make a directory",
		For:   "the store, and each object in it",
	}, run: (*exam).scratchMade},
	{Check: Check{
		Name: "private_modes", Needed: true,
		Tried: "look at the modes of what was just made",
		For:   "what is in a store is its owner's alone",
	}, inside: true, run: (*exam).privateModes},
	{Check: Check{
		Name: "exclusive_create", Needed: true,
		Tried: "make a file that is there already (O_EXCL)",
		For:   "no object is made twice",
	}, inside: true, run: (*exam).exclusiveCreate},
	{Check: Check{
		Name: "rename_over", Needed: true,
		Tried: "rename a file over another",
		For:   "the commit: a new state takes the old one's place",
	}, inside: true, run: (*exam).renameOver},
	{Check: Check{
		Name: "rename_no_replace", Needed: false,
		Tried: "rename that replaces nothing (renameat2, RENAME_NOREPLACE)",
		For:   "v1 claims by it, where that is chosen",
	}, inside: true, run: (*exam).renameNoReplace},
	{Check: Check{
		Name: "hard_link", Needed: false,
		Tried: "give a file a second name (linkat)",
		For:   "v1 claims by links; v2 makes none",
	}, inside: true, run: (*exam).hardLink},
	{Check: Check{
		Name: "name_case", Needed: false,
		Tried: "ask for a file's name in capitals",
		For:   "nothing: a store's names never differ by case alone",
	}, inside: true, run: (*exam).nameCase},
}

func (e *exam) scratchMade() finding {
	if e.refusal != nil {
		return refused(e.refusal)
	}
	return works("")
}

// make makes a file that holds its own name.
func (e *exam) make(name string) (fsguard.Identity, error) {
	f, err := e.scratch.Create(name)
	if err != nil {
		return fsguard.Identity{}, err
	}
	_, err = f.WriteAt([]byte(name), 0)
	info, infoErr := f.Info()
	return info.Identity, errors.Join(err, infoErr, f.Close())
}

func (e *exam) privateModes() finding {
	if _, err := e.make("private"); err != nil {
		return refused(err)
	}
	file, err := e.scratch.Lstat("private")
	if err != nil {
		return refused(err)
	}
	dir, err := e.scratch.Info()
	if err != nil {
		return refused(err)
	}
	for _, made := range []struct {
		what string
		info fsguard.Info
		want fs.FileMode
	}{{"a file", file, 0o600}, {"a directory", dir, 0o700}} {
		switch perm := made.info.Mode.Perm(); {
		case made.info.UID != e.UID:
			return broken(fmt.Sprintf("%s was made for user %d, and you are %d", made.what, made.info.UID, e.UID)).weighing(e.unsafe())
		case perm&0o022 != 0:
			return broken(fmt.Sprintf("%s has mode %04o: others may write it", made.what, perm)).weighing(e.unsafe())
		case perm != made.want:
			return broken(fmt.Sprintf("%s has mode %04o in place of %04o: others may read it", made.what, perm, made.want)).weighing(Warning)
		}
	}
	return works("")
}

// unsafe is what a place weighs where others can write.
func (e *exam) unsafe() Weight {
	if e.AllowUnsafeRoot {
		return Warning
	}
	return Unfit
}

func (e *exam) exclusiveCreate() finding {
	if _, err := e.make("once"); err != nil {
		return refused(err)
	}
	f, err := e.scratch.Create("once")
	switch {
	case err == nil:
		return broken("it was made a second time" + alsoFailed(f.Close()))
	case !errors.Is(err, fs.ErrExist):
		return refused(err)
	}
	return works("")
}

func (e *exam) renameOver() finding {
	newer, err := e.pair("newer", "older")
	if err != nil {
		return refused(err)
	}
	if err := e.scratch.Rename("newer", "older"); err != nil {
		return refused(err)
	}
	return e.moved("newer", "older", newer)
}

// pair makes two files and gives the identity of the first.
func (e *exam) pair(first, second string) (fsguard.Identity, error) {
	id, err := e.make(first)
	if err == nil && second != "" {
		_, err = e.make(second)
	}
	return id, err
}

// moved looks whether a file went from one name to another, whole.
func (e *exam) moved(from, to string, id fsguard.Identity) finding {
	if _, err := e.scratch.Lstat(from); !errors.Is(err, fs.ErrNotExist) {
		return broken("the old name is still there" + alsoFailed(err))
	}
	f, err := e.scratch.Open(to)
	if err != nil {
		return broken("the new name cannot be opened" + alsoFailed(err))
	}
	defer f.Close()
	info, err := f.Info()
	if err != nil {
		return refused(err)
	}
	text, err := fsguard.ReadAll(f, 64)
	switch {
	case err != nil:
		return refused(err)
	case info.Identity != id:
		return broken("the new name means another file than the one that was renamed")
	case string(text) != from:
		return broken("the new name holds something else than the file that was renamed")
	}
	return works("")
}

func (e *exam) renameNoReplace() finding {
	free, err := e.pair("free", "taken")
	if err != nil {
		return refused(err)
	}
	err = e.scratch.MoveNew("free", e.scratch, "taken")
	switch {
	case err == nil:
		return broken("it replaced a file that it must not")
	case !errors.Is(err, fs.ErrExist):
		return refused(err)
	}
	if err := e.scratch.MoveNew("free", e.scratch, "elsewhere"); err != nil {
		return refused(err)
	}
	return e.moved("free", "elsewhere", free)
}

// hardLink also recognises the imitation of links that proot makes for apps on Android:
// then the second name is a symlink, or the file still says that it has one link.
func (e *exam) hardLink() finding {
	id, err := e.make("first")
	if err != nil {
		return refused(err)
	}
	if err := e.scratch.Link("first", e.scratch, "second"); err != nil {
		return refused(err)
	}
	info, err := e.scratch.Lstat("second")
	switch {
	case err != nil:
		return refused(err)
	case info.Mode.Type() == fs.ModeSymlink:
		return broken("it made a symlink, as proot's link2symlink does")
	case info.Identity != id:
		return broken("the second name means another file")
	case info.Links != 2:
		return broken(fmt.Sprintf("the file has two names and says that its links are %d", info.Links))
	}
	return works("")
}

func (e *exam) nameCase() finding {
	if _, err := e.make("case"); err != nil {
		return refused(err)
	}
	_, err := e.scratch.Lstat("CASE")
	switch {
	case err == nil:
		return told("case and CASE are one name here; that harms no store")
	case errors.Is(err, fs.ErrNotExist):
		return told("case and CASE are two names")
	}
	return refused(err)
}

func alsoFailed(err error) string {
	if err == nil {
		return ""
	}
	return ": " + plain(err)
}
