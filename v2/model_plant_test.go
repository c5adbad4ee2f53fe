//go:build unix

package holdfast

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// The property of TestModel must be able to fail: each of these bugs, planted in the
// core, is found. model_plant_return_test.go has more of them.
var modelBugs = map[string]func(c *coreCalls){
	"ack ignores the attempt": func(c *coreCalls) {
		c.ack = func(d *draft, x queue.Receipt) error {
			if held := claimOf(d, x); held != nil {
				x.Attempt = held.attempts
			}
			return d.ack(x)
		}
	},
	"ack ignores the generation": func(c *coreCalls) {
		c.ack = func(d *draft, x queue.Receipt) error {
			if held := claimOf(d, x); held != nil {
				x.Generation = held.gen.String()
			}
			return d.ack(x)
		}
	},
	"ack ignores the store": func(c *coreCalls) {
		c.ack = func(d *draft, x queue.Receipt) error {
			x.Store = d.st.store.String()
			return d.ack(x)
		}
	},
	"ack takes the newer generation too": func(c *coreCalls) {
		c.ack = func(d *draft, x queue.Receipt) error {
			s, err := d.held(x)
			if err == nil && s.pending != nil {
				q := d.queue(x.Queue)
				q.put(x.ID, nil, s.claimed)
				q.counters.Superseded++
			}
			return d.ack(x)
		}
	},
	"claims take the newest": func(c *coreCalls) {
		c.claim = func(d *draft, name string, t taking, load loader) (queue.Claimed, error) {
			q := d.st.queue(name)
			if due := slices.Collect(q.at(d.millis).turns(false)); len(due) > 0 && !q.paused {
				s, _ := q.find(due[len(due)-1].id)
				r, _ := s.front()
				if _, damage, err := load(r); damage == "" && err == nil {
					one, err := d.load(name, s.id, t, load, nil)
					return queue.Claimed{Deliveries: []queue.Delivery{one}}, err
				}
			}
			return d.claim(name, t, load)
		}
	},
	"claims take what is scheduled": func(c *coreCalls) {
		c.claim = func(d *draft, name string, t taking, load loader) (queue.Claimed, error) {
			millis := d.millis
			d.millis += time.Hour.Milliseconds()
			defer func() { d.millis = millis }()
			return d.claim(name, t, load)
		}
	},
	"claims of a paused queue": func(c *coreCalls) {
		c.claim = func(d *draft, name string, t taking, load loader) (queue.Claimed, error) {
			if d.st.queue(name).paused {
				d.queue(name).paused = false
				defer func() { d.queue(name).paused = true }()
			}
			return d.claim(name, t, load)
		}
	},
	"a claim reads on after trouble": func(c *coreCalls) {
		c.claim = func(d *draft, name string, t taking, load loader) (queue.Claimed, error) {
			return d.claim(name, t, func(r *ref) ([]byte, string, error) {
				payload, damage, err := load(r)
				if err != nil {
					damage = err.Error()
				}
				return payload, damage, nil
			})
		}
	},
	"a claim repeats a fence": func(c *coreCalls) {
		c.claim = func(d *draft, name string, t taking, load loader) (queue.Claimed, error) {
			out, err := d.claim(name, t, load)
			if len(out.Deliveries) == 1 {
				d.st.fence--
			}
			return out, err
		}
	},
	"a load takes over a live lease": func(c *coreCalls) {
		c.load = func(d *draft, name, id string, t taking, load loader, dead deaths) (queue.Delivery, error) {
			now := d.now
			d.now.BootID = "another"
			defer func() { d.now = now }()
			return d.load(name, id, t, load, dead)
		}
	},
	"a load goes by the wall clock alone": func(c *coreCalls) {
		c.load = func(d *draft, name, id string, t taking, load loader, dead deaths) (queue.Delivery, error) {
			now := d.now
			d.now.BootID = ""
			defer func() { d.now = now }()
			return d.load(name, id, t, load, dead)
		}
	},
	"a load ends a millisecond late": func(c *coreCalls) {
		c.load = func(d *draft, name, id string, t taking, load loader, dead deaths) (queue.Delivery, error) {
			now := d.now
			d.now.Wall, d.now.Boot = now.Wall.Add(-time.Millisecond), now.Boot-time.Millisecond
			defer func() { d.now = now }()
			return d.load(name, id, t, load, dead)
		}
	},
	"a release takes a new place": func(c *coreCalls) {
		c.release = func(d *draft, x queue.Receipt, delay time.Duration) error {
			if err := d.release(x, delay); err != nil {
				return err
			}
			q := d.queue(x.Queue)
			s, _ := q.find(x.ID)
			moved := *s.claimed
			moved.seq = q.next
			q.next++
			q.put(x.ID, s.pending, &moved)
			return nil
		}
	},
	"a release leaves the receipt good": func(c *coreCalls) {
		c.release = func(d *draft, x queue.Receipt, delay time.Duration) error {
			if err := d.release(x, delay); err != nil {
				return err
			}
			q := d.queue(x.Queue)
			s, _ := q.find(x.ID)
			moved := *s.claimed
			moved.returned = reaped
			q.put(x.ID, s.pending, &moved)
			return nil
		}
	},
	"a superseding message keeps the place": func(c *coreCalls) {
		c.enqueue = func(d *draft, name string, a arrival, maxState int64) (queue.Enqueued, error) {
			old, _ := d.st.queue(name).find(a.id)
			e, err := d.enqueue(name, a, maxState)
			if err == nil && !e.Kept && old != nil && old.pending != nil {
				q := d.queue(name)
				s, _ := q.find(a.id)
				moved := *s.pending
				moved.seq = old.pending.seq
				q.put(a.id, &moved, s.claimed)
			}
			return e, err
		}
	},
	"replace ends a claim": func(c *coreCalls) {
		c.enqueue = func(d *draft, name string, a arrival, maxState int64) (queue.Enqueued, error) {
			if s, _ := d.st.queue(name).find(a.id); s != nil && s.claimed != nil && s.claimed.returned == leased && a.ifExists == queue.Replace {
				q := d.queue(name)
				q.put(a.id, s.pending, nil)
				q.counters.Superseded++
			}
			return d.enqueue(name, a, maxState)
		}
	},
	"keep replaces": func(c *coreCalls) {
		c.enqueue = func(d *draft, name string, a arrival, maxState int64) (queue.Enqueued, error) {
			if a.ifExists == queue.Keep {
				a.ifExists = queue.Replace
			}
			return d.enqueue(name, a, maxState)
		}
	},
	"a batch is taken in part": func(c *coreCalls) {
		c.enqueueAll = func(d *draft, name string, as []arrival, maxState int64) (out []queue.Enqueued, err error) {
			for _, a := range as {
				var e queue.Enqueued
				if e, err = d.enqueue(name, a, maxState); err != nil {
					return nil, err
				}
				out = append(out, e)
			}
			return out, nil
		}
	},
	"fail overwrites evidence": func(c *coreCalls) {
		c.fail = func(d *draft, x queue.Receipt, cause, as string) (string, error) {
			if _, err := d.held(x); err == nil {
				name := as
				if name == "" {
					name = x.ID
				}
				_ = d.purge(d.st.queue(x.Queue).failedNS, name)
			}
			return d.fail(x, cause, as)
		}
	},
	"fail loses a payload of its own commit": func(c *coreCalls) {
		c.fail = func(d *draft, x queue.Receipt, cause, as string) (string, error) {
			name, err := d.fail(x, cause, as)
			if i := len(d.items) - 1; err == nil && i >= 0 && d.items[i].failed == name {
				delete(d.itemOf, d.items[i].gen)
			}
			return name, err
		}
	},
	"a replaced payload is not written": func(c *coreCalls) {
		c.replacePayload = func(d *draft, x queue.Receipt, payload []byte) error {
			err := d.replacePayload(x, payload)
			if err == nil {
				delete(d.itemOf, d.items[len(d.items)-1].gen)
			}
			return err
		}
	},
	"purge looks in the default namespace": func(c *coreCalls) {
		c.purge = func(d *draft, _, name string) error { return d.purge("", name) }
	},
	"clear does not count": func(c *coreCalls) {
		c.clear = func(d *draft, name string, leasedToo bool) (uint64, error) {
			n, err := d.clear(name, leasedToo)
			if n > 0 {
				d.queue(name).counters.Cleared -= n
			}
			return n, err
		}
	},
	"clear takes leased messages unasked": func(c *coreCalls) {
		c.clear = func(d *draft, name string, _ bool) (uint64, error) { return d.clear(name, true) }
	},
	"an enqueue writes into the committed state": func(c *coreCalls) {
		c.enqueue = func(d *draft, name string, a arrival, maxState int64) (queue.Enqueued, error) {
			d.base.queue(name).counters.Enqueued++
			return d.enqueue(name, a, maxState)
		}
	},
	"a refusal leaves a trace": func(c *coreCalls) {
		c.enqueue = func(d *draft, name string, a arrival, maxState int64) (queue.Enqueued, error) {
			e, err := d.enqueue(name, a, maxState)
			if err != nil {
				d.generation()
			}
			return e, err
		}
	},
	"an object is packed a byte off": func(c *coreCalls) {
		c.pack = func(d *draft, newToken func() (token, error)) ([]object, error) {
			objects, err := d.pack(newToken)
			for i, o := range objects {
				if o.data[0] == '[' {
					objects[i].data = append([]byte{' '}, o.data...)
				}
			}
			return objects, err
		}
	},
	"a changed slot keeps its old text": func(c *coreCalls) {
		c.ack = func(d *draft, x queue.Receipt) error {
			err := d.ack(x)
			if q := d.st.queue(x.Queue); err == nil && len(q.slots) > 0 {
				first := *q.slots[0]
				first.enc = append([]byte{}, `["stale",null]`...)
				q.slots[0] = &first
			}
			return err
		}
	},
}

