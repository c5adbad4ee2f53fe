//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// VerifyOptions shape a Verify.
type VerifyOptions struct {
	// Progress is called with payload bytes, under the lock: it must return soon and
	// not use the store. Nil: it is not called.
	Progress func(done, total int64)
}

// A Report is what Verify found.
type Report struct {
	OK           bool         `json:"ok"` // no fault
	Faults       []Fault      `json:"faults"`
	Store        string       `json:"store"`
	Revision     uint64       `json:"revision"`
	Settled      bool         `json:"settled"` // as in queue.Status
	Messages     int64        `json:"messages"`
	Failed       int64        `json:"failed"`
	Runs         int64        `json:"runs"`    // sealed blocks of pending and failed messages
	Objects      int64        `json:"objects"` // that something refers to, runs included
	PayloadBytes int64        `json:"payload_bytes"`
	Orphans      int64        `json:"orphans"`      // objects that nothing refers to: harmless
	OrphanBytes  int64        `json:"orphan_bytes"` // -1, as Orphans: not known, for a run is damaged
	Temps        int64        `json:"temps"`        // leftover temporary files: harmless
	Owner        *queue.Owner `json:"owner"`
}

// A Fault is one thing that is not as it must be.
type Fault struct {
	Code   string `json:"code"` // state, run, payload, counters, file, lock
	File   string `json:"file"`
	Queue  string `json:"queue,omitempty"`
	ID     string `json:"id,omitempty"`
	Reason string `json:"reason"`
}

// Verify reads the whole store under the lock and changes nothing: the state, every
// reference and range, every payload's size, checksum and JSON, the sums of the
// counters, what lies beside them. Damage is in the report; an error says that the
// looking failed.
func (s *Store) Verify(ctx context.Context, o VerifyOptions) (Report, error) {
	var report Report
	err := s.look(ctx, func(v *view) error {
		var err error
		report, err = verify(v, o)
		return err
	})
	if errors.Is(err, ErrCorrupt) {
		return corruptReport(err), nil
	}
	return report, err
}

// VerifyDir verifies a store that may be too corrupt to open: then the corruption
// is the report's fault.
func VerifyDir(ctx context.Context, dir string, o *Options, v VerifyOptions) (Report, error) {
	s, err := OpenReadOnly(ctx, dir, o)
	if errors.Is(err, ErrCorrupt) {
		return corruptReport(err), nil
	}
	if err != nil {
		return Report{}, err
	}
	report, err := s.Verify(ctx, v)
	return report, errors.Join(err, s.Close())
}

func corruptReport(err error) Report {
	fault := Fault{Code: "state", Reason: err.Error()}
	var corrupt *CorruptError
	if errors.As(err, &corrupt) {
		if fault.File = corrupt.File; fault.File == lockFile {
			fault.Code = "lock"
		}
	}
	return Report{Faults: []Fault{fault}}
}

func verify(v *view, o VerifyOptions) (Report, error) {
	st := v.draft.st
	report := Report{
		Faults: []Fault{}, Store: st.store.String(), Revision: v.revision(), Settled: v.settled, Owner: v.owner,
	}
	whole := st
	st, err := readable(whole, &report)
	if err != nil {
		return report, err
	}
	var total int64
	if err := st.refs(func(_, _ string, r *ref) bool {
		total += r.size
		return true
	}); err != nil {
		return report, err
	}
	failed := whole.failedOf()
	for _, q := range whole.queues {
		verifyCounters(q, failed[q.name], &report)
	}
	unread := st.refs(func(name, id string, r *ref) bool {
		err = verifyPayload(v, name, id, r, &report)
		if o.Progress != nil {
			o.Progress(report.PayloadBytes, total)
		}
		return err == nil
	})
	if err = errors.Join(err, unread); err != nil {
		return report, err
	}
	for _, f := range st.failed {
		report.Failed += f.live()
	}
	report.Messages -= report.Failed
	if st != whole {
		report.Orphans, report.OrphanBytes = -1, -1 // what a damaged run names is not known
	} else if report.Orphans, report.OrphanBytes, err = orphans(v.pins, st); err != nil {
		return report, err
	}
	named, err := objectsOf(st)
	if err != nil {
		return report, err
	}
	report.Objects = int64(len(named))
	if err := verifyNamespace(v, &report); err != nil {
		return report, err
	}
	if err := verifyHolders(v.pins, &report); err != nil {
		return report, err
	}
	report.OK = len(report.Faults) == 0
	return report, nil
}

// readable reads every run, and gives the state without those that are damaged: their
// messages cannot be looked at. It is st itself where none is. Then it holds all
// references against each other.
func readable(st *state, report *Report) (*state, error) {
	kept := *st
	kept.queues, kept.failed = nil, nil
	damaged := false
	for _, q := range st.queues {
		c := *q
		c.runs = nil
		for _, r := range q.runs {
			_, err := st.reader.members(r)
			sound, err := report.run(r.name, q.name, err)
			if err != nil {
				return nil, err
			}
			if damaged = damaged || !sound; sound {
				c.runs = append(c.runs, r)
			}
		}
		kept.queues = append(kept.queues, &c)
	}
	for _, f := range st.failed {
		c := *f
		c.runs = nil
		for _, r := range f.runs {
			_, err := st.reader.buried(r)
			sound, err := report.run(r.name, "", err)
			if err != nil {
				return nil, err
			}
			if damaged = damaged || !sound; sound {
				c.runs = append(c.runs, r)
			}
		}
		kept.failed = append(kept.failed, &c)
	}
	if damaged {
		st = &kept
	}
	if err := st.sound(true); err != nil {
		report.fault("run", stateFile, err.Error())
	}
	return st, nil
}

