//go:build unix

package web

import (
	"context"
	"net"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
	"example.com/holdfast/queue/memory"
)

// A pipeListener lets a test connect without a network, in a bubble.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipeListener() *pipeListener {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (l *pipeListener) Close() error {
	l.close()
	return nil
}

// connect gives a connection once the server has taken it.
func (l *pipeListener) connect() net.Conn {
	ours, theirs := net.Pipe()
	l.conns <- theirs
	return ours
}

// Who connects beyond the bound is let in when another has gone.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{Store: &webStore{Store: memory.New(nil)}, Token: webToken, Classify: webClassify, MaxConnections: 2})
		l := newPipeListener()
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Serve(ctx, l) }()
		first, second := l.connect(), l.connect()
		third := make(chan net.Conn, 1)
		go func() { third <- l.connect() }()
		if synctest.Wait(); len(third) > 0 {
			t.Error("a third is in beside two")
		}
		first.Close()
		if synctest.Wait(); len(third) == 0 {
			t.Error("it is not let in when the first has gone")
		}
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		second.Close()
		(<-third).Close()
	})
}

// Claims that wait leave half of the connections to others. One beyond the bound is told
// so, unless something is due.
func TestWaitsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &webStore{Store: memory.New(nil)}
		s := &webScene{t, store, New(Config{Store: store, Token: webToken, Classify: webClassify, MaxConnections: 4})}
		const waits = `{"queue":"mail","lease_ms":60000,"wait_ms":25000}`
		answers := make(chan string, 2)
		for range 2 {
			go func() { answers <- second(s.post("/v1/claim", waits)) }()
		}
		synctest.Wait()

		w := httptest.NewRecorder()
		s.ServeHTTP(w, request("POST", "/v1/claim", waits))
		refused(t, w.Code, w.Body.String(), 503, "too_many_waits")
		if got := w.Header().Get("Retry-After"); got != "1" {
			t.Errorf("Retry-After is %q", got)
		}
		if got := must[claimedLine](t, 200, second(s.post("/v1/claim", `{"queue":"mail","lease_ms":60000}`))); len(got.Deliveries) != 0 {
			t.Errorf("without waiting: %+v", got)
		}
		_, _ = s.post("/v1/enqueue", `{"queue":"other","payload":1}`)
		got := must[claimedLine](t, 200, second(s.post("/v1/claim", `{"queue":"other","lease_ms":60000,"wait_ms":25000}`)))
		if len(got.Deliveries) != 1 {
			t.Fatalf("what is due: %+v", got)
		}
		must[nothing](t, 200, second(s.post("/v1/ack", `{"receipt":"`+got.Deliveries[0].Receipt+`"}`)))

		for range 2 {
			must[claimedLine](t, 200, <-answers) // their time is over
		}
		must[claimedLine](t, 200, second(s.post("/v1/claim", waits)))
	})
}

// A claim answers as many payloads as have 16 MiB together, and leaves the others to the
// next.
func TestTheAnswerOfAClaimIsBounded(t *testing.T) {
	s := newScene(t)
	s.store.claims = func(o queue.ClaimOptions) queue.ClaimOptions {
		o.MaxBytes /= 1 << 20 // of a payload of 6 bytes for one of 6 MiB
		return o
	}
	for _, id := range []string{"a", "b", "c"} {
		must[forms.Enqueued](t, 200, second(s.post("/v1/enqueue", `{"queue":"mail","id":"`+id+`","payload":"four"}`)))
	}
	for _, want := range []int{2, 1, 0} {
		got := must[claimedLine](t, 200, second(s.post("/v1/claim", `{"queue":"mail","lease_ms":60000,"max":100}`)))
		if len(got.Deliveries) != want {
			t.Errorf("%d were claimed, want %d", len(got.Deliveries), want)
		}
	}
}

// Only who shows the token keeps its connection.
func TestWhoKeepsItsConnection(t *testing.T) {
	s := newScene(t)
	for _, c := range []struct{ path, token, want string }{
		{"/v1/status", webToken, ""}, {"/metrics", webToken, ""},
		{"/v1/status", "another", "close"}, {"/metrics", "another", "close"}, {"/", "", "close"}, {"/page.js", "", "close"},
		{"/openapi.json", "", "close"}, {"/none", "", "close"},
	} {
		r := request("GET", c.path, "")
		r.Header.Set("Authorization", "Bearer "+c.token)
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Header().Get("Connection") != c.want {
			t.Errorf("%s with %q: Connection is %q, want %q", c.path, c.token, w.Header().Get("Connection"), c.want)
		}
	}
}
