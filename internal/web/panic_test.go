//go:build unix

package web

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/reexec"
	"example.com/holdfast/queue"
)

// servePanic is the role of a process that serves a store with a bug, asks itself, and should
// not live on.
func servePanic(args []string) error {
	store := &webStore{status: func(queue.StatusOptions) (queue.Status, error) { panic("a planted bug of the store") }}
	s := New(Config{Store: store, Token: webToken, Classify: webClassify})
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = s.Serve(context.Background(), l) }() // it ends with the process
	r := request("GET", args[0], "")
	r.RequestURI, r.URL.Scheme, r.URL.Host = "", "http", r.Host
	client := http.Client{Timeout: answerWithin, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
	}}}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	return errors.Join(errors.New("the server went on"), answer.Body.Close())
}

// A panic under a request ends the process as it would elsewhere, with the stack of where it
// was: the lock that it may have held is told of by its record.
func TestAPanicEndsTheProcess(t *testing.T) {
	for _, path := range []string{"/v1/status", "/metrics"} {
		t.Run(path, func(t *testing.T) {
			cmd := reexec.Command(t, "panic", path)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
				t.Errorf("it ended with %v, want exit code 2", err)
			}
			for _, want := range []string{"panic: a planted bug of the store", "web.servePanic.func"} {
				if !strings.Contains(errs.String(), want) {
					t.Errorf("stderr does not have %q:\n%s", want, &errs)
				}
			}
		})
	}
}
