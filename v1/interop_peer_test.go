//go:build unix

package holdfast

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// interopEnv names the directory whose node_modules holds the npm package and, if it
// is there, its own Node.
const interopEnv = "HOLDFAST_FS_SAFE"

var interopSeed = flag.Uint64("interop.seed", 0, "seed of the random interop tests; 0: a new one")

// interopRandom gives a random test its numbers, and prints their seed.
func interopRandom(t *testing.T) *rand.Rand {
	seed := *interopSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("again with -interop.seed=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// An interopPeer is a Node process that drives the npm package: testdata/interop/peer.mjs.
// It takes one call at a time.
type interopPeer struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	gate   *os.File // a byte lets a paused peer go on
	mu     sync.Mutex
	paused func(what string) // what the test does while the peer stands still
	gated  chan struct{}     // closed when the peer's end of the gate is
}

// An interopAnswer is what the package returned or threw.
type interopAnswer struct {
	OK      bool            `json:"ok"`
	Value   json.RawMessage `json:"value"`
	Code    string          `json:"code"`
	Message string          `json:"message"`

	died bool
}

func (a interopAnswer) String() string {
	switch {
	case a.died:
		return "died"
	case a.OK:
		return string(a.Value)
	}
	return a.Code + ": " + a.Message
}

type interopArgs map[string]any

// interopCommand prepares Node with the peer, or skips the test where the package is not.
func interopCommand(t testing.TB) *exec.Cmd {
	t.Helper()
	dir, node := interopNode(t)
	cmd := exec.Command(node, "--import", "./stop.mjs", "./peer.mjs")
	cmd.Dir = filepath.Join("testdata", "interop")
	cmd.Env = append(os.Environ(), interopEnv+"="+dir, "NODE_COMPILE_CACHE="+filepath.Join(dir, "compile-cache"),
		// The steps are those of node:fs, wherever this runs.
		"FS_SAFE_NATIVE_MODE=off")
	cmd.Stderr = os.Stderr
	return cmd
}

// interopNode finds the package and a Node that is new enough for it.
func interopNode(t testing.TB) (dir, node string) {
	t.Helper()
	if raceDetector() {
		t.Skip("most of it is other processes: runs without the race detector")
	}
	const install = "run .ci/npm DIR (or make interop) and set " + interopEnv + "=DIR"
	dir = os.Getenv(interopEnv)
	if dir == "" {
		interopMissing(t, "the npm package is not installed: "+install)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "@openclaw", "fs-safe", "package.json")); err != nil {
		interopMissing(t, fmt.Sprintf("no npm package in %s: %v: %s", dir, err, install))
	}
	node = filepath.Join(dir, "node_modules", "node", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		node = "node"
	}
	version, err := exec.Command(node, "--version").Output()
	if err != nil {
		interopMissing(t, "no Node: "+err.Error()+": "+install)
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(version), "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 22 {
		interopMissing(t, fmt.Sprintf("%s is Node %s; the package needs 22 or newer: %s", node, strings.TrimSpace(string(version)), install))
	}
	return dir, node
}

func interopMissing(t testing.TB, reason string) {
	t.Helper()
	if t, isTest := t.(*testing.T); isTest {
		skip(t, reason)
	}
	t.Skip(reason)
}

// newInteropPeer starts a peer. It ends with the test.
func newInteropPeer(t testing.TB) *interopPeer { return startInteropPeer(t, interopCommand(t)) }

func startInteropPeer(t testing.TB, cmd *exec.Cmd) *interopPeer {
	t.Helper()
	p := &interopPeer{cmd: cmd, gated: make(chan struct{})}
	in, err := cmd.StdinPipe()
	interopOK(t, err)
	out, err := cmd.StdoutPipe()
	interopOK(t, err)
	goRead, goWrite, err := os.Pipe()
	interopOK(t, err)
	tellRead, tellWrite, err := os.Pipe()
	interopOK(t, err)
	cmd.ExtraFiles = []*os.File{goRead, tellWrite} // descriptors 3 and 4
	interopOK(t, cmd.Start())
	interopOK(t, goRead.Close())
	interopOK(t, tellWrite.Close())
	p.in, p.gate = in, goWrite
	p.out = bufio.NewScanner(out)
	p.out.Buffer(nil, 64<<20)
	go p.watch(tellRead)
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		<-p.gated
		goWrite.Close()
	})
	return p
}

func interopOK(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// watch runs what the test has to do whenever the peer stands still.
func (p *interopPeer) watch(tell *os.File) {
	defer close(p.gated)
	defer tell.Close()
	for lines := bufio.NewScanner(tell); lines.Scan(); {
		p.mu.Lock()
		do := p.paused
		p.mu.Unlock()
		if do != nil {
			do(lines.Text())
		}
		if _, err := p.gate.Write([]byte{'g'}); err != nil {
			return // it is dead
		}
	}
}

// whilePaused sets what is done while the peer stands still.
func (p *interopPeer) whilePaused(do func(what string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = do
}

// send begins a call.
func (p *interopPeer) send(t testing.TB, method string, args interopArgs) {
	t.Helper()
	line := interopArgs{"method": method}
	for k, v := range args {
		line[k] = v
	}
	text, err := json.Marshal(line)
	interopOK(t, err)
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
}

// answer waits for what the call gave.
func (p *interopPeer) answer(t testing.TB) (a interopAnswer) {
	t.Helper()
	if !p.out.Scan() {
		interopOK(t, p.out.Err())
		_ = p.cmd.Wait()
		return interopAnswer{died: true}
	}
	interopOK(t, json.Unmarshal(p.out.Bytes(), &a))
	return a
}

func (p *interopPeer) call(t testing.TB, method string, args interopArgs) interopAnswer {
	t.Helper()
	p.send(t, method, args)
	return p.answer(t)
}

// must is a call that succeeds. Its value goes into v, unless that is nil.
func (p *interopPeer) must(t testing.TB, method string, args interopArgs, v any) {
	t.Helper()
	a := p.call(t, method, args)
	if !a.OK {
		t.Fatalf("%s %v: %v", method, args, a)
	}
	if v != nil {
		interopOK(t, json.Unmarshal(a.Value, v))
	}
}

// TestInteropVersions: what the other tests ran beside.
func TestInteropVersions(t *testing.T) {
	p := newInteropPeer(t)
	var v struct{ Node, Package string }
	p.must(t, "version", nil, &v)
	if v.Package != "0.21.0" {
		t.Errorf("the package is %s, want 0.21.0: docs/format-v1.md is about that", v.Package)
	}
	t.Logf("@openclaw/fs-safe %s on Node %s", v.Package, v.Node)
}
