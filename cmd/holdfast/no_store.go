//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
)

// aboutNoStore says of a directory without a store what it is instead, where that can be
// seen, and the command that goes on from there: a store is made only where nothing is.
func aboutNoStore(dir string) (text, run string) {
	listed, err := os.ReadDir(dir)
	has := func(name string) bool {
		return slices.ContainsFunc(listed, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	const mount = "; if a disk belongs there, mount it first"
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(listed) == 0:
		return mount, "holdfast init --dir {dir}"
	case err != nil:
		return mount, "ls -ld {dir}"
	case has("manifest.json") && has("state.json"):
		return "; this is a backup: restore it into another directory", "holdfast restore {dir} --dir NEW_DIRECTORY"
	}
	return "; there is something else", "ls -la {dir}"
}
