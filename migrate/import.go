//go:build unix

package migrate

import (
	"context"
	"errors"

	v1 "example.com/holdfast/v1"
	v2 "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// Import takes a v1 directory over into a queue, or goes on with what an earlier run
// began. On nil every entry of the report is durably a message of the queue, the store
// remembers the import as closed, and the marker says so.
//
// After an error before the marker was written (the report names no token) nothing was
// begun; after a later one the import is open: run it again, or Abandon it. Refusals are
// the errors of this package, those of v1 about a directory, and those of the store:
// queue.ErrFull, v2.ErrImporting (another import into the queue is open), and so on.
func Import(ctx context.Context, store *v2.Store, o Options) (Report, error) {
	rep := Report{Store: store.ID(), Queue: o.Queue, DryRun: o.DryRun}
	if !o.Fenced && !o.DryRun {
		return rep, ErrNotFenced
	}
	if err := queue.CheckQueue(o.Queue); err != nil {
		return rep, err
	}
	m, err := peekMarker(&o)
	switch {
	case err != nil:
		return rep, err
	case m == nil:
		if err := checkPlaces(o.From, o.Failed); err != nil {
			return rep, err
		}
	case m.State == markerOpen && o.Failed == "": // a re-run need not name it
		o.Failed = m.Failed
	}
	if err := checkApart(store.Dir(), o.From, o.Failed); err != nil {
		return rep, err
	}
	src, err := v1.OpenSource(o.From, o.v1())
	if err != nil {
		return rep, err
	}
	rep.FailedDir = src.FailedDir()
	r := &run{o: &o, store: store, src: src, rep: &rep}
	err = r.work(ctx)
	return rep, errors.Join(err, src.Close())
}

func (r *run) work(ctx context.Context) error {
	if !r.o.DryRun {
		if err := r.src.Hold(); err != nil {
			return err
		}
	}
	m, err := readMarker(r.src)
	if err != nil {
		return err
	}
	if m != nil {
		return r.resume(ctx, m)
	}
	if m, err = r.plan(ctx); err != nil || r.o.DryRun {
		return err
	}
	r.o.at("checked")
	m.Token = v2.NewImportToken().String()
	if err := r.mark(m); err != nil {
		return err
	}
	r.o.at("marked")
	return r.bring(ctx, m)
}

func (r *run) mark(m *marker) error {
	r.rep.Token = m.Token
	return r.src.SetMarker(m.encode())
}

// resume goes on with the import of a marker.
func (r *run) resume(ctx context.Context, m *marker) error {
	why := ""
	if m.Failed == "" && r.src.FailedDir() != "" {
		why = "without a failed directory; docs/migrating.md tells how that can come over later"
	}
	if err := r.stillOpen(ctx, m, why); err != nil {
		return err
	}
	r.rep.Resumed, r.rep.Token = true, m.Token
	r.count(m)
	for _, e := range m.Entries {
		if e.Skipped {
			r.rep.Skipped = append(r.rep.Skipped, Problem{e.file.File, errSkippedBefore})
		}
	}
	if closed, _, err := remembered(ctx, r.store, m.Token); err != nil {
		return err
	} else if closed {
		return r.note(m)
	}
	if err := r.sameFailed(m); err != nil {
		return err
	}
	if _, err := r.failedFree(m.Token); err != nil {
		return err
	}
	if err := r.compare(m); err != nil || r.o.DryRun {
		return err
	}
	return r.bring(ctx, m)
}

var errSkippedBefore = errors.New("was skipped when the import began")

// bring adds what the manifest names and closes the import.
func (r *run) bring(ctx context.Context, m *marker) error {
	if err := r.markFailed(m); err != nil {
		return err
	}
	token, err := m.token()
	if err != nil {
		return err
	}
	imp, err := r.store.OpenImport(ctx, r.o.Queue, token)
	if err != nil {
		return err
	}
	r.o.at("import open")
	if imp.Closed() {
		return r.note(m)
	}
	if err := r.addAll(ctx, imp, m); err != nil {
		return err
	}
	// The fence's net: what was read must be what stands.
	if err := r.compare(m); err != nil {
		return err
	}
	r.o.at("compared")
	// The closing commit: from here on the v2 queue is the queue.
	if err := imp.Close(ctx); err != nil {
		return err
	}
	r.o.at("closed")
	return r.note(m)
}

// note writes into the marker that the import is closed.
func (r *run) note(m *marker) error {
	r.rep.Closed = true
	if r.o.DryRun {
		return nil
	}
	m.State = markerClosed
	if err := r.mark(m); err != nil {
		return err
	}
	r.o.at("noted")
	return nil
}

// compare refuses to go on when the directory is not as the manifest says.
func (r *run) compare(m *marker) error {
	v, err := r.src.Survey()
	if err != nil {
		return err
	}
	r.rep.Delivered, r.rep.Temps, r.rep.Strays = v.Delivered, v.Temps, v.Strays
	if changed := m.differences(v); changed != nil {
		return &ProblemsError{ErrFence, changed}
	}
	return nil
}

// remembered tells what the store knows of an import.
func remembered(ctx context.Context, store *v2.Store, token string) (closed, known bool, err error) {
	all, err := store.Imports(ctx)
	if err != nil {
		return false, false, err
	}
	for _, i := range all {
		if i.Token.String() == token {
			return i.Closed, true, nil
		}
	}
	return false, false, nil
}
