//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/web"
)

// A served is a server in the making: where it is and how to ask it.
type served struct {
	t          *testing.T
	url, token string
	client     http.Client
}

// ask makes a request; a body makes it a POST.
func (s *served) ask(path, body string) string {
	s.t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close() // only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		return answer.Status + " " + string(text)
	}
	return string(text)
}

// asked reads the line that serve begins with.
func asked(t *testing.T, line, tokenFile string) *served {
	t.Helper()
	said := decode[struct {
		Serving string `json:"serving"`
		Token   string `json:"token_file"`
	}](t, line)
	token, err := os.ReadFile(tokenFile)
	if err != nil || said.Token != tokenFile {
		t.Fatalf("%s: %v", line, err)
	}
	return &served{t: t, url: strings.TrimSuffix(said.Serving, "/"), token: strings.TrimSpace(string(token)),
		client: http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
}

// serve starts the command in this process, until end is called, which gives the exit code.
func (s *session) serve(args ...string) (server *served, end func() answer) {
	s.t.Helper()
	tokenFile := filepath.Join(s.t.TempDir(), "token")
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	var errs strings.Builder
	code := make(chan int, 1)
	go func() {
		a := newApp(strings.NewReader(""), w, &errs)
		code <- a.run(ctx, append([]string{"--dir", s.dir, "--json", "serve", "--listen", "127.0.0.1:0", "--token-file", tokenFile}, args...))
		w.Close()
	}()
	out := bufio.NewReader(r)
	line, err := out.ReadString('\n')
	if err != nil {
		cancel()
		s.t.Fatalf("exit %d: %s", <-code, errs.String())
	}
	return asked(s.t, line, tokenFile), func() answer {
		cancel()
		rest, err := io.ReadAll(out)
		if err != nil {
			s.t.Error(err)
		}
		return answer{<-code, string(rest), errs.String()}
	}
}

// The server and the command work on one store side by side, and call things by the same
// names.
func TestServe(t *testing.T) {
	s := newStore(t)
	server, end := s.serve()
	if got := server.ask("/v1/enqueue", `{"queue":"mail","id":"a","payload":{"n":1.50}}`); !strings.Contains(got, `"id":"a"`) {
		t.Fatal(got)
	}
	// What the command says, the server says too.
	claimed := s.must("claim", "mail", "--json", "--label", "by hand")
	receipt := receiptIn(t, claimed)
	fields := func(text string) (names []string) {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		for name := range object {
			names = append(names, name)
		}
		return names
	}
	part := func(text string, path ...string) string {
		for _, name := range path {
			var object map[string]json.RawMessage
			var list []json.RawMessage
			if json.Unmarshal([]byte(text), &object) == nil {
				text = string(object[name])
			}
			if json.Unmarshal([]byte(text), &list) == nil && len(list) > 0 {
				text = string(list[0])
			}
		}
		return text
	}
	listed, shown := s.must("ls", "mail", "--json"), s.must("show", "mail", "a", "--json")
	server.ask("/v1/reap", `{"receipt":"`+receipt+`"}`)
	again := part(server.ask("/v1/claim", `{"queue":"mail","lease_ms":60000,"label":"by hand"}`), "deliveries")
	for name, c := range map[string]struct{ command, server string }{
		"status":   {part(s.must("status", "--json"), "queues", "mail"), part(server.ask("/v1/status", ""), "queues", "mail")},
		"messages": {listed, part(server.ask("/v1/messages?queue=mail", ""), "entries")},
		"message":  {shown, part(server.ask("/v1/message?queue=mail&id=a", ""), "entries")},
		"delivery": {claimed, again},
	} {
		have := fields(c.server)
		for _, field := range fields(c.command) {
			if field != "settled" && !slices.Contains(have, field) {
				t.Errorf("%s: the server does not have %q, which the command has: %s", name, field, c.server)
			}
		}
	}
	if got := server.ask("/v1/ack", `{"receipt":"`+receipt+`"}`); !strings.HasPrefix(got, "409") || !strings.Contains(got, `"code":"stale"`) {
		t.Errorf("a late ack: %s", got)
	}
	if got := server.ask("/metrics", ""); !strings.Contains(got, `holdfast_queue_processing_messages{queue="mail"} 1`) || strings.Contains(got, "holdfast_handle_commits_total 0") {
		t.Errorf("metrics: %s", got)
	}
	token := server.token
	if server.token = ""; !strings.HasPrefix(server.ask("/metrics", ""), "401") {
		t.Error("the metrics are open")
	}
	got := end()
	if got.code != exitDone || got.out != "" || !strings.Contains(got.err, "a new token stands in") || strings.Contains(got.err, token) {
		t.Errorf("at the end: %+v", got)
	}
	if status := s.must("status", "--json"); !strings.Contains(status, `"processing":1`) {
		t.Errorf("the claim did not outlive the server: %s", status)
	}
}

// receiptIn finds the receipt in a line of JSON.
func receiptIn(t *testing.T, line string) string {
	t.Helper()
	var claimed struct {
		Receipt string `json:"receipt"`
	}
	if err := json.Unmarshal([]byte(line), &claimed); err != nil || claimed.Receipt == "" {
		t.Fatalf("%v: %s", err, line)
	}
	return claimed.Receipt
}

func TestServeMetricsOpen(t *testing.T) {
	server, end := newStore(t).serve("--metrics-open")
	server.token = ""
	if got := server.ask("/metrics", ""); !strings.Contains(got, "holdfast_up 1") {
		t.Error(got)
	}
	if got := end(); got.code != exitDone {
		t.Errorf("%+v", got)
	}
}

func TestServeRefuses(t *testing.T) {
	s := newStore(t)
	token := filepath.Join(t.TempDir(), "token")
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, []byte("a-token-that-all-may-read-0123"), 0o644); err != nil {
		t.Fatal(err)
	}
	taken, err := web.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	socket := filepath.Join(t.TempDir(), "s")
	held, err := web.ListenUnix(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for _, c := range []struct {
		exit int
		code string
		args []string
	}{
		{exitUsage, "usage", nil},
		{exitUsage, "usage", []string{"--token-file", token, "--listen", "127.0.0.1:0", "--unix", "s"}},
		{exitUsage, "usage", []string{"--token-file", token, "--unix", ""}},
		{exitUsage, "usage", []string{"--token-file", token, "--unix", "s", "--metrics-open"}},
		{exitUsage, "usage", []string{"--token-file", token, "extra"}},
		{exitUsage, "usage", []string{"--token-file", token, "--max-connections", "1"}},
		{exitUsage, "usage", []string{"--token-file", token, "--max-connections", "65537"}},
		{exitUsage, "address", []string{"--token-file", token, "--listen", "0.0.0.0:7340"}},
		{exitUsage, "address", []string{"--token-file", token, "--listen", "localhost:7340"}},
		{exitUsage, "address", []string{"--token-file", token, "--unix", open}},
		{exitIO, "io", []string{"--token-file", open}},
		{exitIO, "io", []string{"--token-file", token, "--listen", taken.Addr().String()}},
		{exitIO, "io", []string{"--token-file", token, "--unix", socket}},
		{exitIO, "io", []string{"--token-file", filepath.Join(token, "none")}},
	} {
		s.refused(c.exit, c.code, append([]string{"serve"}, c.args...)...)
	}
	for _, at := range [][]string{{"--listen", taken.Addr().String()}, {"--unix", socket}} {
		if got := s.run(append([]string{"serve", "--token-file", token}, at...)...); !strings.Contains(got.err, "end what serves there") {
			t.Errorf("%q: %q", at, got.err)
		}
	}
	if got := s.run("serve", "--token-file", open); strings.Count(got.err, open) != 1 {
		t.Errorf("a token that others can read: %q", got.err)
	}
}

// The server's own codes are none of the command's, and docs/serve.md has all of the store's.
func TestServeCodes(t *testing.T) {
	page, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("exit.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, k := range kinds {
		if _, both := web.Codes[k.code]; both {
			t.Errorf("%s is a code of the command and of the server", k.code)
		}
		// The line of the table says whose error it is.
		for line := range strings.Lines(string(table)) {
			ofStore := strings.HasPrefix(line, "\t{queue.Err") || strings.HasPrefix(line, "\t{holdfast.Err")
			if !ofStore || !strings.Contains(line, `, "`+k.code+`", `) {
				continue
			}
			found++
			if !strings.Contains(string(page), "`"+k.code+"`") {
				t.Errorf("docs/serve.md does not have the code %s", k.code)
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d codes of the store were found", found)
	}
}
