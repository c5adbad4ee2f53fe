//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"example.com/holdfast/queue"
)

// VerifyOptions shape a Verify.
type VerifyOptions struct {
	// Progress is called with payload bytes, by one goroutine at a time and without the
	// lock. It must return soon. Nil: it is not called.
	Progress func(done, total int64)

	// Workers is how many goroutines read payloads. Zero: one for each CPU, at most 8.
	// From 1 to 64.
	Workers int
}

const (
	usualVerifiers = 8
	mostVerifiers  = 64
)

func (o *VerifyOptions) fill() error {
	if o.Workers < 0 || o.Workers > mostVerifiers {
		return fmt.Errorf("%d workers: from 1 to %d: %w", o.Workers, mostVerifiers, queue.ErrInvalid)
	}
	if o.Workers == 0 {
		o.Workers = min(runtime.GOMAXPROCS(0), usualVerifiers)
	}
	return nil
}

// A Report is what Verify found, all of it true of one revision. The names of its JSON are
// stable: docs/verify.md tells them.
type Report struct {
	OK       bool    `json:"ok"` // no fault
	Faults   []Fault `json:"faults"`
	Store    string  `json:"store"`
	Revision uint64  `json:"revision"`
	Settled  bool    `json:"settled"` // as in queue.Status

	Messages     int64 `json:"messages"`      // live ones
	Processing   int64 `json:"processing"`    // of these, claimed
	Overdue      int64 `json:"overdue"`       // of those, with a lease that is over: for a reaping to end
	Failed       int64 `json:"failed"`        // messages set aside, until somebody reprocesses or purges them
	OpenImports  int64 `json:"open_imports"`  // whose queues wait for them
	Runs         int64 `json:"runs"`          // sealed blocks of pending and failed messages
	Objects      int64 `json:"objects"`       // that something refers to, runs included
	PayloadBytes int64 `json:"payload_bytes"` // of messages, live and failed

	Orphans     int64    `json:"orphans"`      // objects that nothing refers to: harmless
	OrphanBytes int64    `json:"orphan_bytes"` // -1, as Orphans: not known, for a run is damaged
	Orphaned    []Orphan `json:"orphaned"`     // the oldest of them, at most 100
	Temps       int64    `json:"temps"`        // leftover temporary files: harmless
	TempBytes   int64    `json:"temp_bytes"`

	OldestFailed *time.Time   `json:"oldest_failed"` // when the first of the failed messages failed; nil: there is none
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

// where names the file, and the message or the queue that it is about.
func (f *Fault) where() string {
	if of := strings.TrimSpace(f.Queue + " " + f.ID); of != "" {
		return f.File + " (" + of + ")"
	}
	return f.File
}

// An Orphan is an object that nothing refers to: of a commit that did not come, of messages
// that are gone, or made ahead for a commit to come.
type Orphan struct {
	Object   string    `json:"object"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
}

// Verify reads the whole store and changes nothing: the state, every run and every object
// once, every reference and range, every payload's size, checksum and JSON, the sums of the
// counters, what lies beside them. It is one revision that it reads. The lock is held
// while that is taken and the directories are listed; work goes on while objects are
// read, and what it settles meanwhile is read all the same: until Verify is done, nothing
// is collected. Damage is in the report; an error says that the looking failed.
func (s *Store) Verify(ctx context.Context, o VerifyOptions) (Report, error) {
	if err := o.fill(); err != nil {
		return Report{}, err
	}
	report, err := s.verify(ctx, o)
	if errors.Is(err, ErrCorrupt) {
		return corruptReport(err), nil
	}
	return report, err
}

func (s *Store) verify(ctx context.Context, o VerifyOptions) (Report, error) {
	for range maxReadings {
		var x *inspection
		err := s.look(ctx, func(v *view) (err error) {
			x.end() // of a commit that was decided before, and is decided anew
			x, err = inspect(v)
			return err
		})
		if err == nil {
			err = x.finish(ctx, o)
		}
		x.end()
		switch {
		case errors.Is(err, errMoved):
			continue
		case err != nil:
			return Report{}, err
		}
		return x.report, nil
	}
	return Report{}, fmt.Errorf("%s changed during each of %d readings: %w", stateFile, maxReadings, ErrBusy)
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
	return Report{Faults: []Fault{fault}, Orphaned: []Orphan{}}
}

// An inspection is a verification on its way.
type inspection struct {
	*held
	report  Report
	listed  []string // what lies in objects/
	parts   []part
	named   map[token]bool // objects that something refers to, runs included
	damaged bool           // a run is: what it names is not known
}

// inspect takes what has to be seen under the lock.
func inspect(v *view) (*inspection, error) {
	h, err := v.hold()
	if err != nil {
		return nil, err
	}
	x := &inspection{held: h, named: map[token]bool{}}
	if err := x.look(v.pins, h.st); err != nil {
		x.end()
		return nil, err
	}
	return x, nil
}

func (x *inspection) look(p *pins, st *state) error {
	x.report = Report{
		Faults: []Fault{}, Orphaned: []Orphan{}, Store: st.store.String(), Revision: st.revision, Settled: x.settled, Owner: x.owner,
	}
	if err := verifyNamespace(p, st, &x.report); err != nil {
		return err
	}
	if err := verifyHolders(p, &x.report); err != nil {
		return err
	}
	var err error
	x.listed, err = p.objects.ReadDir()
	return err
}

func (x *inspection) end() {
	if x != nil {
		x.release()
	}
}

// finish does what needs no lock. Faults stand in the report in this order: of runs, of
// what the state says, of payloads, of files.
func (x *inspection) finish(ctx context.Context, o VerifyOptions) error {
	files := x.report.Faults
	x.report.Faults = []Fault{}
	if err := x.gather(); err != nil {
		return err
	}
	failed := x.st.failedOf()
	for _, q := range x.st.queues {
		verifyCounters(q, failed[q.name], &x.report)
	}
	if err := x.read(ctx, o); err != nil {
		return err
	}
	x.report.Objects = int64(len(x.named))
	if err := x.weighOrphans(); err != nil {
		return err
	}
	x.report.Faults = append(x.report.Faults, files...)
	x.report.OK = len(x.report.Faults) == 0
	return nil
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

// isDamage reports whether what was read is not as it must be, rather than that the reading
// failed.
func isDamage(err error) bool { return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrUnsafe) }

func (r *Report) fault(code, file, reason string) {
	r.Faults = append(r.Faults, Fault{Code: code, File: file, Reason: reason})
}
