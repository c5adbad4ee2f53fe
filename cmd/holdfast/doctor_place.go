//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"example.com/holdfast/internal/doctor"
)

// A noDirectoryError says that there is no directory to make a test in.
type noDirectoryError string

func (e noDirectoryError) Error() string        { return string(e) }
func (e noDirectoryError) Is(target error) bool { return target == errNoDirectory }

// place looks whether the directory of a test is there. A test makes none: which one is
// meant, and who may write it, is for its user to say.
func (a *app) place() error {
	if err := isFile(a.dir); err != nil {
		return err
	}
	_, err := os.Stat(a.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return noDirectoryError(fmt.Sprintf("%s is not there: make it first, on the filesystem that is to be tested", a.dir))
	}
	return a.aboutPlace(err)
}

// isFile tells a path that is a file, or that leads through one.
func isFile(path string) error {
	at := reachable(path)
	info, err := os.Stat(at)
	if err != nil || info.IsDir() {
		return nil // what else is wrong shows when it is used
	}
	return about(noDirectoryError(at+" is a file: give a directory"), facts{place: at, run: "ls -ld " + shellWord(at)})
}

// reachable is path, or the lowest directory above it that can be looked at: where the
// way is barred, that is the one that bars it.
func reachable(path string) string {
	for {
		_, err := os.Lstat(path)
		parent := filepath.Dir(path)
		if err == nil || parent == path {
			return path
		}
		path = parent
	}
}

// aboutPlace joins the next command to an error that the directory of a test answered
// with. A nil error stays nil.
func (a *app) aboutPlace(err error) error {
	run := ""
	switch {
	case errors.Is(err, syscall.EROFS):
		m, _ := doctor.System().Mount(reachable(a.dir)) // where there is none the list is shown
		run = mountLine(m)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		run = "df " + shellWord(reachable(a.dir))
	case errors.Is(err, fs.ErrPermission):
		run = "ls -ld " + shellWord(reachable(a.dir))
	case kindOf(err).err == nil: // nothing more is known of it
		run = "holdfast doctor --dir " + shellWord(a.dir)
	default:
		return err
	}
	return about(err, facts{run: run})
}

// mountLine is the command that shows how a place is mounted.
func mountLine(m *doctor.Mount) string {
	if m == nil {
		return "mount"
	}
	return "grep -F " + shellWord(" "+strings.ReplaceAll(m.Point, " ", `\040`)+" ") + " /proc/self/mounts"
}

// afterUnfit is the command to run when a place is not fit.
func (a *app) afterUnfit(r doctor.Report, c doctor.Check) string {
	place := shellWord(r.Place)
	switch {
	case c.Name == "owner" && othersWrite(r.Place):
		return "chmod 700 " + place
	case c.Name == "owner", c.Name == "private_modes":
		return "ls -ld " + place
	case c.Errno == "EROFS", r.Mount != nil && slices.Contains(r.Mount.Options, "ro"):
		return mountLine(r.Mount) // it may be full too, which nobody can change there
	case c.Errno == "EACCES", c.Errno == "EPERM":
		return "ls -ld " + place
	}
	return "df " + place // another filesystem, or room on this one
}
