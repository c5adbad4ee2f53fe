//go:build unix

package peer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const redisServer = "redis-server"

// A redisProcess is a server that the bench has started.
type redisProcess struct {
	cmd    *exec.Cmd
	logged chan struct{} // closed when it has said its last word
}

// startRedis gives the socket of the server on dir. The first to ask starts it; for
// whoever finds it running there is no process.
func startRedis(ctx context.Context, dir string) (*redisProcess, string, error) {
	socket := filepath.Join(dir, "redis.sock")
	if conn, err := net.Dial("unix", socket); err == nil {
		return nil, socket, conn.Close()
	}
	// Not bound to ctx: it is stopped in order.
	cmd := exec.Command(redisServer, "--port", "0", "--unixsocket", socket, "--dir", dir,
		"--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no", "--logfile", "")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for the bench
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	p := &redisProcess{cmd: cmd, logged: make(chan struct{})}
	ready := make(chan bool, 2) // nobody may be there to be told
	var log strings.Builder
	go func() {
		defer close(p.logged)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			fmt.Fprintln(&log, lines.Text())
			// It says so once it has loaded what it kept and listens.
			if strings.Contains(strings.ToLower(lines.Text()), "ready to accept connections") {
				ready <- true
				break
			}
		}
		ready <- false
		io.Copy(io.Discard, out) // so that it never waits for a reader; it ends with the server
	}()
	select {
	case ok := <-ready:
		if ok {
			return p, socket, nil
		}
		<-p.logged
		return nil, "", fmt.Errorf("%s: %w\n%s", redisServer, p.stop(), log.String())
	case <-ctx.Done():
		return nil, "", fmt.Errorf("%w; stopped it: %v", context.Cause(ctx), p.stop())
	}
}

// stop ends the server in order and waits for it.
func (p *redisProcess) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-p.logged // Wait closes the pipe under a reader
	return p.cmd.Wait()
}
