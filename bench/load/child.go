//go:build unix

package load

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"example.com/holdfast/bench/measure"
	"example.com/holdfast/bench/peer"
)

// childVariable tells a program that it is a process of a trial, and which: an order.
const childVariable = "HOLDFAST_BENCH_CHILD"

// An order is what one process of a trial does.
type order struct {
	Peer     string
	Npm      string
	Dir      string
	First    uint64 // number of its first message
	Workload Workload
	Size     Size
}

// orderRefused is how a process ends whose order cannot be read.
const orderRefused = 3

var errOrder = errors.New("not an order")

// An answer is what it has done.
type answer struct {
	Sent span
	Seen []uint64
}

// Child does what this program is told to do as a process of a trial, and ends it. It
// returns when it is none. A program that measures, and its tests, begin with it.
func Child() {
	text, ok := os.LookupEnv(childVariable)
	if !ok {
		return
	}
	switch err := obey(context.Background(), text, os.Stdin, os.Stdout); {
	case errors.Is(err, errOrder):
		os.Exit(orderRefused)
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// obey opens the peer, says so, and waits for a line: all begin together.
func obey(ctx context.Context, text string, in io.Reader, out io.Writer) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return errors.Join(errOrder, err)
	}
	var p peer.Peer
	for _, p = range peer.All(o.Npm) {
		if p.Key == o.Peer {
			break
		}
	}
	q, err := p.Open(ctx, o.Dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return errors.Join(err, q.Close())
	}
	l := newLedger(o.First, true)
	if _, err := run(ctx, o.Workload, p, q, l, o.Size); err != nil {
		return errors.Join(err, q.Close())
	}
	err = json.NewEncoder(out).Encode(answer{Sent: l.sent[0], Seen: l.seenNumbers()})
	return errors.Join(err, q.Close())
}

// A process is one that obeys.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startProcess starts this program again, below the command before when there is one, and
// returns when it has opened the peer.
func startProcess(o order, before ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	args := append(before, self)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	p := &process{cmd: cmd}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(stdout)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := p.out.ReadString('\n'); line != "ready\n" {
		return nil, fmt.Errorf("a process of %s said %q: %w", o.Peer, line, errors.Join(err, p.end()))
	}
	return p, nil
}

// begin lets it begin.
func (p *process) begin() error {
	_, err := io.WriteString(p.in, "go\n")
	return err
}

func (p *process) answer() (a answer, err error) {
	return a, json.NewDecoder(p.out).Decode(&a)
}

func (p *process) end() error {
	p.in.Close() // it may have ended: Wait says how
	return p.cmd.Wait()
}

// processes carries the workload out in several processes at once, and counts from when
// they are let go until the last has done its share.
func (s *Scene) processes(_ context.Context, size Size) (sample measure.Sample, err error) {
	var list []*process
	defer func() {
		for _, p := range list {
			err = errors.Join(err, p.end())
		}
	}()
	for range s.w.Processes {
		s.children++
		p, err := startProcess(order{
			Peer: s.p.Key, Npm: s.npm, Dir: s.dir, First: s.children * childNumbers, Workload: s.w, Size: size,
		})
		if err != nil {
			return sample, err
		}
		list = append(list, p)
	}
	began := time.Now()
	for _, p := range list {
		if err := p.begin(); err != nil {
			return sample, err
		}
	}
	answers := make([]answer, len(list))
	for i, p := range list {
		if answers[i], err = p.answer(); err != nil {
			return sample, err
		}
		sample.Messages += int(answers[i].Sent.End - answers[i].Sent.First)
	}
	sample.Elapsed = time.Since(began)
	return sample, s.ledger.merge(answers)
}
