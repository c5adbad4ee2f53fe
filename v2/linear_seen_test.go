//go:build unix

package holdfast

import (
	"context"
	"testing"

	"example.com/holdfast/internal/history"
	"example.com/holdfast/queue"
)

// The names by which lock_test.go and main_test.go know the steps of package history
// and its model.

type seqStep = history.Step

type seqAnswer struct {
	history.Answer
	Receipts []string
}

func perform(ctx context.Context, s *Store, st seqStep) (seqAnswer, error) {
	a, err := linPerform(ctx, s, st)
	return seqAnswer{a, a.Receipts()}, err
}

// A seqModel is what one queue must be, and what can be seen of it.
type seqModel struct {
	live   []seqSlot // in order of sequence
	failed []string  // names, sorted
	c      queue.Counters

	model *history.Model
}

type seqSlot struct {
	id, gen  string
	attempts uint64
	how      string // pending, leased, and how it came back
}

// A seqWant is what a step must answer.
type seqWant struct {
	history.Answer
	agreed bool
}

func (m *seqModel) apply(st seqStep, got *seqAnswer) seqWant {
	if m.model == nil {
		m.model = &history.Model{Timeless: true}
	}
	want, ok := m.model.Apply(st, &got.Answer)
	return seqWant{want, ok}
}

func (w seqWant) agrees(seqAnswer, bool) bool { return w.agreed }

func (m *seqModel) settle(t testing.TB, s *Store, name string, open *seqStep) (happened bool) {
	t.Helper()
	seen(t, s, name) // which reads the payloads
	m.model, happened = settled(t, m.model, s, []string{name}, open)
	return happened
}
