//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
)

// work runs the command for what is in the queue, until that is complete, with delays
// of a millisecond.
func (s *session) work(name string, more ...string) answer {
	s.t.Helper()
	args := []string{"work", name, "--until-complete", "--base-delay", "1ms", "--max-delay", "1ms"}
	return s.run(append(args, more...)...)
}

func TestWorkGivesTheCommandItsMessage(t *testing.T) {
	s := newStore(t)
	const payload = "{ \"b\":9007199254740993, \"a\":1.0, \"z\":-0, \"e\":1e400, \"s\":\"<a&b>\u2028\" }"
	s.mustFeed(payload, "enqueue", "chat", "--file", "-", "--id", "m", "--key", "chat 42")
	const script = `cat; printf '\n%s\n%s\n%s\n%s\n%s\n%s\n' "$HOLDFAST_QUEUE" "$HOLDFAST_ID" "$HOLDFAST_KEY" "$HOLDFAST_ATTEMPT" "$HOLDFAST_FENCE" "$HOLDFAST_DIR"; echo "$HOLDFAST_RECEIPT"`
	got := s.work("chat", "--", "/bin/sh", "-c", script)
	if got.code != 0 {
		t.Fatalf("%+v", got)
	}
	text := lines(got.out)
	if want := []string{payload, "chat", "m", "chat 42", "1", "1", s.dir}; len(text) != 8 || strings.Join(text[:7], "\n") != strings.Join(want, "\n") {
		t.Errorf("the command saw %q, want %q", text, want)
	}
	if r, err := queue.ParseReceipt(text[7]); err != nil || r.ID != "m" || r.Attempt != 1 {
		t.Errorf("its receipt: %v %v", r, err)
	}
	if st := decode[statusLine](t, s.must("status", "--json")); !st.Queues["chat"].Complete || st.Queues["chat"].Counters.Completed != 1 {
		t.Errorf("afterwards: %+v", st)
	}
}

// What each way to end makes of the message.
func TestWorkExitStatus(t *testing.T) {
	for _, c := range []struct {
		name, script string
		cause        string // of the message in failed; empty: it was acked
		attempts     uint64
	}{
		{"done", "exit 0", "", 1},
		{"bad data", "echo no such mailbox >&2; exit 65", "exit status 65: no such mailbox", 1},
		{"bad data, silent", "exit 65", "exit status 65", 1},
		{"temporary", "echo busy >&2; exit 75", "exit status 75: busy", 3},
		{"any other", "echo first >&2; echo last >&2; exit 1", "exit status 1: first\nlast", 3},
		{"a signal", "kill -9 $$", "ended by signal killed", 3},
		{"in the end", `test "$HOLDFAST_ATTEMPT" = 3`, "", 3},
		{"input not read", "exec <&-; exit 0", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			// The name in failed is taken: an automatic failure does not mind.
			s.claimed("chat", "m", "none")
			s.must("fail", s.entry("chat").Receipt, "--cause", "older")
			s.mustFeed(`"`+strings.Repeat("x", 1<<20)+`"`, "enqueue", "chat", "--file", "-", "--id", "m")
			if got := s.work("chat", "--max-failures", "3", "--", "/bin/sh", "-c", c.script); got.code != 0 {
				t.Fatalf("%+v", got)
			}
			rows := lines(s.must("failed", "ls", "--json"))
			if c.cause == "" {
				if len(rows) != 1 {
					t.Errorf("failed: %q", rows)
				}
			} else if len(rows) != 2 {
				t.Errorf("failed: %q", rows)
			} else if e := decode[entryLine](t, rows[1]); e.LastError != c.cause || e.Attempts != c.attempts || !strings.HasPrefix(e.FailedName, "m~") {
				t.Errorf("failed: %+v", e)
			}
			st := decode[statusLine](t, s.must("status", "--json")).Queues["chat"]
			if st.Counters.Claimed != 1+c.attempts {
				t.Errorf("claimed %d times, want %d", st.Counters.Claimed-1, c.attempts)
			}
		})
	}
}

