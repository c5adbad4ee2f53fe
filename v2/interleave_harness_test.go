//go:build unix

package holdfast

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/internal/history"
	"example.com/holdfast/queue"
)

// The interleaving tests let several processes use one store, one operation of one of
// them at a time. What they saw, and what a new process finds in the end, must be
// explained by one call after another: of those that were cut off by a death, each
// happened before it or not at all; all the others happened.

// An interScene is a store and what its processes do.
type interScene struct {
	name     string
	consent  bool                // the store recovers by itself
	dead     bool                // a dead owner's record stands in the lock
	absent   bool                // there is no store yet
	setup    func(c *interCalls) // calls that were made before
	programs []func(c *interClient)
}

// An interEvent is the beginning or the end of a call.
type interEvent struct {
	call   int
	begins bool
	caller int
	step   history.Step
	answer history.Answer
	died   bool
}

// interCalls are calls that were made, in the order of their beginnings and ends.
type interCalls struct {
	store *Store
	clock *history.Clock

	mu       sync.Mutex
	calls    int
	events   []interEvent
	receipts []string // that the set-up was given
}

func (l *interCalls) begin(caller int, st history.Step) (call int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	l.events = append(l.events, interEvent{call: l.calls, begins: true, caller: caller, step: st})
	return l.calls
}

func (l *interCalls) end(call int, a history.Answer, died bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, interEvent{call: call, answer: a, died: died})
}

// forget takes a call back that did nothing, and is no call of the contract.
func (l *interCalls) forget(call int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = slices.DeleteFunc(l.events, func(e interEvent) bool { return e.call == call })
}

// made makes a call of the set-up.
func (l *interCalls) made(st history.Step) {
	call := l.begin(0, st)
	a, err := history.On(l.store, l.clock)(context.Background(), st)
	if err != nil {
		panic(err) // the harness's watch reports it
	}
	l.end(call, a, false)
	l.receipts = append(l.receipts, a.Receipts()...)
}

// cut gives the events up to now. What is under way never ends.
func (l *interCalls) cut() []interEvent {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := slices.Clone(l.events)
	open := map[int]bool{}
	for _, e := range out {
		open[e.call] = e.begins
	}
	for call := range l.calls {
		if open[call+1] {
			out = append(out, interEvent{call: call + 1, died: true})
		}
	}
	return out
}

// retell records calls as they were made.
func retell(r *history.Record, events []interEvent) error {
	type under struct {
		end  chan interEvent
		told chan error
	}
	calls := map[int]under{}
	for _, e := range events {
		if !e.begins {
			calls[e.call].end <- e
			if err := <-calls[e.call].told; err != nil && !errors.Is(err, history.ErrDied) {
				return err
			}
			continue
		}
		c, began := under{make(chan interEvent), make(chan error)}, make(chan struct{})
		calls[e.call] = c
		go func() {
			_, err := r.Do(e.caller, e.step, func() (history.Answer, error) {
				close(began)
				end := <-c.end
				if end.died {
					return history.Answer{}, history.ErrDied
				}
				return end.answer, nil
			})
			c.told <- err
		}()
		<-began
	}
	return nil
}

// interOptions gives a process of a scene. What it draws is the same in every run.
func interOptions(fs fsguard.FS, who byte, now time.Time) *Options {
	o := crashOptions(fs)
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(who)+1<<40)
	o.rand = rand.NewChaCha8(seed)
	o.block = 1 // the fourth message of a queue seals two
	at := crashClock.at
	at.Boot += now.Sub(at.Wall)
	at.Wall = now
	o.clock = fixedClock{at}
	return o
}

// interleaving is the scene for the explorer.
func (c *interScene) interleaving() crashtest.Interleaving {
	base := &interCalls{clock: history.NewClock()}
	return crashtest.Interleaving{
		Name: c.name, Clients: len(c.programs),
		Setup: func(t testing.TB, d *crashtest.Disk) { c.make(t, d, base) },
		Begin: func() crashtest.Play { return &interPlay{scene: c, base: base, clients: map[int]*interClient{}} },
	}
}

func (c *interScene) make(t testing.TB, d *crashtest.Disk, base *interCalls) {
	d.MkdirAll("/data")
	if c.absent {
		return
	}
	o := interOptions(d.Process(), 's', base.clock.Now())
	o.clock = linClock{base.clock}
	if c.consent {
		o.OnDeadOwner = AutoRecover
	}
	s, err := Create(t.Context(), crashDir, o)
	if err != nil {
		t.Fatal(err)
	}
	base.store = s
	if c.setup != nil {
		c.setup(base)
	}
	s.Close()
	if c.dead {
		space := crashDir + "/" + namespaceDir
		d.WriteRaw(space+"/"+lockFile, encodeRecord(newOwner(token{7}, crashClock.at)))
		d.WriteRaw(space+"/"+stateTemp(token{9}), []byte("half"))
	}
}

// An interPlay is one run of a scene.
type interPlay struct {
	interCalls
	scene   *interScene
	base    *interCalls
	clients map[int]*interClient
	deaths  int
	made    int // stores, as their makers were told
}

// An interClient is one process of it.
type interClient struct {
	*crashtest.Client
	play  *interPlay
	store *Store
	given []string // receipts of the set-up

	mu  sync.Mutex
	err error // the first that nothing explains
}

func (c *interClient) options() *Options {
	return interOptions(c.FS, byte(c.Index), c.play.base.clock.Now())
}

