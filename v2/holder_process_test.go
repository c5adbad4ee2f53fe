//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/crashtest/reexec"
)

func init() {
	roles["hold"] = holdRole
	roles["hold and run"] = holdAndRun
	roles["stay"] = stayRole
	roles["hold many"] = holdMany
}

// holdRole takes a directory: it holds there until its input ends.
func holdRole(args []string) error {
	s, err := Open(context.Background(), args[0], nil)
	if err != nil {
		return err
	}
	name, err := holdNow(s)
	if err != nil {
		return err
	}
	fmt.Println(name)
	return stayRole(nil)
}

// stayRole says that it is there and lives until its input ends.
func stayRole([]string) error {
	fmt.Println("here")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// holdAndRun takes a directory and whether the command that it runs inherits. The
// command has its input and output.
func holdAndRun(args []string) error {
	ctx := context.Background()
	s, err := Open(ctx, args[0], nil)
	if err != nil {
		return err
	}
	file, err := s.Holder(ctx)
	if err != nil {
		return err
	}
	name, err := holdNow(s)
	if err != nil {
		return err
	}
	fmt.Println(name)
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), reexec.Env+"=stay")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if args[1] == "inherits" {
		cmd.ExtraFiles = []*os.File{file}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	return cmd.Wait()
}

// startHolder starts a role that prints its holder and that it is there.
func startHolder(t *testing.T, role string, args ...string) (*process, token) {
	t.Helper()
	p := start(t, role, args...)
	name, ok := parseToken(p.Line(t))
	if line := p.Line(t); !ok || line != "here" {
		t.Fatalf("holder %v, %v, %q", name, ok, line)
	}
	return p, name
}

// A process that was killed is proven dead as soon as it is gone; before that it is
// not, whatever its handles do.
func TestKilledHolderIsDeadAtOnce(t *testing.T) {
	t.Parallel()
	b := osHolding(t)
	asker := b.process(t)
	p, name := startHolder(t, "hold", b.dir)
	wantHolderDead(t, asker.Store, name, false)
	p.Kill(t)
	wantHolderDead(t, asker.Store, name, true)
	sweepHolders(t, asker.Store, name)
	b.wantFiles(t, name)
	sweepHolders(t, asker.Store)
	b.wantFiles(t)
	wantHolderDead(t, asker.Store, name, false) // nothing is left to prove it by
}

// A process that ends by itself is as dead as one that was killed.
func TestEndedHolderIsDead(t *testing.T) {
	t.Parallel()
	b := osHolding(t)
	asker := b.process(t)
	p, name := startHolder(t, "hold", b.dir)
	mustDo(t, p.In.Close())
	_, err := p.Rest()
	mustDo(t, err)
	wantHolderDead(t, asker.Store, name, true)
}

// A process that is stopped is not dead.
func TestStoppedHolderLives(t *testing.T) {
	t.Parallel()
	b := osHolding(t)
	asker := b.process(t)
	p, name := startHolder(t, "hold", b.dir)
	pid := p.Cmd.Process.Pid
	mustDo(t, syscall.Kill(pid, syscall.SIGSTOP))
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, syscall.WUNTRACED, nil)
		if !errors.Is(err, syscall.EINTR) {
			mustDo(t, err)
			break
		}
	}
	if !status.Stopped() {
		t.Fatalf("the child is %#x", status)
	}
	wantHolderDead(t, asker.Store, name, false)
	sweepHolders(t, asker.Store)
	b.wantFiles(t, name)
	mustDo(t, syscall.Kill(pid, syscall.SIGCONT))
	p.Kill(t)
	wantHolderDead(t, asker.Store, name, true)
}

// A command that inherited the descriptor keeps its parent's claims after that was
// killed, until it ends itself; one that did not inherit it keeps nothing.
func TestInheritedHolder(t *testing.T) {
	for _, how := range []string{"inherits", "does not inherit"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := osHolding(t)
			asker := b.process(t)
			p, name := startHolder(t, "hold and run", b.dir, how)
			wantHolderDead(t, asker.Store, name, false)
			// Only the parent: the command has its pipes, so Wait would wait for both.
			mustDo(t, p.Cmd.Process.Kill())
			_, err := p.Cmd.Process.Wait()
			mustDo(t, err)
			wantHolderDead(t, asker.Store, name, how != "inherits")
			sweepHolders(t, asker.Store, name)
			b.wantFiles(t, name)
			mustDo(t, p.In.Close()) // the command ends
			b.awaitFree(t, name)
			wantHolderDead(t, asker.Store, name, true)
		})
	}
}

// awaitFree waits in the kernel until nobody holds.
func (b holdingBench) awaitFree(t *testing.T, h token) {
	t.Helper()
	f, err := os.Open(b.at(h.String()))
	mustDo(t, err)
	defer f.Close()
	mustDo(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
}

// Processes come and go while another sweeps all the time: no living one loses its
// file, and at the end nothing is left.
func TestHoldersWhileSweeping(t *testing.T) {
	t.Parallel()
	const processes, lives = 8, 12
	b := osHolding(t)
	asker := b.process(t)
	children := make([]*process, processes)
	for i := range children {
		children[i] = start(t, "hold many", b.dir, fmt.Sprint(lives))
	}
	ended := make(chan error, processes)
	for _, p := range children {
		go func() {
			lines, err := p.Rest()
			if err == nil && (len(lines) != 1 || lines[0] != "done") {
				err = fmt.Errorf("it said %q", lines)
			}
			ended <- err
		}()
	}
	sweeps := 0
	for left := processes; left > 0; sweeps++ {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			left--
		default:
			sweepHolders(t, asker.Store)
		}
	}
	sweepHolders(t, asker.Store)
	b.wantFiles(t)
	t.Logf("%d holders came and went under %d sweeps", processes*lives, sweeps)
}

// holdMany takes a directory and how many processes it plays, one after the other.
func holdMany(args []string) error {
	lives, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	other, err := Open(context.Background(), args[0], nil)
	if err != nil {
		return err
	}
	for range lives {
		p := &holding{set: &holderSet{}}
		if p.Store, err = Open(context.Background(), args[0], &Options{holders: p.set}); err != nil {
			return err
		}
		name, err := holdNow(p.Store)
		if err != nil {
			return err
		}
		for range 3 { // others sweep between
			if err := stillHolds(other, p, name); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		p.kill()
	}
	fmt.Println("done")
	return other.Close()
}

// stillHolds checks that a living holder is not dead and that its path names the file
// that it has locked.
func stillHolds(s *Store, p *holding, name token) error {
	return proveUnderLock(s, func(v *prover) error {
		if dead, err := v.dead(name); dead || err != nil {
			return fmt.Errorf("dead: %v, %w", dead, err)
		}
		dir, err := v.holders()
		if err != nil {
			return err
		}
		info, err := dir.Lstat(name.String())
		if err != nil {
			return err
		}
		for _, made := range p.set.made {
			if is, err := made.file.Info(); err != nil || is.Identity != info.Identity {
				return fmt.Errorf("the path names %v, locked is %v, %v", info.Identity, is.Identity, err)
			}
		}
		return nil
	})
}
