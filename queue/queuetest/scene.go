package queuetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// A scene is one store under test and the calls that a subtest makes of it. Its
// methods end the subtest on an error; a call that must be refused is made of the
// Store itself.
type scene struct {
	*testing.T
	Engine
	ctx    context.Context
	spaces map[string]bool // the failed namespaces that were used
	shut   bool            // the store was closed
}

// The queues and the lease of most subtests.
const (
	mail   = "mail"
	spool  = "spool/out"
	desk   = "desk"
	minute = time.Minute
)

// A with changes a message before it is enqueued.
type with func(m *queue.Message)

func key(k string) with           { return func(m *queue.Message) { m.Key = k } }
func at(t time.Time) with         { return func(m *queue.Message) { m.NotBefore = t } }
func how(x queue.IfExists) with   { return func(m *queue.Message) { m.IfExists = x } }
func holding(payload string) with { return func(m *queue.Message) { m.Payload = []byte(payload) } }

// after is due that long from now.
func (s *scene) after(d time.Duration) with { return at(s.Now().Add(d)) }

func message(id string, withs ...with) queue.Message {
	m := queue.Message{ID: id, Payload: payloadOf(id)}
	for _, w := range withs {
		w(&m)
	}
	return m
}

// payloadOf is the payload of a message that needs none in particular.
func payloadOf(id string) []byte { return fmt.Appendf(nil, `{"id":%q}`, id) }

func (s *scene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// is checks an error; want nil: none.
func (s *scene) is(err, want error) {
	s.Helper()
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		s.Fatalf("got error %v, want %v", err, want)
	}
}

// equal checks a value.
func equal[T comparable](s *scene, what string, got, want T) {
	s.Helper()
	if got != want {
		s.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// sameTime checks a time to the millisecond; both zero is equal too.
func (s *scene) sameTime(what string, got, want time.Time) {
	s.Helper()
	if got.IsZero() != want.IsZero() || !got.IsZero() && got.UnixMilli() != want.UnixMilli() {
		s.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// refuses makes a call that must be refused and change nothing.
func (s *scene) refuses(want error, call func() error) error {
	s.Helper()
	before := s.look()
	err := call()
	s.is(err, want)
	s.unchanged(before)
	return err
}

// lost checks the refusal of a receipt, its facts included.
func (s *scene) lost(err error, r queue.Receipt, want error, current uint64) {
	s.Helper()
	var lost *queue.LostError
	if s.is(err, want); !errors.Is(err, queue.ErrLost) || !errors.As(err, &lost) {
		s.Fatalf("got error %v (%[1]T), want a *queue.LostError", err)
	}
	if lost.Queue != r.Queue || lost.ID != r.ID || lost.Attempt != r.Attempt || lost.Current != current || lost.Reason == "" {
		s.Fatalf("got %+v for %s, want current attempt %d and a reason", *lost, r, current)
	}
	if other := map[error]error{queue.ErrStale: queue.ErrGone, queue.ErrGone: queue.ErrStale}[want]; errors.Is(err, other) {
		s.Fatalf("got error %v, which is %v as well as %v", err, want, other)
	}
}

// loses makes a call whose receipt must be refused and that must change nothing.
func (s *scene) loses(r queue.Receipt, want error, current uint64, call func() error) {
	s.Helper()
	s.lost(s.refuses(want, call), r, want, current)
}

// ids names deliveries in their order.
func ids(ds []queue.Delivery) string {
	var names []string
	for _, d := range ds {
		names = append(names, d.Receipt.ID)
	}
	return strings.Join(names, " ")
}

// idsOf names entries in their order.
func idsOf(es []queue.Entry) string {
	var names []string
	for _, e := range es {
		names = append(names, e.ID)
	}
	return strings.Join(names, " ")
}
