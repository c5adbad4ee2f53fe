//go:build unix

package web

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
	"example.com/holdfast/queue/memory"
)

// An unsure store answers one call as v2 does when the last sync of its commit fails.
type unsure struct {
	queue.Store
	at      string // the call; empty: none
	happens bool   // the commit survived
}

// unsurely does the call, or seems to, and tells what it returns as a commit that may have
// happened or not.
func unsurely[T any](u *unsure, at string, do func() (T, error), told func(*queue.UncertainError, T)) (out T, err error) {
	if u.at != at {
		return do()
	}
	u.at = ""
	e := &queue.UncertainError{Revision: 7, Err: syscall.EIO}
	if u.happens {
		if out, err = do(); err != nil {
			return out, err
		}
		told(e, out)
	}
	var none T
	return none, e
}

func untold(*queue.UncertainError, nothing) {}

func (u *unsure) Enqueue(ctx context.Context, q string, m queue.Message) (queue.Enqueued, error) {
	return unsurely(u, "enqueue", func() (queue.Enqueued, error) { return u.Store.Enqueue(ctx, q, m) },
		func(e *queue.UncertainError, out queue.Enqueued) { e.Enqueued = []queue.Enqueued{out} })
}

func (u *unsure) EnqueueBatch(ctx context.Context, q string, ms []queue.Message) ([]queue.Enqueued, error) {
	return unsurely(u, "enqueue-batch", func() ([]queue.Enqueued, error) { return u.Store.EnqueueBatch(ctx, q, ms) },
		func(e *queue.UncertainError, out []queue.Enqueued) { e.Enqueued = out })
}

func (u *unsure) Claim(ctx context.Context, q string, o queue.ClaimOptions) (queue.Claimed, error) {
	return unsurely(u, "claim", func() (queue.Claimed, error) { return u.Store.Claim(ctx, q, o) },
		func(e *queue.UncertainError, out queue.Claimed) { e.Deliveries = out.Deliveries })
}

func (u *unsure) Load(ctx context.Context, q, id string, o queue.LoadOptions) (queue.Delivery, error) {
	return unsurely(u, "load", func() (queue.Delivery, error) { return u.Store.Load(ctx, q, id, o) },
		func(e *queue.UncertainError, out queue.Delivery) { e.Deliveries = []queue.Delivery{out} })
}

func (u *unsure) Ack(ctx context.Context, r queue.Receipt) error {
	_, err := unsurely(u, "ack", func() (nothing, error) { return nothing{}, u.Store.Ack(ctx, r) }, untold)
	return err
}

func (u *unsure) Release(ctx context.Context, r queue.Receipt, o queue.ReleaseOptions) error {
	_, err := unsurely(u, "release", func() (nothing, error) { return nothing{}, u.Store.Release(ctx, r, o) }, untold)
	return err
}

func (u *unsure) Retry(ctx context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
	return unsurely(u, "retry", func() (queue.Returned, error) { return u.Store.Retry(ctx, r, o) },
		func(e *queue.UncertainError, out queue.Returned) { e.Returned = []queue.Returned{out} })
}

func (u *unsure) Extend(ctx context.Context, r queue.Receipt, lease time.Duration) (time.Time, error) {
	return unsurely(u, "extend", func() (time.Time, error) { return u.Store.Extend(ctx, r, lease) },
		func(e *queue.UncertainError, out time.Time) { e.Deadline = out })
}

func (u *unsure) Fail(ctx context.Context, r queue.Receipt, o queue.FailOptions) (string, error) {
	return unsurely(u, "fail", func() (string, error) { return u.Store.Fail(ctx, r, o) },
		func(e *queue.UncertainError, out string) { e.Failed = out })
}

func (u *unsure) Reap(ctx context.Context, o queue.ReapOptions) ([]queue.Returned, error) {
	return unsurely(u, "reap", func() ([]queue.Returned, error) { return u.Store.Reap(ctx, o) },
		func(e *queue.UncertainError, out []queue.Returned) { e.Returned = out })
}

func (u *unsure) Reprocess(ctx context.Context, name string, o queue.ReprocessOptions) error {
	_, err := unsurely(u, "reprocess", func() (nothing, error) { return nothing{}, u.Store.Reprocess(ctx, name, o) }, untold)
	return err
}

func (u *unsure) Purge(ctx context.Context, name string, o queue.PurgeOptions) error {
	_, err := unsurely(u, "purge", func() (nothing, error) { return nothing{}, u.Store.Purge(ctx, name, o) }, untold)
	return err
}

func (u *unsure) Pause(ctx context.Context, q string) error {
	_, err := unsurely(u, "pause", func() (nothing, error) { return nothing{}, u.Store.Pause(ctx, q) }, untold)
	return err
}

func (u *unsure) Resume(ctx context.Context, q string) error {
	_, err := unsurely(u, "resume", func() (nothing, error) { return nothing{}, u.Store.Resume(ctx, q) }, untold)
	return err
}

