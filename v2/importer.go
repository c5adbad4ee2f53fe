//go:build unix

package holdfast

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"example.com/holdfast/queue"
)

// An ImportToken names one import, for as long as the store remembers it. Its text is 26
// characters of a-z and 2-7. The importer keeps it where it will find it again: only
// under the same token does it go on with what it began.
type ImportToken [16]byte

// NewImportToken makes one from the system's randomness.
func NewImportToken() (t ImportToken) {
	_, _ = rand.Read(t[:]) // ends the program rather than fail
	return t
}

// ParseImportToken reads what [ImportToken.String] writes; anything else is
// queue.ErrInvalid.
func ParseImportToken(s string) (ImportToken, error) {
	t, ok := parseToken(s)
	if !ok || t.zero() {
		return ImportToken{}, fmt.Errorf("%q is no import token: %w", s, queue.ErrInvalid)
	}
	return ImportToken(t), nil
}

func (t ImportToken) String() string { return token(t).String() }

// An ImportedState is where a message stood in the store that it comes from.
type ImportedState int

const (
	ImportedPending ImportedState = iota // it becomes pending
	ImportedClaimed                      // it is delivered again: it becomes a message that was claimed once and released
	ImportedFailed                       // it becomes a failed message of one attempt
)

func (x ImportedState) String() string {
	switch x {
	case ImportedPending:
		return "pending"
	case ImportedClaimed:
		return "claimed"
	case ImportedFailed:
		return "failed"
	}
	return fmt.Sprintf("ImportedState(%d)", int(x))
}

// An Imported is one message that an import brings. An ID may come in each state once: a
// claimed one and a pending one are two messages, of which the claimed one is delivered
// first.
type Imported struct {
	// ID names the message, and a failed one among the failed messages; see
	// [queue.CheckID]. It must be given: by it a repeated Add knows what has come.
	ID string

	Payload []byte // one JSON value, admitted and kept as by Enqueue
	State   ImportedState

	// Time is kept, to the millisecond, as the time of the enqueue; of a failed message
	// as the time of the failure too. From 1970 to 9999. Zero: the time of the Add.
	Time time.Time
}

// An ImportInfo is what the store remembers of an import.
type ImportInfo struct {
	Token  ImportToken
	Queue  string
	Closed bool
}

// An Import brings foreign messages into one queue, over as many calls and processes as
// it takes. From OpenImport until Close the queue refuses every other call that would
// change it, with ErrImporting, and is not complete; so nobody sees half of what is to
// come, and nobody can have claimed what is taken back.
//
// All methods are safe for concurrent use. Each may be called again after any error,
// queue.ErrUncertain and the death of the process included: what has happened does not
// happen twice.
type Import struct {
	s      *Store
	queue  string
	token  token
	closed atomic.Bool
}

// OpenImport opens an import into a queue, which is made if it is new, or goes on with
// the one of this token. On nil that is durable. A token that the store has recorded as
// closed gives an Import that is Closed, and nothing changes.
//
// Refusals: ErrImporting, when another import into the queue is open;
// queue.ErrInvalid, when the token is of an import into another queue;
// queue.ErrFull, in a full state, or when the store remembers 1,024 imports. Other errors
// are those of every call that changes the store.
func (s *Store) OpenImport(ctx context.Context, queueName string, t ImportToken) (*Import, error) {
	if err := queue.CheckQueue(queueName); err != nil {
		return nil, err
	}
	if token(t).zero() {
		return nil, fmt.Errorf("the zero import token: make one: %w", queue.ErrInvalid)
	}
	i := &Import{s: s, queue: queueName, token: token(t)}
	var closed bool
	err := s.submit(ctx, &call{writes: true, grows: true, decide: func(v *view) (err error) {
		closed, err = v.draft.openImport(queueName, i.token)
		return err
	}})
	if err != nil {
		return nil, err
	}
	i.closed.Store(closed)
	return i, nil
}

