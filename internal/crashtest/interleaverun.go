//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/holdfast/internal/fsguard"
)

// maxSteps is how many steps a run may have: clients that wait for one another in
// turns would never end.
const maxSteps = 20_000

// A choice is a client, and of its operations that wait the which-th.
type choice struct{ client, which int }

// A step is one that was made.
type step struct {
	choice
	what   string   // the operation
	others []choice // what else could have been let through
	free   bool     // whoever made the step before could not go on
	active []int    // the clients that were not done and not dead
}

// A cut is a run as it was before a step, or at its end.
type cut struct {
	step  int
	disk  *Disk
	check func(t testing.TB, fs fsguard.FS, lost bool) error
}

// A run is one play under a schedule.
type run struct {
	s       Interleaving
	play    Play
	disk    *Disk
	clients []*Client
	done    []bool // under the clients' own mutexes
	errs    []error

	steps []step
	cuts  []cut // before each step, if they are wanted
	end   cut
	err   error // a finding
}

// errMisfit is what a schedule gets that names a client that cannot go on.
var errMisfit = errors.New("the schedule does not fit: the run is not the same every time")

// stage runs a play on a copy of start. choose says who comes next.
func stage(t *testing.T, s Interleaving, start *Disk, plan schedule, choose chooser, cuts bool) *run {
	r := &run{s: s, disk: start.Clone(), done: make([]bool, s.Clients), errs: make([]error, s.Clients)}
	synctest.Test(t, func(*testing.T) {
		r.play = s.Begin()
		for i := range s.Clients {
			c := newClient(r.disk, i)
			r.clients = append(r.clients, c)
			if err := r.play.Open(c); err != nil {
				r.err = fmt.Errorf("opening client %s: %w", c.name, err)
				return
			}
		}
		for _, c := range r.clients {
			c.stepped = true
			go r.client(c)
		}
		r.err = r.schedule(plan, choose, cuts)
		if r.err == nil {
			r.end = cut{len(r.steps), r.disk, r.play.Cut()}
		}
		for _, c := range r.clients {
			c.die()
		}
	})
	for i, c := range r.clients {
		if v := c.FS.Violations(); len(v) > 0 && r.err == nil && !(plan.kill != nil && plan.kill.client == i) {
			r.err = fmt.Errorf("client %s broke a rule: %s", c.name, strings.Join(v, "; "))
		}
	}
	return r
}

// client runs the program of c.
func (r *run) client(c *Client) {
	var err error
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		r.done[c.Index], r.errs[c.Index] = true, err
	}()
	err = r.play.Run(c)
}

// schedule lets one operation after the other through until all are done.
func (r *run) schedule(plan schedule, choose chooser, cuts bool) error {
	last := -1 // the client that made the last step
	for kill := plan.kill; ; {
		synctest.Wait()
		n := len(r.steps)
		active, err := r.active()
		if err != nil {
			return err
		}
		if kill != nil && kill.step == n && !kill.after {
			c := r.clients[kill.client]
			kill = nil
			r.play.Kill(c, func() { c.die(); synctest.Wait() })
			continue
		}
		options := r.options()
		switch {
		case len(active) == 0:
			return nil
		case len(options) == 0:
			return fmt.Errorf("nobody can go on: %s", r.waits())
		case n == maxSteps:
			return fmt.Errorf("no end after %d steps: %s", n, r.waits())
		}
		if cuts {
			r.cuts = append(r.cuts, cut{n, r.disk.Clone(), r.play.Cut()})
		}
		usual, free := usually(options, last)
		next, ok := choose(n, options, usual, free)
		if !ok {
			if plan.kill == nil || kill != nil {
				return fmt.Errorf("step %d: %w", n, errMisfit)
			}
			next = usual // after a death all may be different
		}
		c := r.clients[next.client]
		t := c.waiting()[next.which]
		r.steps = append(r.steps, step{
			choice: next, what: t.String(), free: free, active: active,
			others: slices.DeleteFunc(options, func(o choice) bool { return o == next }),
		})
		last = next.client
		if kill != nil && kill.step == n && kill.client == c.Index {
			kill = nil
			r.play.Kill(c, func() { c.let(t, passLast); synctest.Wait() })
			continue
		}
		c.let(t, passes)
	}
}

// active lists the clients that are neither done nor dead. A client that failed is a
// finding.
func (r *run) active() (out []int, err error) {
	for i, c := range r.clients {
		c.mu.Lock()
		done, dead, err := r.done[i], c.dead, r.errs[i]
		c.mu.Unlock()
		switch {
		case dead:
		case err != nil:
			return nil, fmt.Errorf("client %s: %w", c.name, err)
		case !done:
			out = append(out, i)
		}
	}
	return out, nil
}

// options lists what can be let through.
func (r *run) options() (out []choice) {
	for i, c := range r.clients {
		for which, t := range c.waiting() {
			if t.ready == nil || t.ready() {
				out = append(out, choice{i, which})
			}
		}
	}
	return out
}

// usually gives who comes next where nothing else is said: whoever made the last step,
// or, if it cannot go on, the next one in turn.
func usually(options []choice, last int) (usual choice, free bool) {
	for _, o := range options {
		if o.client == last {
			return o, false
		}
	}
	for _, o := range options {
		if o.client > last {
			return o, true
		}
	}
	return options[0], true
}

// waits tells who waits for what.
func (r *run) waits() string {
	var b strings.Builder
	for _, c := range r.clients {
		for _, t := range c.waiting() {
			fmt.Fprintf(&b, "%s waits in %s; ", c.name, t)
		}
	}
	return b.String()
}

// story lists the steps.
func (r *run) story() string {
	var b strings.Builder
	for n, s := range r.steps {
		fmt.Fprintf(&b, "%4d %s %s\n", n, r.clients[s.client].name, s.what)
	}
	return b.String()
}
