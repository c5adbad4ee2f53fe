//go:build unix

package holdfast

import (
	"errors"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

// changeClaim changes the claim of a message after the call that made it.
func changeClaim(d *draft, x queue.Receipt, change func(c *claim)) {
	if d.st.queue(x.Queue) == nil {
		return
	}
	q := d.queue(x.Queue)
	if s, _ := q.find(x.ID); s != nil && s.claimed != nil {
		c := *s.claimed
		change(&c)
		q.put(x.ID, s.pending, &c)
	}
}

// wasReaped reports whether the claim that x proves was reaped.
func wasReaped(d *draft, x queue.Receipt) bool {
	s, err := d.held(x)
	return err == nil && s.claimed.returned == reaped
}

// modelReturnBugs are bugs in what returns messages, in lanes, updates and control.
var modelReturnBugs = map[string]func(c *coreCalls){
	"a release with a delay is at once": func(c *coreCalls) {
		c.release = func(d *draft, x queue.Receipt, _ time.Duration) error { return d.release(x, 0) }
	},
	"a snooze is not excused": func(c *coreCalls) {
		c.release = func(d *draft, x queue.Receipt, delay time.Duration) error {
			err := d.release(x, delay)
			if err == nil && delay > 0 {
				changeClaim(d, x, func(c *claim) { c.excused-- })
			}
			return err
		}
	},
	"a release keeps the lapse": func(c *coreCalls) {
		c.release = func(d *draft, x queue.Receipt, delay time.Duration) error {
			lapsed := wasReaped(d, x)
			err := d.release(x, delay)
			if lapsed {
				changeClaim(d, x, func(c *claim) { c.lapses, c.excused = c.lapses+1, c.excused-1 })
			}
			return err
		}
	},
	"a retry keeps the lapse": func(c *coreCalls) {
		c.retry = func(d *draft, x queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
			lapsed := wasReaped(d, x)
			out, err := d.retry(x, o)
			if lapsed {
				changeClaim(d, x, func(c *claim) { c.lapses++ })
			}
			return out, err
		}
	},
	"a retry leaves the receipt good": func(c *coreCalls) {
		c.retry = func(d *draft, x queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
			out, err := d.retry(x, o)
			if err == nil {
				changeClaim(d, x, func(c *claim) { c.returned = reaped })
			}
			return out, err
		}
	},
	"the cap counts what was excused": func(c *coreCalls) {
		c.retry = func(d *draft, x queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
			if s, err := d.held(x); err == nil {
				o.MaxFailures -= min(o.MaxFailures, s.claimed.excused)
			}
			return d.retry(x, o)
		}
	},
	"the cap counts the lapses": func(c *coreCalls) {
		c.retry = func(d *draft, x queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
			if s, err := d.held(x); err == nil && s.claimed.returned == leased {
				o.MaxFailures -= min(o.MaxFailures, s.claimed.lapses)
			}
			return d.retry(x, o)
		}
	},
	"the cap comes one failure late": func(c *coreCalls) {
		c.retry = func(d *draft, x queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
			o.MaxFailures++
			return d.retry(x, o)
		}
	},
	"a cap overwrites evidence": func(c *coreCalls) {
		c.retry = func(d *draft, x queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
			if _, err := d.held(x); err == nil && o.MaxFailures == 1 {
				_ = d.purge(d.st.queue(x.Queue).failedNS, x.ID)
			}
			return d.retry(x, o)
		}
	},
	"a retry without a cause clears the last error": func(c *coreCalls) {
		c.retry = func(d *draft, x queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
			out, err := d.retry(x, o)
			if err == nil && o.Cause == "" {
				changeClaim(d, x, func(c *claim) { c.lastError = "" })
			}
			return out, err
		}
	},
	"an extend keeps the lapse": func(c *coreCalls) {
		c.extend = func(d *draft, x queue.Receipt, length time.Duration) (time.Time, error) {
			lapsed := wasReaped(d, x)
			until, err := d.extend(x, length)
			if err == nil && lapsed {
				changeClaim(d, x, func(c *claim) { c.lapses++ })
			}
			return until, err
		}
	},
	"an extend goes on from the old deadline": func(c *coreCalls) {
		c.extend = func(d *draft, x queue.Receipt, length time.Duration) (time.Time, error) {
			old := int64(0)
			if s, err := d.held(x); err == nil {
				old = s.claimed.lease.deadline
			}
			until, err := d.extend(x, length)
			if err == nil && old > d.millis && length > 0 {
				changeClaim(d, x, func(c *claim) { c.lease.deadline = old + length.Milliseconds() })
			}
			return until, err
		}
	},
	"an extend keeps the old boot clock": func(c *coreCalls) {
		c.extend = func(d *draft, x queue.Receipt, length time.Duration) (time.Time, error) {
			boot, ends := "", int64(0)
			if s, err := d.held(x); err == nil {
				boot, ends = s.claimed.lease.bootID, s.claimed.lease.bootEnds
			}
			until, err := d.extend(x, length)
			if err == nil && boot != "" {
				changeClaim(d, x, func(c *claim) { c.lease.bootID, c.lease.bootEnds = boot, ends })
			}
			return until, err
		}
	},
	"an extend forgets the holder": func(c *coreCalls) {
		c.extend = func(d *draft, x queue.Receipt, length time.Duration) (time.Time, error) {
			until, err := d.extend(x, length)
			if err == nil {
				changeClaim(d, x, func(c *claim) { c.lease.holder = token{} })
			}
			return until, err
		}
	},
	"an extend goes beside another of its key": func(c *coreCalls) {
		c.extend = func(d *draft, x queue.Receipt, length time.Duration) (time.Time, error) {
			if wasReaped(d, x) {
				changeClaim(d, x, func(c *claim) { c.returned, c.lapses = leased, c.lapses-1 })
			}
			return d.extend(x, length)
		}
	},
	"a reaping takes live leases": func(c *coreCalls) {
		c.reap = func(d *draft, o queue.ReapOptions, dead deaths) ([]queue.Returned, error) {
			now := d.now
			d.now.Wall, d.now.Boot = now.Wall.Add(time.Minute), now.Boot+time.Minute
			defer func() { d.now = now }()
			return d.reap(o, dead)
		}
	},
	"a reaping takes one too many": func(c *coreCalls) {
		c.reap = func(d *draft, o queue.ReapOptions, dead deaths) ([]queue.Returned, error) {
			o.Limit++
			return d.reap(o, dead)
		}
	},
	"a reaping looks at all queues": func(c *coreCalls) {
		c.reap = func(d *draft, o queue.ReapOptions, dead deaths) ([]queue.Returned, error) {
			o.Queues = nil
			return d.reap(o, dead)
		}
	},
	"a reaping takes no answer for a proof": func(c *coreCalls) {
		c.reap = func(d *draft, o queue.ReapOptions, dead deaths) ([]queue.Returned, error) {
			return d.reap(o, func(holder token) (bool, error) {
				yes, err := dead(holder)
				return yes || err != nil, nil
			})
		}
	},
	"a reaping asks nobody": func(c *coreCalls) {
		c.reap = func(d *draft, o queue.ReapOptions, _ deaths) ([]queue.Returned, error) { return d.reap(o, nil) }
	},
	"a reaping stops at the first that cannot be asked": func(c *coreCalls) {
		c.reap = func(d *draft, o queue.ReapOptions, dead deaths) (out []queue.Returned, err error) {
			err = d.atomically(func() (err error) {
				var trouble error
				out, err = d.reap(o, func(holder token) (bool, error) {
					yes, err := dead(holder)
					trouble = errors.Join(trouble, err)
					return yes, err
				})
				return errors.Join(err, trouble)
			})
			return out, err
		}
	},
	"the newest are reaped first": func(c *coreCalls) {
		c.reap = func(d *draft, o queue.ReapOptions, dead deaths) ([]queue.Returned, error) {
			if o.Receipt != nil || o.Limit > 1 {
				return d.reap(o, dead)
			}
			m := d.mark()
			all := o
			all.Limit = 1000
			out, err := d.reap(all, dead)
			d.reset(m)
			if len(out) < 2 || out[0].Queue != out[1].Queue {
				return d.reap(o, dead)
			}
			s, _ := d.st.queue(out[0].Queue).find(out[1].ID)
			return []queue.Returned{d.lapse(out[1].Queue, s, out[1].Cause, o.MaxLapses)}, err
		}
	},
	"the cap of lapses comes one late": func(c *coreCalls) {
		c.reap = func(d *draft, o queue.ReapOptions, dead deaths) ([]queue.Returned, error) {
			o.MaxLapses++
			return d.reap(o, dead)
		}
	},
	"a reaped one can be reaped again": func(c *coreCalls) {
		c.reap = func(d *draft, o queue.ReapOptions, dead deaths) ([]queue.Returned, error) {
			if o.Receipt != nil && wasReaped(d, *o.Receipt) {
				s, _ := d.held(*o.Receipt)
				return []queue.Returned{d.lapse(o.Receipt.Queue, s, queue.ByOperator, o.MaxLapses)}, nil
			}
			return d.reap(o, dead)
		}
	},
	"a reprocessed one takes a new place": func(c *coreCalls) {
		c.reprocess = afterReprocess(func(d *draft, q *queueState, c *claim) {
			c.seq = q.next
			q.next++
		})
	},
	"a reprocessed one is not forgiven": func(c *coreCalls) {
		c.reprocess = afterReprocess(func(_ *draft, _ *queueState, c *claim) { c.excused = 0 })
	},
	"a reprocessed one keeps its last receipt": func(c *coreCalls) {
		c.reprocess = afterReprocess(func(_ *draft, _ *queueState, c *claim) { c.returned = reaped })
	},
	"reprocess waits behind a pending one": func(c *coreCalls) {
		c.reprocess = func(d *draft, space, name string) error {
			if e, _, _ := d.st.lookFailed(space, name); e != nil && d.st.queue(e.queue) != nil {
				if s, _ := d.st.queue(e.queue).find(e.id); s != nil && s.pending != nil {
					return queue.ErrInFlight
				}
			}
			return d.reprocess(space, name)
		}
	},
	"a load beside another of its key": func(c *coreCalls) {
		c.load = func(d *draft, name, id string, t taking, load loader, dead deaths) (queue.Delivery, error) {
			out, err := d.load(name, id, t, load, dead)
			s, _ := d.st.queue(name).find(id)
			if !errors.Is(err, queue.ErrLeased) || s.claimed != nil && s.claimed.returned == leased {
				return out, err
			}
			r, _ := s.front()
			if payload, damage, err := load(r); err == nil && damage == "" {
				return d.take(d.queue(name), s, r, t, payload), nil
			}
			return out, err
		}
	},
	"a load asks nobody": func(c *coreCalls) {
		c.load = func(d *draft, name, id string, t taking, load loader, _ deaths) (queue.Delivery, error) {
			return d.load(name, id, t, load, nil)
		}
	},
	"a claim takes two of one key": func(c *coreCalls) {
		c.claim = func(d *draft, name string, t taking, load loader) (queue.Claimed, error) {
			out, err := d.claim(name, t, load)
			if err != nil || len(out.Deliveries) == 0 || len(out.Deliveries) == t.max {
				return out, err
			}
			key := out.Deliveries[0].Key
			for _, s := range slices.Clone(d.st.queue(name).slots) {
				if r, _ := s.front(); key != "" && r != nil && r.key == key && r.ready(d.millis) {
					if payload, damage, err := load(r); err == nil && damage == "" {
						out.Deliveries = append(out.Deliveries, d.take(d.queue(name), s, r, t, payload))
						break
					}
				}
			}
			return out, err
		}
	},
	"a fair claim is not": func(c *coreCalls) {
		c.claim = func(d *draft, name string, t taking, load loader) (queue.Claimed, error) {
			t.fair = false
			return d.claim(name, t, load)
		}
	},
	"the turn is not kept": func(c *coreCalls) {
		c.claim = func(d *draft, name string, t taking, load loader) (queue.Claimed, error) {
			out, err := d.claim(name, t, load)
			if len(out.Deliveries) > 0 {
				d.queue(name).turn = ""
			}
			return out, err
		}
	},
	"a resume is forgotten": func(c *coreCalls) {
		c.pause = func(d *draft, name string, paused bool) error {
			if paused {
				return d.pause(name, paused)
			}
			return nil
		}
	},
	"a namespace is forgotten": func(c *coreCalls) {
		c.setNamespace = func(*draft, string, string) error { return nil }
	},
	"an empty cursor is none": func(c *coreCalls) {
		c.setCursor = func(d *draft, name, cursor string) error {
			if cursor == "" {
				return nil
			}
			return d.setCursor(name, cursor)
		}
	},
	"an update is made in part": func(c *coreCalls) {
		c.update = func(v *view, steps []step) ([]queue.Outcome, error) {
			out := make([]queue.Outcome, len(steps))
			for i, step := range steps {
				var err error
				if out[i], err = step(v); err != nil {
					return nil, &queue.UpdateError{Index: i, Err: err}
				}
			}
			return out, nil
		}
	},
	"an update goes on after a refusal": func(c *coreCalls) {
		c.update = func(v *view, steps []step) ([]queue.Outcome, error) {
			var made []step
			for _, step := range steps {
				m := v.draft.mark()
				if _, err := step(v); err == nil {
					made = append(made, step)
				}
				v.draft.reset(m)
			}
			out, err := v.update(made)
			return append(out, make([]queue.Outcome, len(steps)-len(made))...), err
		}
	},
	"an update is made backwards": func(c *coreCalls) {
		c.update = func(v *view, steps []step) ([]queue.Outcome, error) {
			back := slices.Clone(steps)
			slices.Reverse(back)
			out, err := v.update(back)
			slices.Reverse(out)
			var refused *queue.UpdateError
			if errors.As(err, &refused) {
				refused.Index = len(steps) - 1 - refused.Index
			}
			return out, err
		}
	},
}

// afterReprocess changes what a reprocessing made.
func afterReprocess(change func(d *draft, q *queueState, c *claim)) func(d *draft, space, name string) error {
	return func(d *draft, space, name string) error {
		e, _, _ := d.st.lookFailed(space, name)
		if err := d.reprocess(space, name); err != nil {
			return err
		}
		q := d.queue(e.queue)
		s, _ := q.find(e.id)
		c := *s.claimed
		change(d, q, &c)
		q.put(e.id, s.pending, &c)
		return nil
	}
}
