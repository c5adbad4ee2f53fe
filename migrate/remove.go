//go:build unix

package migrate

import (
	"context"
	"errors"
	"fmt"

	v1 "example.com/holdfast/v1"
	v2 "example.com/holdfast/v2"
)

// A Removal tells what RemoveSource did.
type Removal struct {
	Store, Queue, Token string

	Removed int       // files of the manifest
	Gone    int       // that were gone before
	Kept    []Problem // that are not what was imported: they stay
	Left    []string  // what else is in the directories, the markers aside

	FailedGone string // the failed directory, when it is not there any more; its files count as gone
}

// RemoveSource is the last step, when nobody wants to go back any more: it removes from
// the v1 directories exactly the files that were imported and still are the same, and leaves
// everything else, the markers too. Of the options From, Failed, Queue and V1 count; a
// queue may be left out, and so may the failed directory: the marker knows both. If that
// directory is not there any more, the report says so, and the rest is done. On nil
// what it removed is durably gone; after an error, or a crash, call it again.
//
// Refusals: ErrNoImport; ErrNotClosed; ErrOtherImport, when another store took the
// directory over.
func RemoveSource(ctx context.Context, store *v2.Store, o Options) (Removal, error) {
	var out Removal
	m, err := peekMarker(&o)
	if err != nil {
		return out, err
	}
	if m == nil {
		return out, fmt.Errorf("%s: %w", o.From, ErrNoImport)
	}
	out.Store, out.Queue, out.Token = m.Store, m.Queue, m.Token
	src, gone, err := openMarked(&o, m)
	out.FailedGone = gone
	if err != nil {
		return out, err
	}
	err = removeFrom(ctx, store, &o, src, &out)
	return out, errors.Join(err, src.Close())
}

// peekMarker reads the marker before it is known which failed directory goes with it; nil:
// there is none.
func peekMarker(o *Options) (*marker, error) {
	alone := *o
	alone.Failed = ""
	src, err := v1.OpenSource(o.From, alone.v1())
	if err != nil {
		return nil, err
	}
	m, err := readMarker(src)
	return m, errors.Join(err, src.Close())
}

// openMarked opens what the marker m is about; nil: only what the options name. Where they
// name no failed directory it is the marker's. If that is not there any more, there is
// nothing in it to see to: it is left out, and gone tells it.
func openMarked(o *Options, m *marker) (src *v1.Source, gone string, err error) {
	if m != nil && o.Failed == "" {
		o.Failed = m.Failed
	}
	src, err = v1.OpenSource(o.From, o.v1())
	if errors.Is(err, v1.ErrNoDirectory) && m != nil && m.Failed != "" && o.Failed == m.Failed {
		gone, o.Failed = m.Failed, ""
		src, err = v1.OpenSource(o.From, o.v1())
	}
	return src, gone, err
}

func removeFrom(ctx context.Context, store *v2.Store, o *Options, src *v1.Source, out *Removal) error {
	if err := src.Hold(); err != nil {
		return err
	}
	m, err := readMarker(src)
	switch {
	case err != nil:
		return err
	case m == nil:
		return fmt.Errorf("%s: %w", src.Dir(), ErrNoImport)
	case m.Store != store.ID() || o.Queue != "" && m.Queue != o.Queue:
		return m.fault(ErrOtherImport, store.ID(), src.Dir(), "")
	case m.State != markerClosed:
		return m.fault(ErrNotClosed, store.ID(), src.Dir(), "run the import again until it ends")
	}
	r := &run{o: o, store: store, src: src}
	if err := r.forgotten(ctx, m); err != nil {
		return err
	}
	if out.FailedGone == "" {
		if err := r.sameFailed(m); err != nil {
			return err
		}
	}
	if err := removeAll(ctx, o, src, m, out); err != nil {
		return errors.Join(err, src.Sync())
	}
	if err := src.Sync(); err != nil {
		return err
	}
	v, err := src.Survey()
	if err != nil {
		return err
	}
	for _, e := range v.Entries {
		out.Left = append(out.Left, e.File)
	}
	for _, l := range v.Locks {
		out.Left = append(out.Left, l.File)
	}
	for _, r := range v.Records {
		out.Left = append(out.Left, r.File)
	}
	for _, more := range [][]string{v.Delivered, v.Temps, v.Strays} {
		out.Left = append(out.Left, more...)
	}
	return nil
}

func removeAll(ctx context.Context, o *Options, src *v1.Source, m *marker, out *Removal) error {
	for i, e := range m.Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.Skipped {
			continue
		}
		if out.FailedGone != "" && e.file.State == v1.EntryFailed {
			out.Gone++
			continue
		}
		removed, err := src.Remove(e.file, e.sum)
		switch {
		case errors.Is(err, v1.ErrChanged), errors.Is(err, v1.ErrPathMismatch), errors.Is(err, v1.ErrNotFile), errors.Is(err, v1.ErrTooLarge):
			out.Kept = append(out.Kept, Problem{e.file.File, err})
		case err != nil:
			return err
		case removed:
			out.Removed++
		default:
			out.Gone++
		}
		o.at("removed")
		o.progress(Removing, i+1, len(m.Entries))
	}
	return nil
}
