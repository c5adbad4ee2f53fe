//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"example.com/holdfast/queue"
)

// A command is what `work` runs for each message. It is started and waited for with
// the plain system calls: os/exec uses calls that an Android app may not make.
type command struct {
	path   string
	argv   []string
	dir    string // of the store
	holder *os.File
	stdout io.Writer
	stderr io.Writer
	log    *slog.Logger

	within  time.Duration   // from SIGTERM to SIGKILL
	drained <-chan struct{} // closed when the drain is over: who still runs is told to end
	running sync.WaitGroup
	unsaid  sync.Once // that an output stream cannot be written was logged
}

// An ending is how a command ended.
type ending struct {
	status syscall.WaitStatus
	tail   string // of its stderr
	told   bool   // to end, by SIGTERM
}

// String says it in the words of a last error: how it ended, and the end of what it
// wrote, as much as is kept.
func (e ending) String() string {
	text := fmt.Sprintf("exit status %d", e.status.ExitStatus())
	if e.status.Signaled() {
		text = "ended by signal " + e.status.Signal().String()
	}
	tail := strings.TrimSpace(strings.ToValidUTF8(e.tail, "\uFFFD"))
	if tail == "" {
		return text
	}
	if room := queue.MaxErrorBytes - len(text) - len(": "); len(tail) > room {
		at := len(tail) - room
		for !utf8.RuneStart(tail[at]) {
			at++
		}
		tail = tail[at:]
	}
	return text + ": " + tail
}

// Bounds of a command that is told to end, and of what it leaves behind.
const (
	endWithin = 10 * time.Second // from SIGTERM to SIGKILL
	pipesOpen = time.Second      // for what its own children may still write
)

// run runs the command with payload as its standard input. An error says that it was
// not started. When ctx ends, or the drain does, the command and what it started in its
// process group get SIGTERM, and SIGKILL when it has ended, or c.within later. So what
// is told of a command that was to end is told when it has ended.
func (c *command) run(ctx context.Context, payload []byte, env []string) (ending, error) {
	c.running.Add(1)
	defer c.running.Done()
	var end ending
	if err := ctx.Err(); err != nil {
		return end, err
	}
	p, err := newPipes()
	if err != nil {
		return end, err
	}
	defer p.close()
	files := []uintptr{p.in.r.Fd(), p.out.w.Fd(), p.err.w.Fd()}
	if c.holder != nil {
		// Inherited, it keeps this process's claims alive for as long as the command runs.
		files = append(files, c.holder.Fd())
	}
	pid, err := syscall.ForkExec(c.path, c.argv, &syscall.ProcAttr{
		Env: withEnv(os.Environ(), env), Files: files,
		Sys: &syscall.SysProcAttr{Setpgid: true}, // a terminal's Ctrl-C is for us, who drain
	})
	if err != nil {
		return end, fmt.Errorf("start %s: %w", c.path, err)
	}
	p.childEnds()

	var copies sync.WaitGroup
	var tail tailWriter
	copies.Go(func() { c.pass(c.stdout, p.out.r) })
	copies.Go(func() { c.pass(c.stderr, io.TeeReader(p.err.r, &tail)) })
	go func() { // it need not read its input
		p.in.w.Write(payload)
		p.in.w.Close()
	}()

	ended := make(chan struct{})
	told := make(chan bool, 1)
	go func() { told <- c.end(ctx, pid, ended) }()
	end.status, err = await(pid, func() {
		close(ended)
		end.told = <-told
	})
	p.limit(pipesOpen)
	copies.Wait()
	end.tail = tail.String()
	if err != nil { // cannot be: it is our child, and nobody else waits for it
		end.tail = fmt.Sprintf("how it ended is not known: %v", err)
		end.status = 1 << 8
	}
	return end, nil
}

// pass copies what the command writes. Where it cannot be written any more it is read
// all the same: the command must not hang on a full pipe because our disk is full.
func (c *command) pass(w io.Writer, r io.Reader) {
	if _, err := io.Copy(w, r); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		c.unsaid.Do(func() { c.log.Error("what commands write is lost", "error", err) })
	}
	io.Copy(io.Discard, r)
}

// end ends a command when its context or the drain is over, and reports whether it had
// to. It signals only while the number is the command's own: await frees the number
// after this has returned, where the system can.
func (c *command) end(ctx context.Context, pid int, ended <-chan struct{}) (told bool) {
	select {
	case <-ended:
		return false
	case <-ctx.Done():
	case <-c.drained:
	}
	syscall.Kill(-pid, syscall.SIGTERM)
	timer := time.NewTimer(c.within)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
	// Also when the command itself has ended: what it started would keep its message,
	// and all of ours, by the descriptor that it inherited.
	syscall.Kill(-pid, syscall.SIGKILL)
	return true
}

// withEnv gives the environment with more in it; what is set anew is there once, for
// programs differ in which of two they take.
func withEnv(env, more []string) []string {
	set := map[string]bool{}
	for _, kv := range more {
		name, _, _ := strings.Cut(kv, "=")
		set[name] = true
	}
	var out []string
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); !set[name] {
			out = append(out, kv)
		}
	}
	return append(out, more...)
}

// pipes are the three standard streams of a command.
type pipes struct{ in, out, err pipe }

type pipe struct{ r, w *os.File }

func newPipes() (*pipes, error) {
	p := &pipes{}
	for _, x := range []*pipe{&p.in, &p.out, &p.err} {
		var err error
		if x.r, x.w, err = os.Pipe(); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// childEnds closes the ends that the command has now.
func (p *pipes) childEnds() {
	p.in.r.Close()
	p.out.w.Close()
	p.err.w.Close()
}

// limit ends the reading from whatever the command has left behind.
func (p *pipes) limit(d time.Duration) {
	for _, r := range []*os.File{p.out.r, p.err.r} {
		if err := r.SetReadDeadline(time.Now().Add(d)); err != nil {
			r.Close()
		}
	}
}

func (p *pipes) close() {
	for _, x := range []pipe{p.in, p.out, p.err} {
		if x.r != nil {
			x.r.Close()
		}
		if x.w != nil {
			x.w.Close()
		}
	}
}

// A tailWriter keeps the end of what is written to it.
type tailWriter struct{ b []byte }

func (t *tailWriter) Write(p []byte) (int, error) {
	const most = 2 * queue.MaxErrorBytes // white space around it may go
	if t.b = append(t.b, p...); len(t.b) > most {
		t.b = append(t.b[:0], t.b[len(t.b)-most:]...)
	}
	return len(p), nil
}

func (t *tailWriter) String() string { return string(t.b) }

// lookPath finds a program as a shell does. exec.LookPath asks the system with a call
// that an Android app may not make.
func lookPath(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		if err := runnable(name); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		return filepath.Abs(name)
	}
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		if at := filepath.Join(dir, name); runnable(at) == nil {
			return filepath.Abs(at)
		}
	}
	return "", fmt.Errorf("%s: not found in PATH", name)
}

func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("is a directory")
	case info.Mode().Perm()&0o111 == 0:
		return errors.New("is not executable")
	}
	return nil
}
