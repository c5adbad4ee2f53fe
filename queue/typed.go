package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// A Queue is one queue of a store, of messages that are Go values of type T. It
// holds no state of its own: it is made with [New] and copied freely.
//
// A value is written as encoding/json writes it, with <, > and & for themselves.
// With T json.RawMessage the payload is passed byte for byte.
type Queue[T any] struct {
	store Store
	name  string
}

// New gives a typed handle on the named queue. Nothing is checked or made: a name
// that is not acceptable is refused by the first call, and the queue begins with its
// first message.
func New[T any](store Store, name string) Queue[T] { return Queue[T]{store, name} }

// Store gives the store of the queue, to settle what was claimed.
func (q Queue[T]) Store() Store { return q.store }

// Name gives the name of the queue.
func (q Queue[T]) Name() string { return q.name }

// EnqueueOptions shapes the enqueue of a value. Each field is that of [Message].
type EnqueueOptions struct {
	ID        string
	Key       string
	NotBefore time.Time
	IfExists  IfExists
}

// Enqueue accepts one value; see [Store.Enqueue]. A value that encoding/json refuses
// is ErrInvalidPayload.
func (q Queue[T]) Enqueue(ctx context.Context, value T, o EnqueueOptions) (Enqueued, error) {
	m, err := q.Message(value, o)
	if err != nil {
		return Enqueued{}, err
	}
	return q.store.Enqueue(ctx, q.name, m)
}

// EnqueueBatch accepts all the values in one commit or none of them, under IDs that
// are made for them; see [Store.EnqueueBatch].
func (q Queue[T]) EnqueueBatch(ctx context.Context, values []T) ([]Enqueued, error) {
	ms := make([]Message, len(values))
	var refused []Refusal
	for i, v := range values {
		var err error
		if ms[i], err = q.Message(v, EnqueueOptions{}); err != nil {
			refused = append(refused, Refusal{Index: i, Err: err})
		}
	}
	if refused != nil {
		return nil, &BatchError{Refused: refused}
	}
	return q.store.EnqueueBatch(ctx, q.name, ms)
}

// Message gives the message of a value, for a batch or an Update.
func (q Queue[T]) Message(value T, o EnqueueOptions) (Message, error) {
	payload, err := encode(value)
	if err != nil {
		return Message{}, fmt.Errorf("%w: %w", ErrInvalidPayload, err)
	}
	return Message{ID: o.ID, Payload: payload, Key: o.Key, NotBefore: o.NotBefore, IfExists: o.IfExists}, nil
}

// encode gives the payload of a value.
func encode(value any) ([]byte, error) {
	if raw, ok := value.(json.RawMessage); ok {
		return raw, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// A Received is a delivery with its payload decoded.
type Received[T any] struct {
	Delivery
	Value T
}

// A Batch is the result of a typed claim. All lists empty: nothing is due.
type Batch[T any] struct {
	Received []Received[T]
	Damaged  []*DamagedError // as in Claimed

	// Undecodable lists messages whose payload is no T. Each was moved to failed, its
	// bytes kept and the fault as its last error, unless Unfailed says why not.
	Undecodable []*DecodeError
}

// Claim leases the oldest due messages and decodes them; see [Store.Claim]. A
// message that does not decode fails at once: no later attempt could do better.
func (q Queue[T]) Claim(ctx context.Context, o ClaimOptions) (Batch[T], error) {
	claimed, err := q.store.Claim(ctx, q.name, o)
	if err != nil {
		return Batch[T]{}, err
	}
	b := Batch[T]{Damaged: claimed.Damaged}
	for _, d := range claimed.Deliveries {
		value, err := q.Decode(d)
		if err == nil {
			b.Received = append(b.Received, Received[T]{d, value})
			continue
		}
		fault := err.(*DecodeError)
		// Not with the caller's context: it may end here, and the fault stays known.
		returned, err := q.store.Retry(context.WithoutCancel(ctx), d.Receipt, RetryOptions{MaxFailures: 1, Cause: fault.Error()})
		fault.FailedName, fault.Unfailed = returned.FailedName, err
		b.Undecodable = append(b.Undecodable, fault)
	}
	return b, nil
}

// Decode gives the value of a delivery's payload. The error is a *DecodeError.
func (q Queue[T]) Decode(d Delivery) (T, error) {
	var value T
	if raw, ok := any(&value).(*json.RawMessage); ok {
		*raw = d.Payload
		return value, nil
	}
	if err := json.Unmarshal(d.Payload, &value); err != nil {
		return value, &DecodeError{Receipt: d.Receipt, Type: reflect.TypeFor[T]().String(), Err: err}
	}
	return value, nil
}

// A DecodeError says that a payload is not of the type that its queue is read as.
type DecodeError struct {
	Receipt    Receipt
	Type       string // the Go type
	FailedName string // under which the message is kept now; empty: it was not moved
	Unfailed   error  // why it could not be moved; the claim stands then
	Err        error  // what encoding/json said
}

func (e *DecodeError) Error() string {
	why := fmt.Sprint(e.Err)
	var mismatch *json.UnmarshalTypeError
	if errors.As(e.Err, &mismatch) { // its own text may hold a number of the payload
		what, _, _ := strings.Cut(mismatch.Value, " ")
		why = fmt.Sprintf("%s at byte %d, want %s", what, mismatch.Offset, mismatch.Type)
		if mismatch.Field != "" {
			why = fmt.Sprintf("%s for field %s", why, mismatch.Field)
		}
	}
	return fmt.Sprintf("%s/%s: the payload does not decode as %s: %s", e.Receipt.Queue, e.Receipt.ID, e.Type, why)
}

func (e *DecodeError) Unwrap() error { return e.Err }
