//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/holdfast/queue"
)

// mostCandidates bounds how many names an ambiguous one is answered with.
const mostCandidates = 10

// A matcher collects the names that begin or end with what was given. The whole
// name itself beats any that only contain it.
type matcher struct {
	given string
	fits  []string
	whole bool
}

func (m *matcher) look(name string) {
	switch {
	case m.whole:
	case name == m.given:
		m.fits, m.whole = []string{name}, true
	case len(m.fits) > mostCandidates || slices.Contains(m.fits, name):
	case strings.HasPrefix(name, m.given) || strings.HasSuffix(name, m.given):
		m.fits = append(m.fits, name)
	}
}

// one gives the name that fits, none when nothing does, and errAmbiguous with
// the candidates when several do.
func (m *matcher) one(what string) (string, error) {
	switch len(m.fits) {
	case 0:
		return "", errNone
	case 1:
		return m.fits[0], nil
	}
	shown := m.fits
	more := ""
	if len(shown) > mostCandidates {
		shown, more = shown[:mostCandidates], " and more"
	}
	return "", fmt.Errorf("%s %q: %w: %s%s", what, m.given, errAmbiguous, strings.Join(shown, " "), more)
}

// errNone says that nothing fits; the caller knows the error to give.
var errNone = errors.New("no name fits")

// withID runs do for an ID, and if there is no such message, for the one live ID
// of the queue that begins or ends with it.
func withID(ctx context.Context, s store, q, id string, do func(id string) error) error {
	err := do(id)
	if !errors.Is(err, queue.ErrNotFound) && !errors.Is(err, queue.ErrInvalidName) || id == "" || queue.CheckQueue(q) != nil {
		return about(err, facts{queue: q, id: id})
	}
	m := matcher{given: id}
	listErr := eachLive(ctx, s, q, func(e queue.Entry) { m.look(e.ID) })
	if listErr != nil {
		return listErr
	}
	return m.settle(err, "ID", facts{queue: q}, func(name string) error {
		return about(do(name), facts{queue: q, id: name})
	})
}

// withFailed is withID for the name of a failed message.
func withFailed(ctx context.Context, s store, name string, do func(name string) error) error {
	err := do(name)
	if !errors.Is(err, queue.ErrNotFailed) && !errors.Is(err, queue.ErrInvalidName) || name == "" {
		return about(err, facts{name: name})
	}
	m := matcher{given: name}
	o := queue.ListOptions{Limit: pageSize}
	listErr := eachPage(&o, func() (queue.Page, error) {
		return s.ListFailed(ctx, queue.FailedOptions{}, o)
	}, func(p queue.Page) {
		for _, e := range p.Entries {
			m.look(e.FailedName)
		}
	})
	if listErr != nil {
		return listErr
	}
	return m.settle(err, "failed message", facts{}, func(name string) error {
		return about(do(name), facts{name: name})
	})
}

// settle goes on with the one that fits. Nothing fits: the first answer stands.
func (m *matcher) settle(first error, what string, f facts, do func(name string) error) error {
	name, err := m.one(what)
	switch {
	case errors.Is(err, errNone):
		return about(first, f)
	case err != nil:
		return about(err, f)
	}
	return do(name)
}

// A leaseFinder turns what the caller gave into receipts. It lists the current
// leases once, and only if something is no full receipt.
type leaseFinder struct {
	s      store
	listed bool
	texts  []string
}

func (l *leaseFinder) find(ctx context.Context, given string) (queue.Receipt, error) {
	r, err := queue.ParseReceipt(given)
	if err == nil {
		if id := l.s.ID(); r.Store != id && strings.HasSuffix(id, r.Store) {
			r.Store = id // a suffix that lacks only a part of the store's ID
		}
		return r, nil
	}
	if given == "" {
		return r, err
	}
	if err := l.list(ctx); err != nil {
		return r, err
	}
	m := matcher{given: given}
	for _, text := range l.texts {
		m.look(text)
	}
	text, matchErr := m.one("receipt")
	switch {
	case errors.Is(matchErr, errNone):
		return r, fmt.Errorf("no current lease fits: %w", err)
	case matchErr != nil:
		return r, matchErr
	}
	return queue.ParseReceipt(text)
}

func (l *leaseFinder) list(ctx context.Context) error {
	if l.listed {
		return nil
	}
	st, err := l.s.Status(ctx, queue.StatusOptions{})
	if err != nil {
		return err
	}
	for q, gauges := range st.Queues {
		if gauges.Unacked() == 0 {
			continue
		}
		err := eachLive(ctx, l.s, q, func(e queue.Entry) {
			if e.Receipt.Store != "" {
				l.texts = append(l.texts, e.Receipt.String())
			}
		})
		if err != nil {
			return err
		}
	}
	l.listed = true
	return nil
}