func (p *interPlay) Open(c *crashtest.Client) (err error) {
	own := &interClient{Client: c, play: p, given: p.base.receipts}
	p.clients[c.Index] = own
	if !p.scene.absent {
		own.store, err = Open(context.Background(), crashDir, own.options())
	}
	return err
}

func (p *interPlay) Run(c *crashtest.Client) error {
	own := p.clients[c.Index]
	p.scene.programs[c.Index](own)
	return own.err
}

// Kill records the death as a call: before it is over no reaping may return the leases
// of the process, after it the next one does.
func (p *interPlay) Kill(c *crashtest.Client, kill func()) {
	call := p.begin(c.Index, history.Step{Op: history.Die, Holder: c.Name()})
	kill()
	p.end(call, history.Answer{}, false)
	p.deaths++
}

// do makes a call. An owner that died is recovered from, and the call made again.
func (c *interClient) do(st history.Step) history.Answer {
	for {
		c.step(st.Op)
		call := c.play.begin(c.Index, st)
		a, err := history.Perform(context.Background(), c.store, st)
		switch {
		case c.Dead():
			c.play.end(call, a, true)
			return history.Answer{}
		case errors.Is(err, ErrStaleLock):
			c.play.forget(call)
			if c.play.scene.consent {
				c.fail(fmt.Errorf("although the store recovers by itself: %w", err))
				return a
			}
			c.recover()
		case err != nil:
			c.play.forget(call)
			c.fail(fmt.Errorf("%s: %w", jsonOf(st), err))
			return a
		default:
			c.play.end(call, a, false)
			return a
		}
	}
}

// recover is the operator's act.
func (c *interClient) recover() {
	c.step("recover")
	if _, err := c.store.Recover(context.Background()); err != nil && !c.Dead() {
		c.fail(fmt.Errorf("recover: %w", err))
	}
}

// step lets the scheduler say when the next call begins. A dead client's call ends as
// soon as it begins.
func (c *interClient) step(what string) { _ = c.Pause(what) }

func (c *interClient) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// Cut implements crashtest.Play.
func (p *interPlay) Cut() func(t testing.TB, fs fsguard.FS, lost bool) error {
	events, made := p.cut(), p.made
	return func(t testing.TB, fs fsguard.FS, lost bool) error {
		r := &history.Record{}
		if err := retell(r, p.base.cut()); err != nil {
			return err
		}
		if err := retell(r, events); err != nil {
			return err
		}
		s, err := p.scene.find(interOptions(fs, 'z', p.base.clock.Now()), made)
		if err != nil {
			return err
		}
		defer s.Close()
		if err := p.look(r, s, lost); err != nil {
			return err
		}
		return r.Check(&history.Model{Now: history.Begin})
	}
}

// find opens the store as a new process, and recovers it.
func (c *interScene) find(o *Options, made int) (*Store, error) {
	ctx := context.Background()
	s, err := Open(ctx, crashDir, o)
	if c.absent && made == 0 {
		switch { // nobody was told that there is one
		case errors.Is(err, ErrNoStore):
			s, err = Create(ctx, crashDir, o)
		case errors.Is(err, ErrInterruptedInit):
			s, err = ResumeCreate(ctx, crashDir, o)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	status, err := s.Status(ctx, queue.StatusOptions{})
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	if !status.Settled {
		if _, err := s.Clear(ctx, "nothing", queue.ClearOptions{}); !errors.Is(err, ErrStaleLock) || c.consent {
			return nil, fmt.Errorf("a call under a dead owner's record: %v", err)
		}
		if _, err := s.Recover(ctx); err != nil {
			return nil, fmt.Errorf("recover: %w", err)
		}
	}
	report, err := s.Verify(ctx, VerifyOptions{})
	if err != nil || !report.OK || !report.Settled {
		return nil, fmt.Errorf("verify: %+v, %v", report, err)
	}
	return s, nil
}

// look records what is there, and that the store goes on: whoever is left is dead by
// now, and the leases come back. After a power loss that is not proven by the files of
// the holders, which may be lost.
func (p *interPlay) look(r *history.Record, s *Store, lost bool) error {
	const us = 99
	on := history.On(s, nil)
	do := func(steps ...history.Step) error {
		for _, st := range steps {
			if _, err := r.Do(us, st, func() (history.Answer, error) { return on(context.Background(), st) }); err != nil {
				return err
			}
		}
		return nil
	}
	show := func(id string) history.Step { return history.Step{Op: history.Show, Queue: "mail", IDs: []string{id}} }
	status := history.Step{Op: history.Status, Queues: []string{"mail"}}
	if err := do(status, history.Step{Op: history.List, Queue: "mail"}, history.Step{Op: history.ListFailed}, show("a"), show("b")); err != nil {
		return err
	}
	if !lost {
		for _, c := range p.clients {
			die := history.Step{Op: history.Die, Holder: c.Name()}
			if _, err := r.Do(us, die, func() (history.Answer, error) { return history.Answer{}, nil }); err != nil {
				return err
			}
		}
		if err := do(history.Step{Op: history.Reap}); err != nil {
			return err
		}
	}
	return do(history.Step{Op: history.Claim, Queue: "mail", N: 9, Holder: "new"},
		history.Step{Op: history.Enqueue, Queue: "mail", IDs: []string{"b"}, IfExists: queue.Replace},
		status)
}
