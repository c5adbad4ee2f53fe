//go:build unix

package holdfast

import "example.com/holdfast/queue"

// withoutFailedRuns makes a draft not see the runs of failed messages while f runs, which
// takes no namespace away.
func withoutFailedRuns(d *draft, f func()) {
	hidden := map[string][]*failedRun{}
	for _, s := range d.st.failed {
		hidden[s.name] = s.runs
		d.space(s.name).runs = nil
	}
	f()
	for name, runs := range hidden {
		d.space(name).runs = runs
	}
}

// modelFailedRunBugs are those of the runs of failed messages, planted as modelBugs are.
var modelFailedRunBugs = map[string]func(c *coreCalls){
	"a purge leaves a sealed message there": func(c *coreCalls) {
		c.purge = func(d *draft, space, name string) error {
			e, in, err := d.st.lookFailed(space, name)
			if err != nil || in == nil {
				return d.purge(space, name)
			}
			d.queue(e.queue).counters.Purged++
			return nil
		}
	},
	"a purge takes another member of the run": func(c *coreCalls) {
		c.purge = func(d *draft, space, name string) error {
			e, in, _ := d.st.lookFailed(space, name)
			if in != nil {
				all, _ := d.st.reader.buried(in)
				for i, other := range all {
					if in.has(i) && other.queue == e.queue {
						name = other.name
						break
					}
				}
			}
			return d.purge(space, name)
		}
	},
	"a reprocessing leaves a sealed message there": func(c *coreCalls) {
		c.reprocess = func(d *draft, space, name string) error {
			e, in, _ := d.st.lookFailed(space, name)
			if err := d.reprocess(space, name); err != nil || in == nil {
				return err
			}
			d.queue(e.queue).counters.Failed++
			d.space(space).setRun(in.name, in)
			return nil
		}
	},
	"a fail under a name that is sealed": func(c *coreCalls) {
		c.fail = func(d *draft, r queue.Receipt, cause, as string) (name string, err error) {
			if _, err := d.held(r); err != nil {
				return d.fail(r, cause, as)
			}
			name, err = d.fail(r, cause, as)
			if err != nil {
				withoutFailedRuns(d, func() { name, err = d.fail(r, cause, as) })
			}
			return name, err
		}
	},
	"a cap that does not look into runs": func(c *coreCalls) {
		c.retry = func(d *draft, r queue.Receipt, o queue.RetryOptions) (out queue.Returned, err error) {
			if _, err := d.held(r); err != nil {
				return d.retry(r, o)
			}
			withoutFailedRuns(d, func() { out, err = d.retry(r, o) })
			return out, err
		}
	},
}
