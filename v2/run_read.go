//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"

	"example.com/holdfast/internal/fsguard"
)

// runFiles reads runs from objects/ and remembers what it read. Nothing remembered
// goes stale, for a run never changes and its name is never used again.
//
// It is used by one goroutine at a time.
type runFiles struct {
	objects func() fsguard.Dir // as it is pinned now

	read    map[token]readRun
	recent  []token // of read, the oldest first
	size    int64   // of the files of what was read
	filters map[token][]byte

	reads *atomic.Uint64 // of Stats
}

// A readRun is what one run holds.
type readRun struct {
	size     int64
	pending  *body
	evidence []*failedEntry // sorted by name
}

// How much is remembered: some 10 MB of members, and the filters of a backlog of
// millions.
const (
	maxRunsRead    = 64
	maxSizeRead    = 16 << 20
	maxFiltersRead = 16384
)

func newRunFiles(objects func() fsguard.Dir) *runFiles {
	return &runFiles{objects: objects, read: map[token]readRun{}, filters: map[token][]byte{}, reads: new(atomic.Uint64)}
}

// runPath names a run's file in errors.
func runPath(name token) string { return objectsDir + "/" + name.String() + "/" + runFile }

func (f *runFiles) members(r *run) (*body, error) {
	if m := f.read[r.name].pending; m != nil {
		return m, nil
	}
	b, err := f.whole(&r.sealedObject)
	if err != nil {
		return nil, lostRun(err, waysOfPending)
	}
	m, err := decodeRun(b, r, runPath(r.name))
	if err != nil {
		return nil, lostRun(err, waysOfPending)
	}
	f.keep(r, m)
	return m, nil
}

// What there is to do about a run that is lost, beside restoring a copy.
const (
	waysOfPending = "Clear of its queue gives up what waits in it"
	waysOfFailed  = "PurgeLost gives up the failed messages that are in it"
)

// lostRun adds to what is wrong with a run how it can be given up. An error that says nothing
// about the run stays as it is.
func lostRun(err error, ways string) error {
	var c *CorruptError
	if err == nil || !errors.As(err, &c) {
		return err
	}
	told := *c
	told.Reason += "; " + ways
	return &told
}

// keep remembers a run that was read, or that this process has sealed.
func (f *runFiles) keep(r *run, m *body) {
	f.remember(&r.sealedObject, readRun{size: r.size, pending: m}, newFilter(m.slots))
}

// buried is members of a run of failed messages.
func (f *runFiles) buried(r *failedRun) ([]*failedEntry, error) {
	if all := f.read[r.name].evidence; all != nil {
		return all, nil
	}
	b, err := f.whole(&r.sealedObject)
	if err != nil {
		return nil, lostRun(err, waysOfFailed)
	}
	all, err := decodeFailedRun(b, r, runPath(r.name))
	if err != nil {
		return nil, lostRun(err, waysOfFailed)
	}
	f.keepEvidence(r, all)
	return all, nil
}

// keepEvidence is keep of a run of failed messages.
func (f *runFiles) keepEvidence(r *failedRun, all []*failedEntry) {
	f.remember(&r.sealedObject, readRun{size: r.size, evidence: all}, newFilter(all))
}

// remember makes room by the oldest.
func (f *runFiles) remember(o *sealedObject, what readRun, filter []byte) {
	for len(f.recent) > 0 && (len(f.recent) == maxRunsRead || f.size+o.size > maxSizeRead) {
		f.size -= f.read[f.recent[0]].size
		delete(f.read, f.recent[0])
		f.recent = append(f.recent[:0], f.recent[1:]...)
	}
	f.read[o.name] = what
	f.size += what.size
	f.recent = append(f.recent, o.name)
	f.keepFilter(o, filter)
}

func (f *runFiles) keepFilter(o *sealedObject, filter []byte) {
	if len(f.filters) == maxFiltersRead {
		clear(f.filters)
	}
	f.filters[o.name] = filter
}

func (f *runFiles) mayHold(r *sealedObject, name string) (bool, error) {
	filter := f.filters[r.name]
	if filter == nil {
		off, size := r.filterText()
		text, err := f.text(r, int64(off), size)
		if err != nil {
			return false, err
		}
		if sum := checksum(text); len(text) != size || sum != r.filterSum {
			return false, &CorruptError{File: runPath(r.name), Offset: int64(off), Reason: fmt.Sprintf("a filter with checksum %08x: %s says %08x", sum, stateFile, r.filterSum)}
		}
		if filter, err = parseFilter(text); err != nil {
			return false, &CorruptError{File: runPath(r.name), Offset: int64(off), Reason: err.Error()}
		}
		f.keepFilter(r, filter)
	}
	return mayHold(filter, name), nil
}

// whole reads a run's file. One byte more shows a file that is too long.
func (f *runFiles) whole(o *sealedObject) ([]byte, error) {
	f.reads.Add(1)
	return f.text(o, 0, int(o.size)+1)
}

// text reads up to size bytes at off of a run's file. One that is not there is
// corruption: the state names it. Any other trouble says nothing about the store.
func (f *runFiles) text(r *sealedObject, off int64, size int) ([]byte, error) {
	file, err := openObject(f.objects(), r.name, runFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &CorruptError{File: runPath(r.name), Offset: -1, Reason: "missing: messages are in it"}
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", runPath(r.name), typed(err))
	}
	defer file.Close() // only read
	b := make([]byte, size)
	n, err := readFull(file, b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading %s: %w", runPath(r.name), err)
	}
	return b[:n], nil
}
