//go:build unix

package migrate

import (
	"errors"
	"path/filepath"

	"example.com/holdfast/internal/fsguard"
	v1 "example.com/holdfast/v1"
)

// storeDir is what a v2 store keeps everything in: docs/format-v2.md.
const storeDir = ".fs-safe-queue-v2"

// checkApart refuses a directory that the store lies in, however deep.
func checkApart(store string, dirs ...string) error {
	for _, dir := range dirs {
		if inside(store, dir) {
			return &DirectoryError{Dir: dir, What: ErrInStore, Why: "the store " + store + " is in it"}
		}
	}
	return nil
}

// inside reports whether a path lies below a directory, symlinks followed. What is not
// there is not inside: whoever opens it says why.
func inside(path, dir string) bool {
	if dir == "" {
		return false
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return false
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// checkPlaces refuses a directory that is a v2 store, lies inside one, or has one in it:
// what was imported and what was not would be under one roof, and go with one rm.
func checkPlaces(dirs ...string) error {
	fsys := fsguard.OS()
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		path, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real // else whoever opens it says why
		}
		for at := path; ; at = filepath.Dir(at) {
			// An error says nothing here: on Android an app may not look into those above.
			if _, err := fsys.Stat(filepath.Join(at, storeDir)); err == nil {
				why := "it is inside the store " + at
				if at == path {
					why = "it is a store"
				}
				return &DirectoryError{Dir: dir, What: ErrInStore, Why: why}
			}
			if at == filepath.Dir(at) {
				break
			}
		}
		d, err := fsys.OpenRoot(path)
		if err != nil {
			continue // whoever opens it says why
		}
		names, err := d.ReadDir()
		if err := errors.Join(err, d.Close()); err != nil {
			return &v1.SourceError{Dir: path, Err: err}
		}
		for _, name := range names {
			if _, err := fsys.Stat(filepath.Join(path, name, storeDir)); err == nil {
				return &DirectoryError{Dir: dir, What: ErrInStore, Why: "the store " + name + " is in it"}
			}
		}
	}
	return nil
}
