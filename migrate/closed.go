//go:build unix

package migrate

import (
	"context"
	"errors"

	v1 "example.com/holdfast/v1"
)

// stillOpen refuses a marker that is not of this store and queue, or of an import that is
// closed: then with this to say about it.
func (r *run) stillOpen(ctx context.Context, m *marker, why string) error {
	store, dir := r.store.ID(), r.src.Dir()
	switch {
	case m.Store != store && m.State == markerClosed:
		return m.fault(ErrClosedSource, store, dir, "")
	case m.Store != store:
		return m.fault(ErrOtherImport, store, dir, "")
	case m.State == markerClosed:
		if err := r.forgotten(ctx, m); err != nil {
			return err
		}
		if m.Queue != r.o.Queue {
			why = ""
		}
		return m.fault(ErrClosedSource, store, dir, why)
	case m.Queue != r.o.Queue:
		return m.fault(ErrOtherImport, store, dir, "go on with that one, or abandon it")
	}
	return nil
}

// forgotten refuses a marker that says closed where its own store does not: that store was
// put back from a copy that is older than the closing commit. The marker is no word of
// the store's then, and only the operator can tell which of the two is right.
func (r *run) forgotten(ctx context.Context, m *marker) error {
	closed, known, err := remembered(ctx, r.store, m.Token)
	if err != nil || closed {
		return err
	}
	why := "the marker says that it is, and the store does not remember it: was the store put back from an older copy?"
	if known {
		why = "the marker says that it is, and the store has it open: was the store put back from an older copy?"
	}
	failed, err := r.failedOf(m)
	return errors.Join(&MarkerError{
		What: ErrNotClosed, Dir: r.src.Dir(), Store: m.Store, Queue: m.Queue, Token: m.Token, Why: why,
		Forgotten: true, Open: known, FailedDir: failed,
	}, err)
}

// failedOf finds the failed directory that has the marker of the same import; empty: none
// does.
func (r *run) failedOf(m *marker) (string, error) {
	if f, err := r.failedMarker(); err != nil || f != nil && f.Token == m.Token {
		return r.src.FailedDir(), err
	}
	if m.Failed == "" || m.Failed == r.src.FailedDir() {
		return "", nil
	}
	other, err := v1.OpenSource(m.Failed, nil)
	if errors.Is(err, v1.ErrNoDirectory) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	dir := ""
	text, there, err := other.Marker()
	if err == nil && there {
		if f, err := decodeMarker(text, other); err == nil && f.Role == roleFailed && f.Token == m.Token {
			dir = other.Dir()
		}
	}
	return dir, errors.Join(err, other.Close())
}
