//go:build unix

package holdfast

import (
	"errors"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

// blind makes a draft not see the open imports while f runs.
func blind(d *draft, f func()) {
	list := d.st.imports
	d.st.imports = nil
	f()
	d.st.imports = list
}

// modelImportBugs are those of imports, planted as modelBugs are.
var modelImportBugs = map[string]func(c *coreCalls){
	"an enqueue into a queue with an open import": func(c *coreCalls) {
		c.enqueue = func(d *draft, name string, a arrival, maxState int64) (out queue.Enqueued, err error) {
			blind(d, func() { out, err = d.enqueue(name, a, maxState) })
			return out, err
		}
	},
	"a claim of what may be taken back": func(c *coreCalls) {
		c.claim = func(d *draft, name string, t taking, load loader) (out queue.Claimed, err error) {
			blind(d, func() { out, err = d.claim(name, t, load) })
			return out, err
		}
	},
	"a load of what may be taken back": func(c *coreCalls) {
		c.load = func(d *draft, name, id string, t taking, load loader, dead deaths) (out queue.Delivery, err error) {
			blind(d, func() { out, err = d.load(name, id, t, load, dead) })
			return out, err
		}
	},
	"a reaping that does not wait for an import": func(c *coreCalls) {
		c.reap = func(d *draft, o queue.ReapOptions, dead deaths) (out []queue.Returned, err error) {
			blind(d, func() { out, err = d.reap(o, dead) })
			return out, err
		}
	},
	"a reprocessing into an open import": func(c *coreCalls) {
		c.reprocess = func(d *draft, space, name string) (err error) {
			blind(d, func() { err = d.reprocess(space, name) })
			return err
		}
	},
	"a purge of what may be taken back": func(c *coreCalls) {
		c.purge = func(d *draft, space, name string) (err error) {
			blind(d, func() { err = d.purge(space, name) })
			return err
		}
	},
	"a clear of what may be taken back": func(c *coreCalls) {
		c.clear = func(d *draft, name string, leasedToo bool) (n uint64, err error) {
			blind(d, func() { n, err = d.clear(name, leasedToo) })
			return n, err
		}
	},
	"two imports into one queue": func(c *coreCalls) {
		c.openImport = func(d *draft, name string, t token) (bool, error) {
			closed, err := d.openImport(name, t)
			if errors.Is(err, ErrImporting) {
				return false, nil
			}
			return closed, err
		}
	},
	"a closed import is opened again": func(c *coreCalls) {
		c.openImport = func(d *draft, name string, t token) (bool, error) {
			if i, known := d.st.importIndex(t); known && !d.st.imports[i].open {
				d.setImports(slices.Delete(slices.Clone(d.st.imports), i, i+1))
			}
			return d.openImport(name, t)
		}
	},
	"an import brings again what it has brought": func(c *coreCalls) {
		c.importAll = func(d *draft, t token, ms []imported, maxState int64) (int, error) {
			if i, known := d.st.importIndex(t); known && d.st.imports[i].open {
				for _, m := range ms {
					if m.state == ImportedPending {
						q := d.queue(d.st.imports[i].queue)
						if s, _ := q.find(m.id); s != nil && s.pending != nil && s.pending.mark == t {
							d.bring(t, q, s, m)
							q.counters.Superseded++
						}
					}
				}
			}
			return d.importAll(t, ms, maxState)
		}
	},
	"an import skips what others have": func(c *coreCalls) {
		c.importAll = func(d *draft, t token, ms []imported, maxState int64) (int, error) {
			added := 0
			for _, m := range ms {
				n, err := d.importAll(t, []imported{m}, maxState)
				if errors.Is(err, ErrNotImporting) {
					return 0, err
				}
				added += n
			}
			return added, nil
		}
	},
	"an import forgets the time": func(c *coreCalls) {
		c.importAll = func(d *draft, t token, ms []imported, maxState int64) (int, error) {
			ms = slices.Clone(ms)
			for i := range ms {
				ms[i].millis = d.millis + time.Second.Milliseconds()
			}
			return d.importAll(t, ms, maxState)
		}
	},
	"a close that leaves the failed ones marked": func(c *coreCalls) {
		c.closeImport = func(d *draft, t token) error {
			failed := slices.Clone(d.st.failed)
			err := d.closeImport(t)
			d.st.failed = failed
			return err
		}
	},
	"an abandoned import stays": func(c *coreCalls) {
		c.abandonImport = func(d *draft, t token) error {
			list := d.st.imports
			err := d.abandonImport(t)
			d.st.imports = list
			return err
		}
	},
	"an abandoned import leaves what had failed": func(c *coreCalls) {
		c.abandonImport = func(d *draft, t token) error {
			d.eachFailedOf(t, func(e *failedEntry) *failedEntry {
				one := *e
				one.enc, one.ref.mark = nil, token{}
				return &one
			})
			return d.abandonImport(t)
		}
	},
	"an abandoned import takes what was beside it": func(c *coreCalls) {
		c.abandonImport = func(d *draft, t token) error {
			if i, known := d.st.importIndex(t); known && d.st.imports[i].open {
				q := d.queue(d.st.imports[i].queue)
				for _, s := range slices.Clone(q.slots) {
					if s.claimed != nil && s.claimed.mark == t && s.pending != nil && s.pending.mark != t {
						q.put(s.id, nil, s.claimed)
						q.counters.Cleared++
					}
				}
			}
			return d.abandonImport(t)
		}
	},
}
