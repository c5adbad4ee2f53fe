//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"slices"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// Imports, in the ledger and as calls on both sides.

// modelImports are the tokens that a run may use: few, so that they meet.
var modelImports = []token{namedToken("import 1"), namedToken("import 2"), namedToken("import 3")}

func (l *ledger) importing(name string) bool {
	for _, m := range l.imports {
		if m.open && m.queue == name {
			return true
		}
	}
	return false
}

// refusal is what meets whatever would change a queue, or nil.
func (l *ledger) refusal(name string) error {
	if l.importing(name) {
		return ErrImporting
	}
	return nil
}

func (l *ledger) openImport(name string, t token) (closed bool, err error) {
	if m, known := l.imports[t]; known {
		if m.queue != name {
			return false, queue.ErrInvalid
		}
		return !m.open, nil
	}
	if l.importing(name) {
		return false, ErrImporting
	}
	l.imports[t] = ledgerImport{name, true}
	return false, nil
}

// bring takes one message, or nothing when this import has brought it; the caller fills
// in the generation.
func (l *ledger) bring(t token, x imported, now instant) (*ledgerMessage, error) {
	q := l.queues[l.imports[t].queue]
	name := ledgerName{q.space, x.id}
	there, refusal := q.of(x.id, x.state == ImportedClaimed), queue.ErrDuplicate
	if x.state == ImportedFailed {
		there, refusal = l.failed[name], queue.ErrFailedExists
	}
	if there != nil {
		if there.by == t {
			return nil, nil
		}
		return nil, refusal
	}
	m := &ledgerMessage{queue: q.name, id: x.id, payload: string(x.payload), place: q.places, enqueued: x.millis, by: t}
	if x.millis < 0 {
		m.enqueued = now.Wall.UnixMilli()
	}
	q.places++
	q.counted.Enqueued++
	if x.state != ImportedPending {
		m.attempts = 1
		q.counted.Claimed++
	}
	switch x.state {
	case ImportedClaimed:
		m.stage, m.excused = stageReleased, 1
		q.counted.Released++
	case ImportedFailed:
		m.failedAt, m.lastError = m.enqueued, importedError
		q.counted.Failed++
		l.failed[name] = m
		return m, nil
	}
	q.live = append(q.live, m)
	return m, nil
}

func (l *ledger) closeImport(t token) error {
	m, known := l.imports[t]
	if !known {
		return ErrNotImporting
	}
	for _, w := range l.byGeneration() {
		if w.by == t {
			w.by = token{}
		}
	}
	l.imports[t] = ledgerImport{m.queue, false}
	return nil
}

func (l *ledger) abandonImport(t token) error {
	m, known := l.imports[t]
	switch {
	case !known:
		return nil
	case !m.open:
		return ErrNotImporting
	}
	q := l.queues[m.queue]
	for _, w := range slices.Clone(q.live) {
		if w.by == t {
			q.remove(w)
			q.counted.Cleared++
		}
	}
	for name, w := range l.failed {
		if w.by == t {
			delete(l.failed, name)
			q.counted.Purged++
		}
	}
	delete(l.imports, t)
	return nil
}

// importToken draws one, mostly of an open import.
func (m *modelRun) importToken() token {
	var open []token
	for _, t := range modelImports {
		if m.want.imports[t].open {
			open = append(open, t)
		}
	}
	if open == nil || rapid.IntRange(0, 4).Draw(m.t, "any import") == 0 {
		return rapid.SampledFrom(modelImports).Draw(m.t, "import")
	}
	return rapid.SampledFrom(open).Draw(m.t, "open import")
}

func (m *modelRun) openOne() {
	name, t := m.queueName(), rapid.SampledFrom(modelImports).Draw(m.t, "import")
	closed, err := m.openImport(name, t)
	wantClosed, wantErr := m.want.openImport(name, t)
	if m.is(err, wantErr); closed != wantClosed {
		m.Fatalf("import %s is closed: %v, want %v", t, closed, wantClosed)
	}
}

func (m *modelRun) importSome() {
	t := m.importToken()
	xs := make([]imported, rapid.IntRange(1, 4).Draw(m.t, "messages"))
	for i := range xs {
		xs[i] = imported{
			id: m.id(), payload: []byte(m.payload()),
			state:  rapid.SampledFrom([]ImportedState{ImportedPending, ImportedClaimed, ImportedFailed}).Draw(m.t, "was"),
			millis: rapid.SampledFrom([]int64{-1, 0, 1_700_000_000_000}).Draw(m.t, "of"),
		}
	}
	m.open() // decided at the draft's time
	added, err := m.importAll(t, xs...)
	if !m.want.imports[t].open {
		m.is(err, ErrNotImporting)
		return
	}
	before, generations := m.want.clone(), m.generations()
	var refused []int
	var brought []*ledgerMessage
	for i, x := range xs {
		w, wantErr := m.want.bring(t, x, m.at())
		if wantErr != nil {
			refused = append(refused, i)
		} else if w != nil {
			w.gen = fmt.Sprint("brought ", i) // until it is known
			brought = append(brought, w)
		}
	}
	if refused != nil {
		m.want = before
		var batch *queue.BatchError
		if !errors.As(err, &batch) || len(batch.Refused) != len(refused) {
			m.Fatalf("got %v, want the refusals %v", err, refused)
		}
		for i, x := range batch.Refused {
			if x.Index != refused[i] {
				m.Fatalf("got %v, want the refusals %v", err, refused)
			}
		}
		return
	}
	if m.is(err, nil); added != len(brought) {
		m.Fatalf("added %d, want %d", added, len(brought))
	}
	m.name(brought, generations)
}

// generations gives those that are known.
func (m *modelRun) generations() map[string]bool {
	known := map[string]bool{}
	for gen := range m.want.byGeneration() {
		known[gen] = true
	}
	return known
}

// name finds the generations of what was brought: those that were not there before, in
// the order of their places.
func (m *modelRun) name(brought []*ledgerMessage, known map[string]bool) {
	var fresh []*ref
	m.st().refs(func(_, _ string, r *ref) bool {
		if !known[r.gen.String()] {
			fresh = append(fresh, r)
		}
		return true
	})
	if len(fresh) != len(brought) {
		m.Fatalf("%d messages are new, want %d", len(fresh), len(brought))
	}
	slices.SortFunc(fresh, func(a, b *ref) int { return int(int64(a.seq) - int64(b.seq)) })
	for i, r := range fresh {
		brought[i].gen = r.gen.String()
		m.gens = append(m.gens, brought[i].gen)
	}
}

func (m *modelRun) closeOne() {
	t := m.importToken()
	m.is(m.closeImport(t), m.want.closeImport(t))
}

func (m *modelRun) abandonOne() {
	t := m.importToken()
	m.is(m.abandonImport(t), m.want.abandonImport(t))
}

// seeImports compares what is remembered of imports, and the marks of the open ones.
func (m *modelRun) seeImports(st *state) {
	if len(st.imports) != len(m.want.imports) {
		m.Fatalf("remembered %+v, want %+v", st.imports, m.want.imports)
	}
	for _, got := range st.imports {
		if want := m.want.imports[got.token]; want != (ledgerImport{got.queue, got.open}) {
			m.Fatalf("remembered %+v, want %+v", got, want)
		}
	}
	want := m.want.byGeneration()
	st.refs(func(_, _ string, r *ref) bool {
		if w := want[r.gen.String()]; w == nil || w.by != r.mark {
			m.Fatalf("%s is marked %s, want %+v", r.gen, r.mark, w)
		}
		return true
	})
}
