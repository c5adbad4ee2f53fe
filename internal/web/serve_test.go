//go:build unix

package web

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// serving runs the scene's server on a listener, and gives a client and what ends it.
func (s *webScene) serving(l net.Listener) (client *http.Client, end func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, l.Addr().Network(), l.Addr().String())
	}}
	end = func() error {
		transport.CloseIdleConnections()
		cancel()
		return <-ended
	}
	return &http.Client{Transport: transport}, end
}

func fetch(t *testing.T, c *http.Client, r *http.Request) (int, string) {
	t.Helper()
	r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", r.Host
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() // only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// On its end the server answers who waits, and then is gone.
func TestServeEnds(t *testing.T) {
	for name, listen := range map[string]func(t *testing.T) (net.Listener, error){
		"tcp":  func(*testing.T) (net.Listener, error) { return Listen("127.0.0.1:0") },
		"unix": func(t *testing.T) (net.Listener, error) { return ListenUnix(filepath.Join(t.TempDir(), "s")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			waits := make(chan struct{})
			s.store.waits = func(ctx context.Context, q ...string) error {
				close(waits)
				return s.store.Store.WaitDue(ctx, q...)
			}
			l, err := listen(t)
			if err != nil {
				t.Fatal(err)
			}
			client, end := s.serving(l)
			type answer struct {
				status int
				body   string
			}
			waiter := make(chan answer, 1)
			go func() {
				status, body := fetch(t, client, request("POST", "/v1/claim", `{"queue":"mail","lease_ms":1000,"wait_ms":25000}`))
				waiter <- answer{status, body}
			}()
			<-waits
			if err := end(); err != nil {
				t.Error(err)
			}
			if got := <-waiter; got.status != 200 || !strings.Contains(got.body, `"deliveries":[]`) {
				t.Errorf("who waited got %+v", got)
			}
			if c, err := net.Dial(l.Addr().Network(), l.Addr().String()); err == nil {
				c.Close()
				t.Error("somebody still answers")
			}
			client.CloseIdleConnections()
		})
	}
}