// uncertainCalls are all that change something. Before each the message a is pending,
// claimed (by RECEIPT) or failed.
var uncertainCalls = []struct {
	at, before, body string
	done             string // is in the answer of a call that happened
	again            string // what the same request answers when it had happened: a code, or what is in the answer
	status           int    // of that
}{
	{"enqueue", "", `{"queue":"mail","id":"a","payload":1,"if_exists":"keep"}`, `"id":"a","generation":"`, `"kept":true`, 200},
	{"enqueue-batch", "", `{"queue":"mail","messages":[{"id":"a","payload":1,"if_exists":"keep"}]}`, `"id":"a","generation":"`, `"kept":true`, 200},
	{"claim", "pending", `{"queue":"mail","lease_ms":60000}`, `"attempt":1`, `"deliveries":[]`, 200},
	{"load", "pending", `{"queue":"mail","id":"a","lease_ms":60000}`, `"attempt":1`, "leased", 409},
	{"ack", "claimed", `{"receipt":"RECEIPT"}`, `{}`, "gone", 409},
	{"release", "claimed", `{"receipt":"RECEIPT"}`, `{}`, "stale", 409},
	{"retry", "claimed", `{"receipt":"RECEIPT"}`, `"result":"returned"`, "stale", 409},
	{"retry", "claimed", `{"receipt":"RECEIPT","max_failures":1}`, `"result":"failed"`, "gone", 409},
	{"fail", "claimed", `{"receipt":"RECEIPT"}`, `"failed_name":"a"`, "gone", 409},
	{"extend", "claimed", `{"receipt":"RECEIPT","lease_ms":60000}`, `"deadline":"2`, `"deadline":"2`, 200},
	{"reap", "claimed", `{"receipt":"RECEIPT"}`, `"cause":"operator"`, "stale", 409},
	{"reprocess", "failed", `{"failed_name":"a"}`, `{}`, "not_failed", 404},
	{"purge", "failed", `{"failed_name":"a"}`, `{}`, "not_failed", 404},
	{"pause", "pending", `{"queue":"mail"}`, `{}`, `{}`, 200},
	{"resume", "pending", `{"queue":"mail"}`, `{}`, `{}`, 200},
}

// A call whose commit is uncertain is answered as docs/serve.md says, and what that tells a
// client to do leads on, whether it had happened or not.
func TestUncertainCalls(t *testing.T) {
	for _, c := range uncertainCalls {
		for _, happens := range []bool{true, false} {
			name := c.at + " happened"
			if !happens {
				name = c.at + " did not happen"
			}
			t.Run(name, func(t *testing.T) {
				s := newScene(t)
				store := &unsure{Store: memory.New(nil)}
				s.store.Store = store
				body := s.before(c.before, c.body)
				path := "/v1/" + c.at

				// The store knows.
				store.at, store.happens = c.at, happens
				s.store.resolve = func(*queue.UncertainError) (bool, error) { return happens, nil }
				status, text := s.post(path, body)
				if !happens {
					if l := refused(t, status, text, 500, "io"); !strings.HasPrefix(l.Error, "nothing happened") || l.Uncertain {
						t.Errorf("told as %s", text)
					}
				} else if status != 200 || !strings.Contains(text, c.done) {
					t.Errorf("got %d %s, want %s in it", status, text, c.done)
				}

				// Nobody knows until the operator has recovered the store. Then it is asked again.
				s = newScene(t)
				store = &unsure{Store: memory.New(nil)}
				s.store.Store = store
				body = s.before(c.before, c.body)
				store.at, store.happens = c.at, happens
				s.store.resolve = func(*queue.UncertainError) (bool, error) { return false, holdfast.ErrUnresolved }
				status, text = s.post(path, body)
				if l := refused(t, status, text, 503, "uncertain"); !l.Uncertain || l.Revision != 7 || strings.Contains(text, `"receipt"`) {
					t.Errorf("told as %s", text)
				}
				status, text = s.post(path, body)
				if happens && c.status != 200 {
					refused(t, status, text, c.status, c.again)
					return
				}
				want := c.done
				if happens {
					want = c.again
				}
				if status != 200 || !strings.Contains(text, want) {
					t.Errorf("asked again it answers %d %s, want %s in it", status, text, want)
				}
			})
		}
	}
}

// before puts the message a into a state, and gives the body with its receipt.
func (s *webScene) before(state, body string) string {
	s.t.Helper()
	if state == "" {
		return body
	}
	must[forms.Enqueued](s.t, 200, second(s.post("/v1/enqueue", `{"queue":"mail","id":"a","payload":1}`)))
	if state == "pending" {
		return body
	}
	d := must[claimedLine](s.t, 200, second(s.post("/v1/claim", `{"queue":"mail","lease_ms":60000}`))).Deliveries[0]
	if state == "failed" {
		must[failOut](s.t, 200, second(s.post("/v1/fail", `{"receipt":"`+d.Receipt+`"}`)))
	}
	return strings.ReplaceAll(body, "RECEIPT", d.Receipt)
}
