package main

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest/sandbox"
)

// T05 for the server, which everyCommand leaves out because it does not end by itself.
func TestT05ServeUnderTheAndroidFilter(t *testing.T) {
	sandbox.Need(t)
	serveAsProcess(t, func(args ...string) *exec.Cmd {
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env = append(os.Environ(), asCommand+"="+confined)
		return cmd
	})
}

// serveAsProcess runs the server as a process of its own until it is told to end; its
// arguments do not have the token.
func serveAsProcess(t *testing.T, command func(args ...string) *exec.Cmd) {
	for name, how := range map[string][]string{
		"tcp":  {"--listen", "127.0.0.1:0"},
		"unix": {"--unix", filepath.Join(t.TempDir(), "socket")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			tokenFile := filepath.Join(t.TempDir(), "token")
			cmd := command(append([]string{"--dir", s.dir, "--json", "serve", "--token-file", tokenFile}, how...)...)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				err = cmd.Wait()
				t.Fatalf("it did not start: %v, %s\n%s", err, sandbox.Trapped(errs.String(), err), errs.String())
			}
			server := asked(t, line, tokenFile)
			if arguments, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/cmdline"); err != nil || bytes.Contains(arguments, []byte(server.token)) {
				t.Errorf("arguments: %q %v", arguments, err)
			}
			if path, ok := strings.CutPrefix(server.url, "unix:"); ok {
				server.url, server.client.Transport = "http://localhost", overSocket(path)
			}
			for _, c := range []struct{ path, body, want string }{
				{"/v1/enqueue", `{"queue":"mail","id":"a","payload":1}`, `"id":"a"`},
				{"/v1/claim", `{"queue":"mail","lease_ms":60000}`, `"receipt":`},
				{"/v1/claim", `{"queue":"mail","lease_ms":60000,"wait_ms":5}`, `"deliveries":[]`},
				{"/v1/status?oldest=true", "", `"processing":1`},
				{"/metrics", "", "holdfast_up 1"},
				{"/", "", "<title>holdfast</title>"},
				{"/openapi.json", "", `"openapi"`},
			} {
				if got := server.ask(c.path, c.body); !strings.Contains(got, c.want) {
					t.Errorf("%s: %s, want %s in it", c.path, got, c.want)
				}
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v %s\n%s", err, sandbox.Trapped(errs.String(), err), errs.String())
			}
		})
	}
}

// overSocket reaches a server by a unix socket.
func overSocket(path string) http.RoundTripper {
	return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}}
}