func TestWorkKeepsTheEndOfStderr(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1", "--id", "m")
	got := s.work("chat", "--", "/bin/sh", "-c", `i=0; while [ $i -lt 2000 ]; do echo "é $i"; i=$((i+1)); done >&2; exit 65`)
	if got.code != 0 || !strings.Contains(got.err, "é 0\n") {
		t.Fatalf("exit %d", got.code)
	}
	e := decode[entryLine](t, s.must("failed", "ls", "--json"))
	if len(e.LastError) > queue.MaxErrorBytes || len(e.LastError) < queue.MaxErrorBytes-4 || !utf8.ValidString(e.LastError) ||
		!strings.HasPrefix(e.LastError, "exit status 65: ") || !strings.HasSuffix(e.LastError, "é 1999") {
		t.Errorf("%d bytes: %q", len(e.LastError), e.LastError)
	}
}

func TestWorkRefusesWhatItCannotRun(t *testing.T) {
	s := newStore(t)
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.env = map[string]string{"PATH": dir}
	for _, args := range [][]string{
		{"work"}, {"work", "chat"}, {"work", "chat", "--"}, {"work", "--", "/bin/sh"}, {"work", "a", "b", "--", "/bin/sh"}, {"work", "chat", "/bin/sh"},
		{"work", "chat", "--", "sh"}, {"work", "chat", "--", "plain"}, {"work", "chat", "--", plain}, {"work", "chat", "--", dir},
		{"work", "chat", "--lease", "none", "--", "/bin/sh"}, {"work", "chat", "-c", "0", "--", "/bin/sh"},
		{"work", "chat", "--max-failures", "0", "--", "/bin/sh"}, {"work", "chat", "--max-lapses", "0", "--", "/bin/sh"}, {"work", "chat", "--timeout", "-1s", "--", "/bin/sh"},
	} {
		if got := s.run(args...); got.code != exitUsage {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if got := s.run("work", "a/ack", "--", "/bin/sh"); got.code != exitUsage {
		t.Errorf("%+v", got)
	}
}

// A command that could not be started is no failure of its message.
func TestWorkExcusesWhatWasNotStarted(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1", "--id", "m")
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.WriteFile(gone, []byte("#!/does/not/exist\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan answer)
	go func() { done <- s.feedFrom(ctx, strings.NewReader(""), "work", "chat", "--", gone) }()
	s.until("released", func(q forms.Queue) bool { return q.Counters.Released == 1 })
	stop()
	if got := <-done; got.code != 0 || !strings.Contains(got.err, "the command was not started") {
		t.Errorf("%+v", got)
	}
	if e := s.entry("chat"); e.Attempts != 1 || e.Excused != 1 || e.State != "scheduled" {
		t.Errorf("%+v", e)
	}
}

// until waits for a status of the queue chat, woken by each change.
func (s *session) until(what string, is func(q forms.Queue) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if is(decode[statusLine](s.t, s.must("status", "--json")).Queues["chat"]) {
			return
		}
	}
	s.t.Fatalf("never %s", what)
}

// The command is told to end when the drain is over, and its message goes back,
// excused; one that ends well within the drain is acked.
func TestWorkDrains(t *testing.T) {
	for _, c := range []struct {
		drain     string
		completed uint64
	}{{"0s", 0}, {"1m", 1}} {
		t.Run(c.drain, func(t *testing.T) {
			s := newStore(t)
			fifo := s.fifo(".go")
			s.must("enqueue", "chat", "1", "--id", "m")
			s.must("enqueue", "chat", "2", "--id", "next")
			cmd, out := s.process("work", "chat", "--drain", c.drain, "--", "/bin/sh", "-c", `echo started; read go <"$HOLDFAST_DIR.go"`)
			if !out.Scan() || out.Text() != "started" {
				t.Fatalf("%q", out.Text())
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if c.completed == 1 {
				letGo(t, fifo)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("work: %v", err)
			}
			q := decode[statusLine](t, s.must("status", "--json")).Queues["chat"]
			// Whether the next message was claimed with the ack, and then given back, depends on
			// when the signal came.
			if q.Counters.Completed != c.completed || q.Counters.Released != q.Counters.Claimed-c.completed || q.Pending != 2-c.completed || q.Processing != 0 || q.Counters.Retried != 0 {
				t.Errorf("%+v", q)
			}
		})
	}
}

// fifo makes a FIFO beside the store.
func (s *session) fifo(suffix string) string {
	s.t.Helper()
	if err := syscall.Mkfifo(s.dir+suffix, 0o600); err != nil {
		s.t.Fatal(err)
	}
	return s.dir + suffix
}

// letGo lets one reader of a FIFO go on. It waits until there is one.
func letGo(t *testing.T, fifo string) {
	t.Helper()
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("go\n"); err != nil {
		t.Error(err)
	}
}

// process starts the command as another process.
func (s *session) process(args ...string) (*exec.Cmd, *bufio.Scanner) {
	s.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"--dir", s.dir}, args...)...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return cmd, bufio.NewScanner(out)
}

// A command that survives its worker counts as alive: nobody gets its message before
// it has ended, and then at once, for its lease has no end in sight.
func TestWorkLeavesASurvivorItsMessage(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1", "--id", "m")
	s.fifo(".go")
	cmd, out := s.process("work", "chat", "--lease", "24h", "--", "/bin/sh", "-c", `echo $$; read never <"$HOLDFAST_DIR.go"`)
	if !out.Scan() {
		t.Fatal("the command did not start")
	}
	pid, err := strconv.Atoi(out.Text())
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if got := s.run("reap", "--json"); got.code != exitNothing {
		t.Fatalf("while the command lives: %+v", got)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := s.run("reap", "--json")
	for ; got.code == exitNothing && ctx.Err() == nil; got = s.run("reap", "--json") {
		// The kernel is still ending it.
	}
	if got.code != 0 || !strings.Contains(got.out, `"proof"`) || !strings.Contains(got.out, `"m"`) {
		t.Errorf("after its end: %+v", got)
	}
}

// Three run at once: each says that it runs, and goes on when all have said so.
func TestWorkConcurrency(t *testing.T) {
	s := newStore(t)
	ready, err := os.OpenFile(s.fifo(".ready"), os.O_RDWR, 0) // both ways, so that it never ends
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	var gates []string
	for i := range 3 {
		id := fmt.Sprint("m", i)
		gates = append(gates, s.fifo("."+id))
		s.must("enqueue", "chat", "1", "--id", id)
	}
	done := make(chan answer)
	go func() {
		done <- s.work("chat", "-c", "3", "--", "/bin/sh", "-c", `echo running >"$HOLDFAST_DIR.ready"; read go <"$HOLDFAST_DIR.$HOLDFAST_ID"`)
	}()
	said := bufio.NewScanner(ready)
	for range gates {
		said.Scan()
	}
	for _, gate := range gates {
		letGo(t, gate)
	}
	if got := <-done; got.code != 0 {
		t.Errorf("%+v", got)
	}
}

func TestWorkEndsWhenTheStoreNeedsTheOperator(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1")
	record := filepath.Join(s.dir, ".fs-safe-queue-v2", ".state-transfer.lock")
	if err := os.WriteFile(record, []byte(strings.Repeat("x", 512)), 0o600); err != nil {
		t.Fatal(err)
	}
	got := s.run("work", "chat", "--", "/bin/sh", "-c", "exit 0")
	if got.code != exitOperator || !strings.Contains(got.err, "holdfast recover --dir "+s.dir) {
		t.Errorf("%+v", got)
	}
	s.must("recover")
	if got := s.work("chat", "--", "/bin/sh", "-c", "exit 0"); got.code != 0 {
		t.Errorf("recovered: %+v", got)
	}
}
