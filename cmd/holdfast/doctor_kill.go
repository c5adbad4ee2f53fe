//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/internal/doctor"
	"example.com/holdfast/internal/doctor/steps"
)

// stepsPerRound is how many steps a worker makes at most before it is killed.
const stepsPerRound = 40

// A killTest kills a worker again and again, and looks each time what it left behind.
type killTest struct {
	a      *app
	rand   *rand.Rand
	state  *steps.State  // what the store holds
	pace   time.Duration // of a step, as seen last
	result killResult
}

// killResult is the machine form of the test.
type killResult struct {
	OK             bool     `json:"ok"`
	Seed           uint64   `json:"seed"`
	Rounds         int      `json:"rounds"`       // that were finished
	Acknowledged   uint64   `json:"acknowledged"` // calls that were answered
	CutOff         int      `json:"cut_off"`      // calls that the kill left without an answer
	CutOffDone     int      `json:"cut_off_done"` // those of them that had happened, whole
	DeathsInCommit int      `json:"deaths_in_commit"`
	Failures       []string `json:"failures"`
	Dir            string   `json:"dir"` // of the store, kept after a failure; empty: it is removed
}

// killTest runs the rounds on a store of its own.
func (a *app) killTest(ctx context.Context, f doctorFlags) error {
	if err := a.place(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(a.dir, doctor.KillPrefix)
	if err != nil {
		return a.aboutPlace(err)
	}
	k := newKillTest(a, dir, f.seed)
	if !a.json {
		a.printf("killing a worker in %s, seed %d\n", plural(int64(f.rounds), "round"), f.seed)
		a.out.Flush() // an error of stdout comes out at the end
	}
	err = k.run(ctx, f.rounds)
	if err == nil && len(k.result.Failures) == 0 && k.result.Acknowledged == 0 && k.result.CutOff == 0 {
		k.fail("no worker made a call: nothing was tested")
	}
	if err == nil && len(k.result.Failures) > 0 {
		return k.failed()
	}
	if left := os.RemoveAll(dir); left != nil {
		return a.aboutPlace(errors.Join(left, err))
	}
	if interrupted(err) {
		return &stoppedError{fmt.Sprintf("stopped after %s; nothing was wrong, and the store is removed", plural(int64(k.result.Rounds), "round"))}
	}
	if err != nil {
		return a.aboutPlace(err)
	}
	k.result.OK, k.result.Dir = true, ""
	k.print()
	return nil
}

func newKillTest(a *app, dir string, seed uint64) *killTest {
	return &killTest{
		a: a, rand: rand.New(rand.NewPCG(seed, 1)), state: steps.New(seed), pace: time.Millisecond,
		result: killResult{Seed: seed, Dir: dir, Failures: []string{}},
	}
}

func (k *killTest) run(ctx context.Context, rounds int) error {
	o := k.a.options()
	o.OnDeadOwner = holdfast.Stop // so that a death inside a commit is seen
	if err := use(ctx, k.a.engine.create, k.result.Dir, o, func(store) error { return nil }); err != nil {
		return err
	}
	for range rounds {
		if err := k.round(ctx); err != nil {
			return err
		}
		if len(k.result.Failures) > 0 {
			return nil // what comes after would rest on it
		}
		k.result.Rounds++
		if !k.a.json && k.a.tty(k.a.stderr) {
			fmt.Fprintf(k.a.stderr, "\r%d of %d rounds\x1b[K", k.result.Rounds, rounds)
		}
	}
	if !k.a.json && k.a.tty(k.a.stderr) {
		fmt.Fprint(k.a.stderr, "\r\x1b[K")
	}
	return nil
}

// A killJournal is what the parent heard of the worker: it outlives the kill.
type killJournal struct {
	tried, acknowledged uint64
	words               []string  // other than these
	begun, answered     time.Time // when the first was tried and the last acknowledged
	enough              uint64    // once this one is tried, reached is closed
	reached             chan struct{}
}

func (j *killJournal) note(line string) {
	if n, ok := stepIn(line, "acknowledged"); ok {
		j.acknowledged, j.answered = n, time.Now()
		return
	}
	n, ok := stepIn(line, "trying")
	if !ok {
		j.words = append(j.words, line)
		return
	}
	if j.tried = n; j.begun.IsZero() {
		j.begun = time.Now()
	}
	if n == j.enough {
		close(j.reached)
	}
}

// pace is how long a step took, from n on.
func (j *killJournal) pace(from uint64) (time.Duration, bool) {
	if j.acknowledged == from {
		return 0, false
	}
	return j.answered.Sub(j.begun) / time.Duration(j.acknowledged-from), true
}

// round starts a worker, kills it at a random moment, and judges.
func (k *killTest) round(ctx context.Context) error {
	self, err := os.Executable() // an absolute path: nothing is searched for
	if err != nil {
		return err
	}
	from := k.state.Steps
	j := &killJournal{
		tried: from, acknowledged: from,
		enough: from + 1 + k.rand.Uint64N(stepsPerRound), reached: make(chan struct{}),
	}
	late := k.rand.Float64()
	args := []string{
		"doctor-worker", "--dir", k.result.Dir, "--seed", fmt.Sprint(k.result.Seed), "--from", fmt.Sprint(from), "--steps", fmt.Sprint(2 * stepsPerRound),
	}
	if k.a.unsafe {
		args = append(args, "--allow-unsafe-root")
	}
	p, err := startProcess(self, args, j.note)
	if err != nil {
		return err
	}
	defer p.kill()
	select {
	case <-j.reached:
	case <-p.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	// Somewhere in this step or the one behind it; how long they take is known from the
	// last round.
	if err := sleep(ctx, time.Duration(late*float64(2*k.pace))); err != nil {
		return err
	}
	code, err := p.end()
	if err != nil {
		return err
	}
	if pace, ok := j.pace(from); ok {
		k.pace = pace
	}
	if len(j.words) > 0 {
		k.fail("the worker said: %s", strings.Join(j.words, "; "))
		return nil
	}
	if done := j.acknowledged - from; code >= 0 && done < 2*stepsPerRound {
		k.fail("the worker ended by itself, with exit code %d, after %s", code, plural(int64(done), "call"))
		return nil
	}
	return k.judge(ctx, j.tried, j.acknowledged)
}

func (k *killTest) fail(format string, args ...any) {
	k.result.Failures = append(k.result.Failures, fmt.Sprintf(format, args...))
}

// judge compares the store with what was acknowledged: it must hold every step up to
// that one, and of the next, if it was tried, all or nothing.
func (k *killTest) judge(ctx context.Context, tried, acknowledged uint64) error {
	begun := k.state.Steps
	for k.state.Steps < acknowledged {
		k.state.Skip()
	}
	k.result.Acknowledged += acknowledged - begun
	if tried > acknowledged {
		k.result.CutOff++
	}
	var seen steps.Sight
	err := use(ctx, k.a.engine.open, k.result.Dir, k.a.options(), func(s store) error {
		r, err := s.Recover(ctx)
		if err != nil {
			return err
		}
		if r.Owner != nil {
			k.result.DeathsInCommit++
		}
		seen, err = steps.Look(ctx, s)
		return err
	})
	var faults holdfast.Report
	if err == nil {
		faults, err = k.a.engine.verify(ctx, k.result.Dir, k.a.options(), holdfast.VerifyOptions{})
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case saysNothing(err):
		return err
	case err != nil:
		k.fail("after step %d the store cannot be read: %v", acknowledged, err)
		return nil
	}
	for _, f := range faults.Faults {
		k.fail("after step %d verify found a fault: %s: %s", acknowledged, f.File, f.Reason)
	}
	why := k.state.Differs(seen)
	if why != "" && tried > acknowledged {
		next := k.state.Clone()
		if next.Skip(); next.Differs(seen) == "" {
			k.state, why = next, ""
			k.result.CutOffDone++
		}
	}
	if why != "" {
		k.fail("step %d was acknowledged, step %d was begun, and the store holds neither: compared with step %d: %s", acknowledged, tried, acknowledged, why)
	}
	return nil
}

// failed tells what was wrong, and what to send to whoever can mend it.
func (k *killTest) failed() error {
	k.print()
	return about(fmt.Errorf("%w in round %d: %s; please report it with this output, what \"holdfast doctor --json\" says here, and the store, which is kept in %s",
		errKillTest, k.result.Rounds+1, k.result.Failures[0], k.result.Dir), facts{run: "holdfast version --json"})
}

func (k *killTest) print() {
	a, r := k.a, k.result
	if a.json {
		a.printJSON(r)
		return
	}
	a.printf("%s, %s answered, %d cut off by the kill\n", plural(int64(r.Rounds), "round"), plural(int64(r.Acknowledged), "call"), r.CutOff)
	a.printf("of those cut off %d had happened, whole, and %d had not (allowed)\n", r.CutOffDone, r.CutOff-r.CutOffDone)
	a.printf("%s\n", deathsText(r.DeathsInCommit))
	for _, f := range r.Failures {
		a.printf("failure: %s\n", printable(f))
	}
	if r.OK {
		a.printf("PASS\n")
	} else {
		a.printf("FAIL\n")
	}
}

func deathsText(n int) string {
	switch n {
	case 0:
		return "no death inside a commit: that is chance; more rounds meet one"
	case 1:
		return "1 death inside a commit, recovered"
	}
	return fmt.Sprintf("%d deaths inside a commit, each recovered", n)
}
