//go:build unix

package web

import (
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"example.com/holdfast/internal/forms"
)

// A call may take as long as the page says, and no bound of another part of the request
// ends it before: a client that waits for it is there.
func TestASlowStoreIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		takes  time.Duration
		status int
		code   string
	}{{answerWithin - time.Second, 200, ""}, {answerWithin + time.Second, 503, "timed_out"}} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t)
			must[forms.Enqueued](t, 200, second(s.post("/v1/enqueue", `{"queue":"mail","id":"a","payload":1}`)))
			d := must[claimedLine](t, 200, second(s.post("/v1/claim", `{"queue":"mail","lease_ms":600000}`))).Deliveries[0]
			s.store.acks = func(ctx context.Context) error {
				select {
				case <-time.After(c.takes):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			l := newPipeListener()
			ctx, end := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- s.Serve(ctx, l) }()
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
				DialContext: func(context.Context, string, string) (net.Conn, error) { return l.connect(), nil }}}
			status, body := fetch(t, client, request("POST", "/v1/ack", `{"receipt":"`+d.Receipt+`"}`))
			if c.status == 200 {
				must[nothing](t, status, body)
			} else {
				refused(t, status, body, c.status, c.code)
			}
			end()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
