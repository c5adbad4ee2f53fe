//go:build unix

package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "example.com/holdfast/v1"
	v2 "example.com/holdfast/v2"
)

// A run is one call of Import.
type run struct {
	o     *Options
	store *v2.Store
	src   *v1.Source
	rep   *Report

	before bool // it checks what a recovery has not made whole yet
}

// plan looks at the directories, finishes what was interrupted, checks everything, and
// gives the marker that begins an import. In a dry run nothing is finished.
func (r *run) plan(ctx context.Context) (*marker, error) {
	v, err := r.src.Survey()
	if err != nil {
		return nil, err
	}
	r.o.at("surveyed")
	if err := r.right(v); err != nil {
		return nil, err
	}
	if v, err = r.settle(ctx, v); err != nil {
		return nil, err
	}
	r.rep.Delivered, r.rep.Temps, r.rep.Strays = v.Delivered, v.Temps, v.Strays
	return r.admit(ctx, v)
}

// admit checks everything and gives the marker.
func (r *run) admit(ctx context.Context, v v1.Survey) (m *marker, err error) {
	m = &marker{
		Protocol: markerProtocol, Version: markerVersion, Store: r.store.ID(), Queue: r.o.Queue, State: markerOpen, Failed: r.src.FailedDir(),
		Device: r.src.Device(v1.EntryPending), FailedDevice: r.src.Device(v1.EntryFailed),
	}
	if m.Entries, err = r.check(ctx, v.Entries); err != nil {
		return nil, err
	}
	r.count(m)
	return m, r.free(ctx, m)
}

// right refuses directories that are not what they were named as.
func (r *run) right(v v1.Survey) error {
	if _, err := r.failedFree(""); err != nil {
		return err
	}
	if len(v.Misplaced) > 0 {
		return &DirectoryError{Dir: r.src.FailedDir(), What: ErrSwapped, Why: v.Misplaced[0] + " is in it"}
	}
	ofQueue := func(e v1.Entry) bool { return e.State != v1.EntryFailed }
	if !v.Queue && !slices.ContainsFunc(v.Entries, ofQueue) {
		return &DirectoryError{Dir: r.src.Dir(), What: ErrNothing}
	}
	return nil
}

// settle refuses what only the operator may decide, does what the operator decided, and
// finishes every transition that was cut off. It gives the survey after that.
func (r *run) settle(ctx context.Context, v v1.Survey) (v1.Survey, error) {
	var named, unnamed []v1.HeldLock
	for _, l := range v.Locks {
		if slices.Contains(r.o.RemoveLocks, l.File) {
			named = append(named, l)
		} else {
			unnamed = append(unnamed, l)
		}
	}
	for _, file := range r.o.RemoveLocks {
		if !slices.ContainsFunc(named, func(l v1.HeldLock) bool { return l.File == file }) {
			r.rep.LocksMissing = append(r.rep.LocksMissing, file)
		}
	}
	if unnamed != nil {
		return v, &LocksError{unnamed}
	}
	doubtful := slices.DeleteFunc(slices.Clone(v.Records), func(r v1.Record) bool { return r.Why == "" })
	if len(doubtful) > 0 {
		return v, &RecordsError{doubtful}
	}
	cut := interrupted(v)
	if r.o.DryRun {
		r.rep.LocksRemoved, r.rep.Recovered, r.before = named, cut, true
		return recovered(v), nil
	}
	// What is refused anyway is refused before anything is touched.
	if len(named)+len(cut) > 0 {
		r.before = true
		_, err := r.admit(ctx, recovered(v))
		r.before, r.rep.Skipped = false, nil
		if err != nil {
			return v, err
		}
	}
	for _, l := range named {
		_, err := r.src.RemoveLock(l.File)
		if errors.Is(err, v1.ErrNotFound) {
			continue
		}
		if err != nil {
			return v, err
		}
		r.rep.LocksRemoved = append(r.rep.LocksRemoved, l)
		r.o.at("unlocked")
	}
	for _, id := range cut {
		if err := r.src.Recover(ctx, id); err != nil {
			return v, fmt.Errorf("recover %s: %w", id, err)
		}
		r.rep.Recovered = append(r.rep.Recovered, id)
		r.o.at("recovered")
	}
	// What a dead program named last may not be durable. The manifest must not say more
	// than the disk.
	if err := r.src.Sync(); err != nil {
		return v, err
	}
	r.o.at("synced")
	v, err := r.src.Survey()
	if err == nil && len(v.Locks) > 0 {
		err = &LocksError{v.Locks}
	}
	return v, err
}

// interrupted gives the IDs of which a transition was cut off.
func interrupted(v v1.Survey) []string {
	ids := []string{}
	for _, r := range v.Records {
		ids = append(ids, r.ID)
	}
	for _, e := range v.Entries {
		if e.State == v1.EntryClaimed && e.Plain && e.Links > 1 {
			ids = append(ids, e.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// recovered gives what a recovery would leave of the entries, but for what is in records: of
// the two names of one file the one that the transition was on its way to.
func recovered(v v1.Survey) v1.Survey {
	all := bySide(v.Entries)
	var out []v1.Entry
	for _, e := range v.Entries {
		twin := func(state v1.EntryState) bool {
			o, there := all[side{e.ID, state}]
			return there && o.Dev == e.Dev && o.Ino == e.Ino
		}
		switch {
		case e.State == v1.EntryPending && twin(v1.EntryClaimed), e.State == v1.EntryClaimed && twin(v1.EntryFailed):
			continue
		case e.State == v1.EntryClaimed && twin(v1.EntryPending), e.State == v1.EntryFailed && twin(v1.EntryClaimed):
			e.Links--
		}
		out = append(out, e)
	}
	v.Entries = out
	return v
}

// A side is where one entry of an ID stands.
type side struct {
	id    string
	state v1.EntryState
}

func bySide(entries []v1.Entry) map[side]v1.Entry {
	all := make(map[side]v1.Entry, len(entries))
	for _, e := range entries {
		all[side{e.ID, e.State}] = e
	}
	return all
}
