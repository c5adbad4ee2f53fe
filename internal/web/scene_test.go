//go:build unix

package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
	"example.com/holdfast/queue/memory"
)

const webToken = "a-token-of-the-tests-0123456789"

// A webStore is a store in memory that a test may put its own answers in front of.
type webStore struct {
	queue.Store
	stats   holdfast.Stats
	refuse  error                                           // what every change of a message answers
	claims  func(queue.ClaimOptions) queue.ClaimOptions     // changes what is asked for; nil: it does not
	leave   func()                                          // is called when something was claimed
	resolve func(*queue.UncertainError) (bool, error)       // nil: it must not be asked
	acks    func(ctx context.Context) error                 // comes before an ack; nil: nothing does
	waits   func(ctx context.Context, q ...string) error    // nil: the store's own
	status  func(queue.StatusOptions) (queue.Status, error) // nil: the store's own
}

func (*webStore) ID() string { return "teststore" }

func (s *webStore) Stats() holdfast.Stats { return s.stats }

func (s *webStore) Resolve(_ context.Context, u *queue.UncertainError) (bool, error) {
	return s.resolve(u)
}

func (s *webStore) Enqueue(ctx context.Context, q string, m queue.Message) (queue.Enqueued, error) {
	if s.refuse != nil {
		return queue.Enqueued{}, s.refuse
	}
	return s.Store.Enqueue(ctx, q, m)
}

func (s *webStore) Claim(ctx context.Context, q string, o queue.ClaimOptions) (queue.Claimed, error) {
	if s.refuse != nil {
		return queue.Claimed{}, s.refuse
	}
	if s.leave != nil {
		defer s.leave()
	}
	if s.claims != nil {
		o = s.claims(o)
	}
	return s.Store.Claim(ctx, q, o)
}

func (s *webStore) Load(ctx context.Context, q, id string, o queue.LoadOptions) (queue.Delivery, error) {
	if s.leave != nil {
		defer s.leave()
	}
	return s.Store.Load(ctx, q, id, o)
}

func (s *webStore) Ack(ctx context.Context, r queue.Receipt) error {
	if s.acks != nil {
		if err := s.acks(ctx); err != nil {
			return err
		}
	}
	return s.Store.Ack(ctx, r)
}

func (s *webStore) WaitDue(ctx context.Context, queues ...string) error {
	if s.waits != nil {
		return s.waits(ctx, queues...)
	}
	return s.Store.WaitDue(ctx, queues...)
}

func (s *webStore) Status(ctx context.Context, o queue.StatusOptions) (queue.Status, error) {
	if s.status != nil {
		return s.status(o)
	}
	return s.Store.Status(ctx, o)
}

// A webScene is a server and its store.
type webScene struct {
	t     *testing.T
	store *webStore
	*Server
}

func newScene(t *testing.T) *webScene {
	store := &webStore{Store: memory.New(nil)}
	return &webScene{t, store, New(Config{Store: store, Token: webToken, Classify: webClassify})}
}

// webClassify stands for the command's table, whose own test holds it to the errors.
func webClassify(err error) (string, int) {
	for _, k := range []struct {
		err  error
		code string
		exit int
	}{
		{queue.ErrUncertain, "uncertain", 3}, {holdfast.ErrStaleLock, "stale_lock", 3},
		{queue.ErrInvalidName, "invalid_name", 2}, {queue.ErrInvalidPayload, "invalid_payload", 2},
		{queue.ErrInvalidReceipt, "invalid_receipt", 2}, {queue.ErrTooLarge, "too_large", 2}, {queue.ErrInvalid, "invalid", 2},
		{queue.ErrDuplicate, "duplicate", 5}, {queue.ErrFull, "full", 5}, {queue.ErrNotFound, "not_found", 1},
		{queue.ErrLeased, "leased", 5}, {queue.ErrDamaged, "damaged", 5}, {queue.ErrStale, "stale", 5}, {queue.ErrGone, "gone", 5},
		{queue.ErrFailedExists, "failed_exists", 5}, {queue.ErrNotFailed, "not_failed", 1}, {queue.ErrClosed, "closed", 4},
		{context.DeadlineExceeded, "timed_out", 1},
	} {
		if errors.Is(err, k.err) {
			return k.code, k.exit
		}
	}
	return "io", 4
}

// request makes a request as a client with the token makes it.
func request(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:7340"
	r.Header.Set("Authorization", "Bearer "+webToken)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func (s *webScene) send(r *http.Request) (status int, body string) {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return w.Code, string(text)
}

func (s *webScene) post(path, body string) (int, string) {
	s.t.Helper()
	return s.send(request("POST", path, body))
}

func (s *webScene) get(path string) (int, string) {
	s.t.Helper()
	return s.send(request("GET", path, ""))
}

// must gives the answer of a call that succeeds.
func must[T any](t *testing.T, status int, body string) (v T) {
	t.Helper()
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return v
}

// refused checks the status and the code of a call that is refused.
func refused(t *testing.T, status int, body string, wantStatus int, wantCode string) (l errorLine) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &l); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if status != wantStatus || l.Code != wantCode || l.Error == "" {
		t.Errorf("got %d %s, want %d %s", status, body, wantStatus, wantCode)
	}
	return l
}
