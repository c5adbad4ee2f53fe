//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// demoStall is the message at which worker-A hangs.
const demoStall = 15

// mostLooks bounds how often the demo looks whether worker-B is inside a commit.
const mostLooks = 500

// start runs a worker process of this same program and books what it says.
func (d *demo) start(label string, stalled chan<- struct{}, args ...string) (*process, error) {
	self, err := os.Executable() // an absolute path: nothing is searched for
	if err != nil {
		return nil, err
	}
	args = append([]string{"demo-worker", "--dir", d.a.dir, "--label", label}, args...)
	return startProcess(self, args, func(text string) {
		if d.ledger.note(label, text) && stalled != nil {
			close(stalled)
		}
	})
}

// kill runs two workers and kills both: worker-A in the middle of a message,
// worker-B inside a commit.
func (d *demo) kill(ctx context.Context) error {
	stalled := make(chan struct{})
	workerA, err := d.start("worker-A", stalled, "--stall-after", fmt.Sprint(demoStall))
	if err != nil {
		return err
	}
	defer workerA.kill()
	workerB, err := d.start("worker-B", nil)
	if err != nil {
		return err
	}
	defer workerB.kill()
	d.say("2. Two workers, worker-A (pid %d) and worker-B (pid %d).", workerA.pid, workerB.pid)

	select {
	case <-stalled:
	case <-workerA.done:
		return fmt.Errorf("%w: worker-A ended early: %v", errDemo, d.ledger.words())
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := workerA.kill(); err != nil {
		return err
	}
	for id := range d.ledger.openOf("worker-A") {
		d.result.KilledInMessage = id
	}
	d.say("   worker-A hangs in the middle of %s: SIGKILL.", d.result.KilledInMessage)

	if err := d.killInCommit(ctx, workerB); err != nil {
		return err
	}
	d.say("   worker-B was stopped at random until it stood inside a commit (%s): SIGKILL.", plural(int64(d.result.Looks), "look"))
	d.say("   %d of %d are acked so far.", d.ledger.settled(), d.result.Messages)
	return nil
}

// killInCommit halts the worker at odd moments. Where the lock's record names it,
// it is inside a commit and is killed there; else it goes on.
func (d *demo) killInCommit(ctx context.Context, p *process) error {
	for look := range mostLooks {
		if err := sleep(ctx, time.Duration(1+look*7%13)*300*time.Microsecond); err != nil {
			return err
		}
		stopped, err := p.stop()
		if err != nil {
			return err
		}
		if !stopped {
			return fmt.Errorf("%w: worker-B ended before it was met inside a commit: %v", errDemo, d.ledger.words())
		}
		inside, err := d.ownedBy(p.pid)
		if err != nil {
			return err
		}
		if inside {
			d.result.Looks, d.result.KilledInCommit = look+1, p.pid
			return p.kill()
		}
		if err := p.resume(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: worker-B was not met inside a commit in %d looks", errDemo, mostLooks)
}

// ownedBy reads the record in the transfer lock from outside, as an operator with
// cat would: docs/format-v2.md has its form. It is blank between transitions.
func (d *demo) ownedBy(pid int) (bool, error) {
	record, err := os.ReadFile(filepath.Join(d.a.dir, ".fs-safe-queue-v2", ".state-transfer.lock"))
	if err != nil {
		return false, err
	}
	if len(bytes.TrimSpace(record)) == 0 {
		return false, nil
	}
	var owner struct {
		PID int `json:"pid"`
	}
	if json.Unmarshal(record, &owner) != nil {
		return false, nil // it is being written just now
	}
	return owner.PID == pid, nil
}

// recover shows what is stuck and why, and then recovers.
func (d *demo) recover(ctx context.Context) error {
	o := d.a.options()
	o.LookAfter = lookAfter
	d.say("3. What is stuck, and why:")
	err := use(ctx, d.a.engine.look, d.a.dir, o, func(s store) error {
		st, err := s.Status(ctx, queue.StatusOptions{})
		if err != nil {
			return err
		}
		if st.Settled || st.Owner == nil || st.Owner.PID != d.result.KilledInCommit || st.Complete() {
			return fmt.Errorf("%w: the status does not show the dead owner: %+v", errDemo, st)
		}
		if !d.a.json {
			d.a.printStatus(ctx, st)
		}
		return eachLive(ctx, s, demoQueue, func(e queue.Entry) {
			if e.State == queue.Processing {
				d.say("   %s: %s; %s is dead, and no deadline will end its lease.", e.ID, stateText(e), e.Label)
			}
		})
	})
	if err != nil {
		return err
	}
	_, err = d.s.Claim(ctx, demoQueue, queue.ClaimOptions{WithoutHolder: true})
	if !errors.Is(err, holdfast.ErrStaleLock) {
		return fmt.Errorf("%w: a claim under a dead owner's record was answered with: %v", errDemo, err)
	}
	d.say("   A claim is refused: %v.", err)
	d.say("4. The operator consents: holdfast recover")
	r, err := d.s.Recover(ctx)
	if err != nil {
		return err
	}
	if r.Owner == nil {
		return fmt.Errorf("%w: there was nothing to recover", errDemo)
	}
	d.say("   Recovered at revision %d; nothing was undone.", r.Revision)
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
