//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

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

// A shortening says what a command takes for a name that was not given whole.
type shortening int

const (
	forLooks   shortening = iota // whatever one name alone begins or ends with; told on stderr
	forChanges                   // a generated ID, given by at least minShort characters
)

// minShort is how much of a generated ID a change needs: the IDs that people choose
// are often one the beginning of another.
const minShort = 8

// withID runs do for an ID, and if there is no such message, for the one live ID
// of the queue that it may be short for.
func (a *app) withID(ctx context.Context, s store, how shortening, q, id string, do func(id string) error) error {
	err := do(id)
	if !errors.Is(err, queue.ErrNotFound) && !errors.Is(err, queue.ErrInvalidName) || queue.CheckQueue(q) != nil || !how.allows(id) {
		return about(err, facts{queue: q, id: id})
	}
	m := matcher{given: id}
	listErr := eachLive(ctx, s, q, func(e queue.Entry) { m.look(e.ID) })
	if listErr != nil {
		return listErr
	}
	name, matchErr := a.short(&m, how, err, "ID")
	if matchErr != nil {
		return about(matchErr, facts{queue: q})
	}
	return about(do(name), facts{queue: q, id: name})
}

// withFailed is withID for the name of a failed message of a namespace.
func (a *app) withFailed(ctx context.Context, s store, how shortening, space, name string, do func(name string) error) error {
	err := do(name)
	if errors.Is(err, queue.ErrNotFailed) {
		err = a.elsewhere(ctx, s, space, name, err)
	}
	if !errors.Is(err, queue.ErrNotFailed) && !errors.Is(err, queue.ErrInvalidName) || !how.allows(name) {
		return about(err, facts{name: name, space: space})
	}
	m := matcher{given: name}
	listErr := eachFailed(ctx, s, queue.FailedOptions{Namespace: space}, func(e queue.Entry) { m.look(e.FailedName) })
	if listErr != nil {
		return listErr
	}
	fit, matchErr := a.short(&m, how, err, "failed name")
	if matchErr != nil {
		return about(matchErr, facts{space: space, run: "holdfast failed ls{space} --dir {dir}"})
	}
	return about(do(fit), facts{name: fit, space: space})
}

func (how shortening) allows(given string) bool {
	return given != "" && (how == forLooks || len(given) >= minShort)
}

// short gives the name that the one given is short for. None: the first answer
// stands.
func (a *app) short(m *matcher, how shortening, first error, what string) (string, error) {
	if how == forChanges && !slices.ContainsFunc(m.fits, generated) {
		return "", first
	}
	name, err := m.one(what)
	switch {
	case errors.Is(err, errNone):
		return "", first
	case err != nil:
		return "", err
	}
	if how == forLooks && name != m.given && !a.json {
		a.note("short", "showing %s, the only %s that fits %q", name, what, m.given)
	}
	return name, nil
}

// generated reports whether a name is an ID as enqueue makes them.
func generated(name string) bool {
	id, err := uuid.Parse(name)
	return err == nil && id.Version() == 7 && id.String() == name
}
