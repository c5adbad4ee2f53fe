//go:build unix

package migrate

import (
	"fmt"

	v1 "example.com/holdfast/v1"
)

// The failed directory has a marker of its own, without a manifest: it keeps the evidence
// from coming over a second time, by another queue that shares the directory or in the
// role of a queue. It stands before the import is opened, and goes with Abandon. What
// has the truth is the marker of the queue directory: an import that was cut off between
// the two writes the second one when it goes on.

// failedMarker gives the marker of the failed directory; nil: there is none.
func (r *run) failedMarker() (*marker, error) {
	return markerIn(r.src.FailedDir(), r.src, r.src.FailedMarker)
}

// failedFree refuses a failed directory that went over already. The import of that token
// may go on with its own.
func (r *run) failedFree(token string) (own bool, err error) {
	m, err := r.failedMarker()
	switch {
	case err != nil || m == nil:
		return false, err
	case m.Role != roleFailed:
		return false, m.fault(ErrOtherRole, r.store.ID(), r.src.FailedDir(), "it is a queue directory")
	case m.Token != token:
		return false, m.fault(ErrFailedTaken, r.store.ID(), r.src.FailedDir(), "it went over with "+m.From+": leave --failed out")
	}
	return true, nil
}

// markFailed marks the failed directory of the import that the marker m begins.
func (r *run) markFailed(m *marker) error {
	if r.src.FailedDir() == "" {
		return nil
	}
	if own, err := r.failedFree(m.Token); own || err != nil {
		return err
	}
	f := marker{
		Protocol: markerProtocol, Version: markerVersion, Role: roleFailed, From: r.src.Dir(), // State is the queue directory's to tell
		Store: m.Store, Queue: m.Queue, Token: m.Token, Failed: r.src.FailedDir(),
		Device: r.src.Device(v1.EntryPending), FailedDevice: r.src.Device(v1.EntryFailed), Entries: []entry{},
	}
	if err := r.src.SetFailedMarker(f.encode()); err != nil {
		return err
	}
	r.o.at("failed marked")
	return nil
}

// unmarkFailed takes back what markFailed did. A marker of another import stays.
func (r *run) unmarkFailed(m *marker) error {
	f, err := r.failedMarker()
	if err != nil || f == nil || f.Token != m.Token {
		return err
	}
	return r.src.RemoveFailedMarker()
}

// sameFailed refuses to go on with another failed directory than the import was begun
// with. One that was moved since is known by its marker.
func (r *run) sameFailed(m *marker) error {
	now := r.src.FailedDir()
	switch {
	case now == m.Failed:
		return nil
	case m.Failed == "":
		return m.fault(ErrOtherImport, r.store.ID(), r.src.Dir(), "it was begun without a failed directory: go on without (leave --failed out), or abandon it")
	}
	f, err := r.failedMarker()
	if err != nil || f != nil && f.Token == m.Token {
		return err
	}
	return m.fault(ErrOtherImport, r.store.ID(), r.src.Dir(), fmt.Sprintf("it was begun with the failed directory %s, and not with %s: name that one, or leave --failed out", m.Failed, now))
}