// Imports gives what the store remembers of imports, in the order of their tokens: those
// that are open, and those that were closed.
func (s *Store) Imports(ctx context.Context) ([]ImportInfo, error) {
	var out []ImportInfo
	err := s.look(ctx, func(v *view) error {
		out = nil
		for _, m := range v.draft.st.imports {
			out = append(out, ImportInfo{ImportToken(m.token), m.queue, !m.open})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Token names the import.
func (i *Import) Token() ImportToken { return ImportToken(i.token) }

// Queue is where it brings its messages.
func (i *Import) Queue() string { return i.queue }

// Closed reports whether the store had recorded the import as closed when it was opened
// here, or Close has done so since: nothing is left to do.
func (i *Import) Closed() bool { return i.closed.Load() }

// Add brings messages, in order, in one commit; those that this import has brought
// before, by ID and state, are skipped, and added counts the others. On nil all of them
// are durable. It costs as many syncs as an EnqueueBatch of them.
//
// A refusal is a *queue.BatchError, and then nothing has changed: queue.ErrInvalid…,
// queue.ErrTooLarge; queue.ErrDuplicate, where something else than this import has
// taken the ID's pending or claimed side; queue.ErrFailedExists, where the failed name is
// taken so; queue.ErrFull. ErrNotImporting says that the import was closed or abandoned.
// Other errors are those of Enqueue.
func (i *Import) Add(ctx context.Context, messages ...Imported) (added int, err error) {
	ms, bytes, objects, err := i.s.admitImported(messages)
	if err != nil || len(ms) == 0 {
		return 0, err
	}
	err = i.s.submit(ctx, &call{
		writes: true, enqueues: true, grows: true, bytes: bytes, objects: objects,
		decide: func(v *view) (err error) {
			added, err = v.draft.importAll(i.token, ms, i.s.opts.MaxStateBytes)
			return err
		},
	})
	if err != nil {
		return 0, err
	}
	return added, nil
}

// admitImported checks everything about messages that does not depend on the state, and
// gives what room their payloads take.
func (s *Store) admitImported(messages []Imported) (ms []imported, bytes int64, objects int, err error) {
	type side struct {
		id    string
		state ImportedState
	}
	sides := make(map[side]bool, len(messages))
	ms = make([]imported, len(messages))
	var refused []queue.Refusal
	for i, m := range messages {
		err := s.checkImported(m)
		if at := (side{m.ID, m.State}); err == nil && sides[at] {
			err = fmt.Errorf("%s comes twice as %s: %w", m.ID, m.State, queue.ErrInvalid)
		} else {
			sides[at] = true
		}
		if err != nil {
			refused = append(refused, queue.Refusal{Index: i, Err: err})
			continue
		}
		ms[i] = imported{id: m.ID, payload: append([]byte(nil), m.Payload...), state: m.State, millis: -1}
		if !m.Time.IsZero() {
			ms[i].millis = m.Time.UnixMilli()
		}
		bytes += int64(len(m.Payload))
		objects += ownObjects(arrival{payload: m.Payload})
	}
	if refused != nil {
		return nil, 0, 0, &queue.BatchError{Refused: refused}
	}
	return ms, bytes, objects, nil
}

func (s *Store) checkImported(m Imported) error {
	if err := queue.CheckID(m.ID); err != nil {
		return err
	}
	if m.State < ImportedPending || m.State > ImportedFailed {
		return fmt.Errorf("%s: %v: %w", m.ID, m.State, queue.ErrInvalid)
	}
	if millis := m.Time.UnixMilli(); !m.Time.IsZero() && (millis < 0 || millis > maxMillis) {
		return fmt.Errorf("%s: its time: from 1970 to 9999: %w", m.ID, queue.ErrInvalid)
	}
	if err := queue.CheckPayload(m.Payload, s.opts.MaxPayloadBytes, s.opts.MaxPayloadDepth); err != nil {
		return fmt.Errorf("%s: %w", m.ID, err)
	}
	return nil
}

// Close ends the import: its messages become like any other, and the queue takes every
// call again. On nil that is durable, and the store remembers the token as closed; to
// close a closed one changes nothing. Refusal: ErrNotImporting, when it was abandoned.
// It works on a full disk.
func (i *Import) Close(ctx context.Context) error {
	err := i.s.submit(ctx, &call{writes: true, settles: true, decide: func(v *view) error {
		return v.draft.closeImport(i.token)
	}})
	if err == nil {
		i.closed.Store(true)
	}
	return err
}

// Abandon takes back everything that the import has brought, and forgets it: nobody can
// have claimed any of it. The counters keep it, as cleared and purged. On nil that is
// durable; to abandon what the store does not remember changes nothing. Refusal:
// ErrNotImporting, when it was closed. It works on a full disk.
func (i *Import) Abandon(ctx context.Context) error {
	return i.s.submit(ctx, &call{writes: true, settles: true, decide: func(v *view) error {
		return v.draft.abandonImport(i.token)
	}})
}