// claimOf is the claim of the message that x names, whichever it is.
func claimOf(d *draft, x queue.Receipt) *claim {
	if s, _ := d.st.queue(x.Queue).find(x.ID); s != nil {
		return s.claimed
	}
	return nil
}

// modelSeeds are seeds that found what few do. Another core may need another one.
var modelSeeds = map[string]int{
	"a purge takes another member of the run":  1057,
	"an extend goes beside another of its key": 1378,
}

func TestModelFindsPlantedBugs(t *testing.T) {
	alone(t)
	maps.Copy(modelBugs, modelReturnBugs)
	maps.Copy(modelBugs, modelImportBugs)
	maps.Copy(modelBugs, modelFailedRunBugs)
	for name := range modelSeeds {
		if modelBugs[name] == nil {
			t.Errorf("there is no bug %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(modelBugs)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := soundCalls()
			modelBugs[name](&calls)
			const most = 2000
			for i := range most {
				seed := (modelSeeds[name] + i) % most
				if found := modelFault(calls, seed); found != "" {
					t.Logf("found with seed %d: %.200s", seed, found)
					return
				}
			}
			t.Errorf("it was not found in %d runs", most)
		})
	}
}

// What finds nothing where nothing is wrong finds the bug and not the harness.
func TestModelFindsNothingElse(t *testing.T) {
	alone(t)
	for seed := range 20 {
		if found := modelFault(soundCalls(), seed); found != "" {
			t.Fatalf("seed %d: %s", seed, found)
		}
	}
}

// modelFault runs the property once, from a seed, and gives its complaint.
func modelFault(calls coreCalls, seed int) string {
	return rapid.Custom(func(t *rapid.T) (fault string) {
		defer func() {
			if p := recover(); p != nil {
				fault = fmt.Sprint(p)
			}
		}()
		modelProperty(calls)(t)
		return ""
	}).Example(seed)
}
