//go:build unix

package main

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
)

// A process is a child of the demo. It is started, stopped and killed with the
// plain system calls: they also work where an Android app may not use pidfds.
type process struct {
	pid   int
	ended bool
	done  chan struct{} // closed when everything that it wrote was seen
}

// startProcess starts an absolute path with its two output streams on one pipe,
// and calls see for every line.
func startProcess(path string, args []string, see func(line string)) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		r.Close()
		return nil, err
	}
	defer null.Close()
	pid, err := syscall.ForkExec(path, append([]string{path}, args...), &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{null.Fd(), w.Fd(), w.Fd()},
	})
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	p := &process{pid: pid, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer r.Close()
		for lines := bufio.NewScanner(r); lines.Scan(); {
			see(lines.Text())
		}
	}()
	return p, nil
}

// stop halts the process and returns when it stands still; false: it has ended.
func (p *process) stop() (bool, error) {
	if p.ended {
		return false, nil
	}
	if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
		return false, err
	}
	status, err := p.await(syscall.WUNTRACED)
	if err != nil {
		return false, err
	}
	p.ended = !status.Stopped()
	return status.Stopped(), nil
}

func (p *process) resume() error { return syscall.Kill(p.pid, syscall.SIGCONT) }

// kill ends the process with SIGKILL, which it can neither catch nor delay, and
// waits until all that it wrote was seen. It may be called again.
func (p *process) kill() error {
	if p.ended {
		<-p.done
		return nil
	}
	_, err := p.end()
	return err
}

// end is kill, of a process that was not waited for yet. It gives the exit code, if the
// process had ended by itself before, and else -1.
func (p *process) end() (int, error) {
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
		return -1, err
	}
	return p.wait()
}

// wait waits for the end and gives the exit code, -1 after a signal.
func (p *process) wait() (int, error) {
	status, err := p.await(0)
	if err != nil {
		return -1, err
	}
	p.ended = true
	<-p.done
	return status.ExitStatus(), nil
}

func (p *process) await(options int) (syscall.WaitStatus, error) {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.pid, &status, options, nil)
		if err != syscall.EINTR {
			return status, err
		}
	}
}
