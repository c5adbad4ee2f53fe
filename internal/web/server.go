//go:build unix

package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"log"
	"net"
	"net/http"
	"time"

	"golang.org/x/net/netutil"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// A Store is what the server needs of an open store.
type Store interface {
	queue.Store
	ID() string
	Resolve(ctx context.Context, u *queue.UncertainError) (committed bool, err error)
	Stats() holdfast.Stats
}

// A Config says what is served and to whom.
type Config struct {
	Store Store

	// Token is what requests must show. [Token] reads one from a file.
	Token string

	// Classify gives the stable code of an error and the exit code that the command has for
	// it, so that one table names both.
	Classify func(err error) (code string, exit int)

	// MetricsOpen lets /metrics be read without the token.
	MetricsOpen bool

	// MaxConnections is how many clients may be connected at once. Those beyond it are let
	// in as others go. Half as many claims may wait for a message. Zero:
	// DefaultMaxConnections.
	MaxConnections int
}

// DefaultMaxConnections leaves descriptors for the store where a process may have 1,024.
const DefaultMaxConnections = 256

// A Server answers requests. Make it with [New].
type Server struct {
	Config
	token   [sha256.Size]byte
	handler http.Handler
	waits   chan struct{}   // has room for the claims that may wait, and no more
	ending  context.Context // ends the requests that wait
	end     context.CancelFunc
}

// New makes a server of a store.
func New(c Config) *Server {
	if c.MaxConnections == 0 {
		c.MaxConnections = DefaultMaxConnections
	}
	s := &Server{Config: c, token: sha256.Sum256([]byte(c.Token)), waits: make(chan struct{}, max(1, c.MaxConnections/2))}
	s.ending, s.end = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	for _, r := range routes {
		mux.Handle(r.method+" "+r.path, s.authorised(s.answer(r)))
	}
	metrics := s.metrics()
	if !c.MetricsOpen {
		metrics = s.authorised(metrics)
	}
	mux.Handle("GET /metrics", metrics)
	mux.Handle("GET /openapi.json", described())
	page(mux)
	s.handler = guarded(mux)
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	unrecovered(func() { s.handler.ServeHTTP(w, r) })
}

// unrecovered runs f where nobody recovers a panic: it ends the process with its stack. The
// store's lock may be held then, and net/http and the registry of metrics would go on.
// Where f does not return, nor does this: an answer of nothing would say that all is well.
func unrecovered(f func()) {
	done := make(chan struct{})
	go func() {
		f()
		close(done)
	}()
	<-done
}

// Bounds of a connection. A request may wait for maxWait on top of the time that it needs.
const (
	headerWithin  = 5 * time.Second
	readWithin    = 30 * time.Second
	writeWithin   = 2 * time.Minute  // more than reading and answering take
	idleWithin    = 30 * time.Second // while others may wait to be let in
	answerWithin  = 60 * time.Second // of the store's own time, its lock included
	drainWithin   = 10 * time.Second
	maxHeader     = 16 << 10
	maxWait       = 25 * time.Second
	reapEvery     = 5 * time.Second // by a claim that waits
	scrapeWithin  = 10 * time.Second
	resolveWithin = 30 * time.Second
)

// Serve answers on l until ctx ends, then lets the requests under way finish. Requests that
// wait for a message end at once. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerWithin, ReadTimeout: readWithin, WriteTimeout: writeWithin,
		IdleTimeout: idleWithin, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(discard{}, "", 0), // what is wrong with a client's connection is the client's to see
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(netutil.LimitListener(l, s.MaxConnections)) }()
	select {
	case err := <-ended:
		s.end()
		return err
	case <-ctx.Done():
	}
	s.end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWithin)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // who has not read its answer by now does not want it
	}
	if e := <-ended; err == nil && !errors.Is(e, http.ErrServerClosed) {
		err = e
	}
	return err
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
