//go:build unix

package holdfast

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// An EntryState is by which name an entry stands.
type EntryState int

const (
	EntryPending EntryState = iota // ID.json
	EntryClaimed                   // ID.processing
	EntryFailed                    // ID.json in the failed directory
)

func (x EntryState) String() string {
	switch x {
	case EntryPending:
		return "pending"
	case EntryClaimed:
		return "claimed"
	case EntryFailed:
		return "failed"
	}
	return fmt.Sprintf("EntryState(%d)", int(x))
}

// An Entry is one name of an entry, and the file at it.
type Entry struct {
	ID       string
	State    EntryState
	File     string // its name in the queue directory; of a failed one its path
	Dev, Ino uint64
	Size     int64
	Modified time.Time // when the content was written
	Links    uint64    // 1, unless a transition was interrupted or somebody made another
	Plain    bool      // a plain file; what claimed or failed and is none is in the way
}

// A Record is a retirement that was not finished.
type Record struct {
	ID   string // empty: its name is no entry's
	File string
	Why  string // why it cannot be told what is in it; empty: Recover finishes it
}

// A Survey is what one listing of the directories shows, entry by entry. Of a directory
// that programs still work on it is only an impression.
type Survey struct {
	Entries   []Entry // claimed, pending and failed ones, each by modification time and ID
	Locks     []HeldLock
	Records   []Record
	Delivered []string // acknowledged entries that were about to vanish: markers of no work
	Temps     []string // being written, or left by a crash: never part of the queue
	Strays    []string // other names, and pending ones that are no plain files: no entries

	// Queue says that the queue directory holds a name that only a queue directory has;
	// Misplaced are such names in the failed directory.
	Queue     bool
	Misplaced []string
}

// queueName reports whether only a queue directory has that name, and not every
// directory with JSON files in it.
func queueName(name string) bool {
	_, claimed := cutName(name, processingSuffix)
	_, delivered := cutName(name, deliveredSuffix)
	return claimed || delivered || name == retirementsDir || IsLockFile(name)
}

// LooksLikeQueue tells from the names in a directory whether programs of the protocol, or an
// import, were at work in it: by a name that nothing else has, or because every name is
// that of an entry, pending or being written.
func LooksLikeQueue(names []string) bool {
	entries := 0
	for _, name := range names {
		if queueName(name) || name == markerFile {
			return true
		}
		if _, ok := cutName(name, pendingSuffix); ok {
			entries++
		} else if !isTemp(name) {
			entries = -len(names)
		}
	}
	return entries > 0
}

// Survey looks at everything and changes nothing.
func (x *Source) Survey() (Survey, error) {
	v, err := x.survey()
	return v, about(x.Dir(), err)
}

func (x *Source) survey() (Survey, error) {
	var v Survey
	q, err := x.s.queue.admit()
	if err != nil {
		return v, err
	}
	defer q.Close()
	listed, err := q.ReadDir()
	if err != nil {
		return v, err
	}
	for _, name := range listed {
		v.Queue = v.Queue || queueName(name)
		id, state, entry := cutEntry(name)
		_, delivered := cutName(name, deliveredSuffix)
		switch {
		case entry:
			err = v.add(q, name, Entry{ID: id, State: state, File: name})
		case delivered:
			v.Delivered = append(v.Delivered, name)
		case name == retirementsDir:
			v.Records, err = records(q)
		case isTemp(name):
			v.Temps = append(v.Temps, name)
		case name != markerFile && !IsLockFile(name):
			v.Strays = append(v.Strays, name)
		}
		if err != nil {
			return v, err
		}
	}
	if v.Locks, err = x.s.locks(q, listed, lockIDsOf(listed, v.Records)); err != nil {
		return v, err
	}
	if err := x.surveyFailed(&v); err != nil {
		return v, about(x.FailedDir(), err)
	}
	slices.SortFunc(v.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(turns[a.State], turns[b.State]), a.Modified.Compare(b.Modified), cmp.Compare(a.ID, b.ID))
	})
	return v, nil
}

// turns is the order of the states in a survey: who was claimed was first in the line.
var turns = [...]int{EntryClaimed: 0, EntryPending: 1, EntryFailed: 2}

// cutEntry tells which entry of the queue directory has that name.
func cutEntry(name string) (string, EntryState, bool) {
	if id, ok := cutName(name, pendingSuffix); ok {
		return id, EntryPending, true
	}
	id, ok := cutName(name, processingSuffix)
	return id, EntryClaimed, ok
}

// add looks at the file of e. One that is gone by now is no entry.
func (v *Survey) add(dir fsguard.Dir, name string, e Entry) error {
	info, there, err := lstat(dir, name)
	if err != nil || !there {
		return err
	}
	if e.look(info); e.State == EntryPending && !e.Plain {
		v.Strays = append(v.Strays, name) // as every consumer takes it
		return nil
	}
	v.Entries = append(v.Entries, e)
	return nil
}

func (e *Entry) look(info fsguard.Info) {
	e.Dev, e.Ino, e.Size, e.Links = info.Dev, info.Ino, info.Size, info.Links
	e.Modified, e.Plain = time.Unix(0, info.MtimeNanos), info.Mode.IsRegular()
}

func (x *Source) surveyFailed(v *Survey) error {
	if x.s.fail == nil {
		return nil
	}
	failed, err := x.s.fail.admit()
	if err != nil {
		return err
	}
	defer failed.Close()
	listed, err := failed.ReadDir()
	if err != nil {
		return err
	}
	for _, name := range listed {
		if id, ok := cutName(name, pendingSuffix); ok {
			if err := v.add(failed, name, Entry{ID: id, State: EntryFailed, File: x.failedPath(name)}); err != nil {
				return err
			}
			continue
		}
		if queueName(name) {
			v.Misplaced = append(v.Misplaced, name)
		}
		if isTemp(name) {
			v.Temps = append(v.Temps, x.failedPath(name))
		} else if name != markerFile {
			v.Strays = append(v.Strays, x.failedPath(name))
		}
	}
	return nil
}
