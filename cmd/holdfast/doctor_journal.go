//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"example.com/holdfast/internal/doctor"
	"example.com/holdfast/internal/doctor/steps"
	"example.com/holdfast/internal/fsguard"
)

// stepIn reads a line of the form "WORD N".
func stepIn(line, word string) (uint64, bool) {
	number, ok := strings.CutPrefix(line, word+" ")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(number, 10, 64)
	return n, err == nil
}

// checkSteps refuses a number of steps that no test makes.
func checkSteps(flag string, n uint64) error {
	if n > steps.MaxSteps {
		return usagef("%s %d: a power test has at most %d steps", flag, n, steps.MaxSteps)
	}
	return nil
}

// A powerOrigin is what a power test began with. It is the first line of the journal, and
// kept in the store as the cursor of the script's queue.
type powerOrigin struct {
	seed uint64
	boot string // empty: it could not be read
}

const originForm = "holdfast-power-test-1"

func (o powerOrigin) String() string {
	return fmt.Sprintf("%s seed %d boot %s", originForm, o.seed, pick(o.boot, "unknown"))
}

func parseOrigin(text string) (o powerOrigin, ok bool) {
	words := strings.Split(text, " ")
	if len(words) != 5 || words[0] != originForm || words[1] != "seed" || words[3] != "boot" {
		return o, false
	}
	seed, err := strconv.ParseUint(words[2], 10, 64)
	if o.boot = words[4]; o.boot == "unknown" {
		o.boot = ""
	}
	o.seed = seed
	return o, err == nil
}

// A powerJournal notes what was acknowledged where the power test cannot lose it:
//
//	holdfast-power-test-1 seed N boot ID
//	dir "PATH"                               of the test, quoted as Go quotes
//	acknowledged 0
//	acknowledged 1
type powerJournal struct{ file *os.File }

// newPowerJournal makes the file, which must not be there, with the origin and the
// directory of the test in it.
func newPowerJournal(fsys fsguard.FS, path, dir string, o powerOrigin) (*powerJournal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, aboutJournal(path, err)
	}
	j := &powerJournal{f}
	err = j.note(fmt.Sprintf("%v\ndir %q", o, dir))
	if err == nil {
		err = syncDirectory(fsys, filepath.Dir(path))
	}
	if err != nil {
		return nil, aboutJournal(path, errors.Join(err, f.Close(), os.Remove(path)))
	}
	return j, nil
}

// aboutJournal says of an error that it is of the journal, and what to look at.
func aboutJournal(path string, err error) error {
	run := "ls -ld " + shellWord(reachable(path))
	switch info, statErr := os.Stat(path); {
	case statErr == nil && info.IsDir():
		err = fmt.Errorf("%s is a directory: give a file in it: %w", path, errJournal)
	case errors.Is(err, fs.ErrExist):
		err = fmt.Errorf("%s is there already, and may be the evidence of an earlier test: give another name: %w", path, errJournal)
		run = "ls -l " + shellWord(path)
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		run = "df " + shellWord(filepath.Dir(path))
		if errors.Is(err, syscall.EROFS) {
			m, _ := doctor.System().Mount(filepath.Dir(path)) // where there is none the list is shown
			run = mountLine(m)
		}
	}
	return about(err, facts{place: path, run: run})
}

// layered are the filesystems that lie over another one, which may be the store's.
var layered = []string{"fuse", "sdcardfs", "overlay", "ecryptfs", "union", "nullfs"}

// fitJournal refuses a journal that would share the fate of the store, or that no reboot
// leaves.
func fitJournal(fsys fsguard.FS, path, place string) error {
	switch _, err := os.Stat(path); {
	case err == nil:
		return aboutJournal(path, fs.ErrExist)
	case !errors.Is(err, fs.ErrNotExist):
		return aboutJournal(path, err)
	}
	parent := filepath.Dir(path)
	there, err := fsys.OpenRoot(parent)
	if err != nil {
		return aboutJournal(path, err)
	}
	defer there.Close()
	info, infoErr := there.Info()
	space, spaceErr := there.Space()
	store, storeErr := fsys.Stat(place)
	if err := errors.Join(infoErr, spaceErr, storeErr); err != nil {
		return aboutJournal(path, err)
	}
	over := func(kind string) bool { return strings.Contains(space.Type, kind) }
	why := ""
	switch {
	case info.Dev == store.Dev:
		why = "on the same filesystem as the store, which takes both"
	case inMemory(space):
		why = "on " + space.Type + ", which no reboot leaves"
	case slices.ContainsFunc(layered, over):
		why = "on " + space.Type + ", which lies over another filesystem: that may be the store's, and then it takes both"
	default:
		return nil
	}
	return about(fmt.Errorf("%s is %s: read the numbers on another machine (ssh, adb), or give a file on another device: %w", parent, why, errJournal),
		facts{place: parent, run: "df " + shellWord(parent) + " " + shellWord(place)})
}

func inMemory(s fsguard.Space) bool { return s.Type == "tmpfs" || s.Type == "ramfs" }

func syncDirectory(fsys fsguard.FS, path string) error {
	d, err := fsys.OpenRoot(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// note adds one line, which is durable on nil.
func (j *powerJournal) note(line string) error {
	if _, err := j.file.WriteString(line + "\n"); err != nil {
		return err
	}
	return j.file.Sync()
}

// close keeps a nil journal usable.
func (j *powerJournal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}

// A powerRecord is what a journal tells.
type powerRecord struct {
	origin       powerOrigin
	dir          string  // of the test; empty: that line was being written
	acknowledged *uint64 // the last; nil: nothing was
}

// readPowerJournal reads what was acknowledged last. Each line was synced before the next
// was written, so only the end of the file can be torn, and what follows the first line
// that is not the next number is no evidence.
func readPowerJournal(path string) (r powerRecord, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, aboutJournal(path, err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1])) // the rest was being written
	lines.Scan()                                                                         // where there is no line, there is no origin in it
	origin, ok := parseOrigin(lines.Text())
	if !ok {
		return r, about(fmt.Errorf("%s is no journal of a power test: %w", path, errJournal), facts{place: path, run: "ls -l " + shellWord(path)})
	}
	r.origin = origin
	lines.Scan()
	quoted, ok := strings.CutPrefix(lines.Text(), "dir ")
	if r.dir, err = strconv.Unquote(quoted); err != nil || !ok {
		return powerRecord{origin: origin}, nil
	}
	for lines.Scan() {
		n, ok := stepIn(lines.Text(), "acknowledged")
		if !ok || r.acknowledged == nil && n != 0 || r.acknowledged != nil && n != *r.acknowledged+1 {
			break
		}
		r.acknowledged = &n
	}
	return r, nil
}
