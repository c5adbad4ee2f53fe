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
}

// plan looks at the directory, finishes what was interrupted, checks everything, and
// gives the marker that begins an import. In a dry run nothing is finished.
func (r *run) plan(ctx context.Context) (*marker, error) {
	v, err := r.src.Survey()
	if err != nil {
		return nil, err
	}
	r.o.at("surveyed")
	if v, err = r.settle(ctx, v); err != nil {
		return nil, err
	}
	r.rep.Delivered, r.rep.Temps, r.rep.Strays = v.Delivered, v.Temps, v.Strays
	m := &marker{
		Protocol: markerProtocol, Version: markerVersion, Store: r.store.ID(), Queue: r.o.Queue, State: markerOpen, Failed: r.src.FailedDir(),
		Device: r.src.Device(v1.EntryPending), FailedDevice: r.src.Device(v1.EntryFailed),
	}
	if m.Entries, err = r.check(ctx, v.Entries); err != nil {
		return nil, err
	}
	r.count(m)
	return m, r.free(ctx, m)
}

// settle refuses what only the operator may decide, does what the operator decided, and
// finishes every transition that was cut off. It gives the survey after that.
func (r *run) settle(ctx context.Context, v v1.Survey) (v1.Survey, error) {
	var unnamed []v1.HeldLock
	for _, l := range v.Locks {
		if slices.Contains(r.o.RemoveLocks, l.File) {
			r.rep.LocksRemoved = append(r.rep.LocksRemoved, l)
		} else {
			unnamed = append(unnamed, l)
		}
	}
	if unnamed != nil {
		r.rep.LocksRemoved = nil
		return v, &LocksError{unnamed}
	}
	doubtful := slices.DeleteFunc(slices.Clone(v.Records), func(r v1.Record) bool { return r.Why == "" })
	if len(doubtful) > 0 {
		r.rep.LocksRemoved = nil
		return v, &RecordsError{doubtful}
	}
	cut := interrupted(v)
	if r.o.DryRun {
		r.rep.Recovered = cut
		return recovered(v), nil
	}
	for _, l := range r.rep.LocksRemoved {
		if _, err := r.src.RemoveLock(l.File); err != nil && !errors.Is(err, v1.ErrNotFound) {
			return v, err
		}
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