// run notes what came of reading a run: sound, damaged, or not readable now.
func (r *Report) run(name token, queueName string, err error) (sound bool, unread error) {
	r.Runs++
	switch {
	case isDamage(err):
		r.Faults = append(r.Faults, Fault{Code: "run", File: runPath(name), Queue: queueName, Reason: err.Error()})
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// verifyPayload reads one message as a claim would, and admits its JSON again.
func verifyPayload(v *view, name, id string, r *ref, report *Report) error {
	report.Messages++
	payload, damage, err := v.load(r)
	switch {
	case errors.Is(err, ErrUnsafe):
		damage = err.Error()
	case err != nil:
		return err
	}
	if damage == "" {
		// Whatever bounds the payload was accepted under, it is one JSON value.
		if err := queue.CheckPayload(payload, len(payload), len(payload)); err != nil {
			damage = err.Error()
		}
	}
	report.PayloadBytes += r.size
	if damage != "" {
		report.Faults = append(report.Faults, Fault{
			Code: "payload", File: objectsDir + "/" + r.object.String() + "/" + payloadFile, Queue: name, ID: id, Reason: damage,
		})
	}
	return nil
}

// verifyCounters checks that what was counted and what is there agree.
func verifyCounters(q *queueState, failed uint64, report *Report) {
	live := uint64(q.live())
	c := q.counters
	if got := c.Enqueued + c.Reprocessed - c.Superseded - c.Completed - c.Failed - c.Cleared; got != live {
		report.Faults = append(report.Faults, Fault{Code: "counters", File: stateFile, Queue: q.name,
			Reason: fmt.Sprintf("the counters say %d live messages, there are %d", got, live)})
	}
	if got := c.Failed - c.Reprocessed - c.Purged; got != failed {
		report.Faults = append(report.Faults, Fault{Code: "counters", File: stateFile, Queue: q.name,
			Reason: fmt.Sprintf("the counters say %d failed messages, there are %d", got, failed)})
	}
}

// verifyNamespace looks at every name beside the objects.
func verifyNamespace(v *view, report *Report) error {
	names, err := v.pins.space.ReadDir()
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := v.pins.space.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a look without the lock can see a temp go
		}
		if err != nil {
			return err
		}
		if name == spareFile && !v.draft.st.exchange {
			report.fault("file", name, "is not the store's")
			continue
		}
		switch name {
		case objectsDir, holdersDir:
			if !info.Mode.IsDir() {
				report.fault("file", name, "is not a directory")
			}
		case formatFile, stateFile, spareFile, reserveFile:
			if !info.Plain() {
				report.fault("file", name, "is not a plain file with one link")
			}
		case lockFile:
			var buf [recordSize + 1]byte // what is there is read: a size may be said wrong
			n, err := readFull(v.pins.lock, buf[:], 0)
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if !info.Plain() || n != recordSize {
				report.fault("lock", name, fmt.Sprintf("is not a plain file of %d bytes", recordSize))
			}
		default:
			if isTemp(name) {
				report.Temps++
			} else {
				report.fault("file", name, "is not the store's")
			}
		}
	}
	return nil
}

// isDamage reports whether what was read is not as it must be, rather than that the reading
// failed.
func isDamage(err error) bool { return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrUnsafe) }

func (r *Report) fault(code, file, reason string) {
	r.Faults = append(r.Faults, Fault{Code: code, File: file, Reason: reason})
}

// objectsOf gives every object that something refers to, runs included.
func objectsOf(st *state) (map[token]bool, error) {
	named := map[token]bool{}
	for _, q := range st.queues {
		for _, r := range q.runs {
			named[r.name] = true
		}
	}
	for _, f := range st.failed {
		for _, r := range f.runs {
			named[r.name] = true
		}
	}
	err := st.refs(func(_, _ string, r *ref) bool {
		named[r.object] = true
		return true
	})
	return named, err
}

// orphans counts the objects that nothing refers to, and their bytes.
func orphans(p *pins, st *state) (count, bytes int64, err error) {
	names, err := p.objects.ReadDir()
	if err != nil {
		return 0, 0, err
	}
	named, err := objectsOf(st)
	if err != nil {
		return 0, 0, err
	}
	for _, name := range names {
		if tok, ok := parseToken(name); ok && named[tok] {
			continue
		}
		count++
		size, err := orphanBytes(p.objects, name)
		if err != nil {
			return 0, 0, err
		}
		bytes += size
	}
	return count, bytes, nil
}

func orphanBytes(objects fsguard.Dir, name string) (size int64, err error) {
	d, err := objects.OpenDir(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fsguard.ErrNotPlain) || errors.Is(err, fsguard.ErrSymlink) {
		return 0, nil // gone, or nothing that the store made: counted, not weighed
	}
	if err != nil {
		return 0, err
	}
	defer d.Close()
	for _, file := range []string{payloadFile, runFile} {
		info, err := d.Lstat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			size += info.Size
		}
		if err != nil {
			return 0, err
		}
	}
	return size, nil
}
