//go:build unix

package crashtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// An interleaver is one exploration.
type interleaver struct {
	t     *testing.T
	s     Interleaving
	o     InterleaveOptions
	start *Disk
	draw  *rand.Rand
	ran   []schedule // all that were explored
	usual int        // steps of the usual one
	stats InterleaveStats
}

func interleave(t *testing.T, s Interleaving, o InterleaveOptions) (InterleaveStats, error) {
	x := &interleaver{t: t, s: s, o: o.withDefaults(), start: NewDisk(), draw: rand.New(rand.NewPCG(o.Seed, 0))}
	if err := guard(t, x.o.Timeout, func(t testing.TB) error { s.Setup(t, x.start); return nil }); err != nil {
		return x.stats, fmt.Errorf("interleaving %s: Setup: %w", s.Name, err)
	}
	x.start.Settle()
	if text := os.Getenv("CRASHTEST_REPLAY"); text != "" {
		return x.stats, x.replay(text)
	}
	for _, part := range []func() error{x.bounded, x.random, x.kills, x.losses} {
		if err := part(); err != nil {
			return x.stats, err
		}
	}
	t.Logf("interleaving %s: %v", s.Name, x.stats)
	return x.stats, nil
}

// bounded explores the schedules with few preemptions, those with fewer first. Each is
// one that was run before it and one more switch, behind its last.
func (x *interleaver) bounded() error {
	level := []schedule{{}}
	for p := 0; p <= x.o.Preemptions && len(level) > 0; p++ {
		if len(level) > x.o.MaxSchedules {
			x.draw.Shuffle(len(level), func(i, j int) { level[i], level[j] = level[j], level[i] })
		}
		var next []schedule
		ran := 0
		for ; ran < min(len(level), x.o.MaxSchedules); ran++ {
			s := level[ran]
			r, err := x.explore(&s, s.choose)
			if err != nil {
				return err
			}
			for n := s.last() + 1; n < len(r.steps); n++ {
				for _, other := range r.steps[n].others {
					if child := s.with(r.steps[:n], other); r.steps[n].free {
						level = append(level, child)
					} else {
						next = append(next, child)
					}
				}
			}
			if p == 0 && ran == 0 {
				x.usual = len(r.steps)
			}
		}
		x.stats.Schedules, x.stats.Possible = append(x.stats.Schedules, ran), append(x.stats.Possible, len(level))
		if ran < len(level) {
			break // from here on not all of them are known
		}
		level = next
	}
	return nil
}

// random explores schedules with more preemptions.
func (x *interleaver) random() error {
	for range x.o.Random {
		var s schedule
		preemptions := len(x.stats.Schedules) + x.draw.IntN(4)
		if _, err := x.explore(&s, s.wander(x.draw, preemptions, max(1, x.usual))); err != nil {
			return err
		}
		x.stats.Random++
	}
	return nil
}

// explore runs one schedule and checks its end. The chooser may add to it.
func (x *interleaver) explore(s *schedule, choose chooser) (*run, error) {
	r := x.run(*s, choose, false)
	x.ran = append(x.ran, *s)
	return r, x.live(r, *s)
}

func (x *interleaver) run(s schedule, choose chooser, cuts bool) *run {
	r := stage(x.t, x.s, x.start, s, choose, cuts)
	x.stats.Steps += len(r.steps)
	for n, was := range s.like {
		if r.err == nil && (n >= len(r.steps) || r.steps[n].choice != was.choice || r.steps[n].what != was.what) {
			r.err = fmt.Errorf("step %d: %w", n, errMisfit)
		}
	}
	return r
}

// spread gives so many of the schedules that were explored, evenly.
func (x *interleaver) spread(n int) (out []schedule) {
	n = min(n, len(x.ran))
	for i := range n {
		out = append(out, x.ran[i*len(x.ran)/n])
	}
	return out
}

// kills kills every client at every step of some schedules.
func (x *interleaver) kills() error {
	for _, s := range x.spread(x.o.Kills) {
		whole := x.run(s, s.choose, false)
		for n, made := range whole.steps {
			s.like = whole.steps[:n]
			var deaths []*killAt
			for _, c := range made.active {
				deaths = append(deaths, &killAt{n, c, false})
			}
			for _, s.kill = range append(deaths, &killAt{n, made.client, true}) {
				r := x.run(s, s.choose, false)
				x.stats.Kills++
				found := r.end
				if x.o.AfterKill > 0 {
					found.disk = r.disk.Clone() // the check goes on with the other
				}
				if err := x.live(r, s); err != nil {
					return err
				}
				if x.o.AfterKill > 0 {
					if err := x.off(r, s, found, offAtEnd, x.o.AfterKill); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// losses takes the power away before every step of some schedules, and at their ends.
func (x *interleaver) losses() error {
	for _, s := range x.spread(x.o.Losses) {
		r := x.run(s, s.choose, true)
		if r.err != nil {
			return x.finding(r, s, r.disk, r.err)
		}
		for _, c := range r.cuts {
			if err := x.off(r, s, c, c.step+1, x.o.MaxImages); err != nil {
				return err
			}
		}
		if err := x.off(r, s, r.end, offAtEnd, x.o.MaxImages); err != nil {
			return err
		}
	}
	return nil
}

// live checks the end of a run on its disk.
func (x *interleaver) live(r *run, s schedule) error {
	if r.err != nil {
		return x.finding(r, s, r.disk, r.err)
	}
	return x.check(r, s, r.end, false)
}

// off checks images of the disk after a power loss.
func (x *interleaver) off(r *run, s schedule, c cut, at, images int) error {
	x.stats.Losses++
	s.off = at
	for _, l := range x.drawn(c.disk, images) {
		img := c
		img.disk = c.disk.Clone().after(l)
		s.image = img.disk.Desc()
		x.stats.Images++
		if err := x.check(r, s, img, true); err != nil {
			return err
		}
	}
	return nil
}

// drawn gives up to n losses of a disk, the first of which loses everything; of a lone
// one that is a matter of luck.
func (x *interleaver) drawn(d *Disk, n int) (out []loss) {
	const among = 64
	losses := d.sample(among, x.draw.Uint64())
	if d.count(among) <= among {
		losses = d.everyLoss()
	}
	first := 1 // of those that can be replaced
	if n == 1 {
		first = x.draw.IntN(2)
	}
	seen := 0
	for l := range losses {
		seen++
		if len(out) < n {
			out = append(out, l)
		} else if at := x.draw.IntN(seen); at >= first && at < n {
			out[at] = l
		}
	}
	return out
}

// check lets a new process look at what a run left.
func (x *interleaver) check(r *run, s schedule, c cut, lost bool) error {
	p := c.disk.Process()
	defer p.Kill()
	wr := Wrap(p, Plan{Spell: true})
	err := guard(x.t, x.o.Timeout, func(t testing.TB) error { return c.check(t, wr, lost) })
	x.stats.Checks++
	if err != nil {
		return x.finding(r, s, c.disk, err)
	}
	return nil
}
