//go:build unix

package migrate

import (
	"context"
	"errors"
	"fmt"

	v2 "example.com/holdfast/v2"
)

// Abandon takes back everything that the open import of Options.From into Options.Queue has
// brought, and removes the markers: all are as they were. On nil that is durable; after
// an error call it again. With an empty From it takes back whatever import the store
// remembers as open into the queue, for a v1 directory that is not there any more;
// markers elsewhere then stay, and a re-run of Import goes on from those that are open.
//
// Refusals: ErrNoImport; ErrOtherImport; ErrClosedSource, once the closing commit
// happened: what was brought may have been claimed since; ErrNotClosed, when
// the marker says that it did and the store forgot it.
func Abandon(ctx context.Context, store *v2.Store, o Options) (Report, error) {
	rep := Report{Store: store.ID(), Queue: o.Queue}
	if o.From == "" {
		return abandonOpen(ctx, store, rep)
	}
	m, err := peekMarker(&o)
	if err != nil {
		return rep, err
	}
	src, _, err := openMarked(&o, m) // the failed directory's marker goes too
	if err != nil {
		return rep, err
	}
	r := &run{o: &o, store: store, src: src, rep: &rep}
	err = r.abandon(ctx)
	return rep, errors.Join(err, src.Close())
}

func (r *run) abandon(ctx context.Context) error {
	if err := r.src.Hold(); err != nil {
		return err
	}
	m, err := readMarker(r.src)
	switch {
	case err != nil:
		return err
	case m == nil:
		return fmt.Errorf("%s: %w", r.src.Dir(), ErrNoImport)
	}
	if err := r.stillOpen(ctx, m, stays); err != nil {
		return err
	}
	if r.src.FailedDir() != "" {
		if err := r.sameFailed(m); err != nil {
			return err
		}
	}
	r.rep.Token = m.Token
	r.count(m)
	closed, known, err := remembered(ctx, r.store, m.Token)
	switch {
	case err != nil:
		return err
	case closed:
		return m.fault(ErrClosedSource, r.store.ID(), r.src.Dir(), stays)
	case known:
		if err := takeBack(ctx, r.store, r.o.Queue, m); err != nil {
			return err
		}
	}
	// Only now: without the marker nobody would know that the import is to be ended.
	r.o.at("abandoned")
	if err := r.unmarkFailed(m); err != nil {
		return err
	}
	r.o.at("failed unmarked")
	return r.src.RemoveMarker()
}

const stays = "what was brought stays"

func takeBack(ctx context.Context, store *v2.Store, queue string, m *marker) error {
	token, err := m.token()
	if err != nil {
		return err
	}
	imp, err := store.OpenImport(ctx, queue, token)
	if err != nil {
		return err
	}
	return imp.Abandon(ctx)
}

// abandonOpen ends the open import into a queue by the store's own record.
func abandonOpen(ctx context.Context, store *v2.Store, rep Report) (Report, error) {
	all, err := store.Imports(ctx)
	if err != nil {
		return rep, err
	}
	for _, i := range all {
		if i.Queue != rep.Queue || i.Closed {
			continue
		}
		rep.Token = i.Token.String()
		imp, err := store.OpenImport(ctx, i.Queue, i.Token)
		if err != nil {
			return rep, err
		}
		return rep, imp.Abandon(ctx)
	}
	return rep, fmt.Errorf("queue %s: %w", rep.Queue, ErrNoImport)
}
