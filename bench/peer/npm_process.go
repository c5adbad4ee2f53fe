//go:build unix

package peer

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

//go:embed npm.mjs
var npmScript string

// An npmCall is what npm.mjs is asked.
type npmCall struct {
	N     uint64          `json:"n"`
	Op    string          `json:"op"`
	Dir   string          `json:"dir,omitempty"`
	Name  string          `json:"name,omitempty"`
	Entry json.RawMessage `json:"entry,omitempty"`
}

type npmAnswer struct {
	N      uint64          `json:"n"`
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
}

// An npmProcess is a Node that runs npm.mjs. Many may ask at a time.
type npmProcess struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{} // closed when it will answer no more

	mu      sync.Mutex
	n       uint64
	waiting map[uint64]chan npmAnswer // nil once it has ended
}

var errNpmEnded = errors.New("the Node process has ended")

// startNpm returns once the package is loaded. A module that is given as text finds its
// packages from the working directory.
func startNpm(pkg string) (*npmProcess, error) {
	cmd := exec.Command(npmNode(pkg), "--input-type=module", "-e", npmScript)
	cmd.Dir = pkg
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for the bench
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &npmProcess{cmd: cmd, stdin: stdin, ended: make(chan struct{}), waiting: map[uint64]chan npmAnswer{}}
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	go p.listen(lines)
	if err != nil || line != "ready\n" {
		return nil, fmt.Errorf("the Node process said %q: %w", line, errors.Join(err, p.stop()))
	}
	return p, nil
}

// listen hands the answers to those who wait for them.
func (p *npmProcess) listen(lines io.Reader) {
	defer close(p.ended)
	d := json.NewDecoder(lines)
	for {
		var a npmAnswer
		err := d.Decode(&a)
		p.mu.Lock()
		if err != nil {
			for _, c := range p.waiting {
				close(c)
			}
			p.waiting = nil
			p.mu.Unlock()
			return
		}
		if c := p.waiting[a.N]; c != nil {
			delete(p.waiting, a.N)
			c <- a
		}
		p.mu.Unlock()
	}
}

// ask makes one call and decodes its result.
func (p *npmProcess) ask(call npmCall, result any) error {
	answer := make(chan npmAnswer, 1)
	p.mu.Lock()
	if p.waiting == nil {
		p.mu.Unlock()
		return errNpmEnded
	}
	p.n++
	call.N = p.n
	line, err := json.Marshal(call)
	if err == nil {
		p.waiting[call.N] = answer
		_, err = p.stdin.Write(append(line, '\n'))
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	a, ok := <-answer
	switch {
	case !ok:
		return errNpmEnded
	case a.Error != "":
		return fmt.Errorf("the npm package: %s", a.Error)
	case result == nil:
		return nil
	}
	return json.Unmarshal(a.Result, result)
}

// stop ends the process by ending its input.
func (p *npmProcess) stop() error {
	err := p.stdin.Close()
	<-p.ended
	return errors.Join(err, p.cmd.Wait())
}
