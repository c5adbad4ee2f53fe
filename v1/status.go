//go:build unix

package holdfast

import (
	"context"

	"example.com/holdfast/internal/fsguard"
)

// Status counts the names of one listing of each directory; what is no plain file is
// left out. An ID that is claimed while a newer entry waits counts in both, and so does
// one whose claim was cut off between its two names. With a lock for each ID there is
// no moment at which all of it holds: zero does not say that a queue is complete.
type Status struct {
	Pending, Processing, Failed int

	Delivered   int  // markers that an interrupted acknowledgement left
	Retirements bool // the directory of retirement records is there
	Locks       int  // transfer locks, held or left behind, and what takes one away
	Temporary   int
}

// Status lists the directories.
func (s *Store) Status(ctx context.Context) (Status, error) {
	var st Status
	if err := ctx.Err(); err != nil {
		return st, err
	}
	q, err := s.queue.admit()
	if err != nil {
		return st, err
	}
	defer q.Close()
	listed, err := q.ReadDir()
	if err != nil {
		return st, err
	}
	for _, name := range listed {
		switch {
		case IsLockFile(name):
			st.Locks++
		case isTemp(name):
			st.Temporary++
		case name == retirementsDir:
			st.Retirements = true
		default:
			for suffix, count := range map[string]*int{pendingSuffix: &st.Pending, processingSuffix: &st.Processing, deliveredSuffix: &st.Delivered} {
				if err := tally(q, name, suffix, count); err != nil {
					return Status{}, err
				}
			}
		}
	}
	if s.fail == nil {
		return st, nil
	}
	failed, err := s.fail.admit()
	if err != nil {
		return st, err
	}
	defer failed.Close()
	if listed, err = failed.ReadDir(); err != nil {
		return st, err
	}
	for _, name := range listed {
		if err := tally(failed, name, pendingSuffix, &st.Failed); err != nil {
			return Status{}, err
		}
	}
	return st, nil
}

// tally counts a listed name with that suffix. One that is gone by now was there at
// the listing; what stands there and is no plain file is no entry.
func tally(dir fsguard.Dir, name, suffix string, count *int) error {
	if _, ok := cutID(name, suffix); !ok {
		return nil
	}
	info, there, err := lstat(dir, name)
	if err == nil && (!there || info.Mode.IsRegular()) {
		*count++
	}
	return err
}
