//go:build unix

package holdfast

// markRuns takes off what the runs of a state are and refer to. It reads some runs that it
// has not read before; false: there are more, for the next hold.
//
// What a run refers to can only become less. So one that was read before needs no second
// reading, as long as its marks say of nobody that he is in it who was gone then: what
// left it meanwhile is kept until the next collection, or refers to what is kept because it
// stands inline now.
func (c *collection) markRuns(st *state) (all bool, err error) {
	var read int64
	for _, q := range st.queues {
		for _, r := range q.runs {
			if c.marked(&r.sealedObject) {
				continue
			}
			if read >= maxMarkedBytes {
				return false, nil
			}
			m, err := c.runs.members(r)
			if err != nil {
				return false, err
			}
			read += r.size
			for i, s := range m.slots {
				if r.has(i) {
					c.named(s.pending.object)
				}
			}
			c.marks[r.name] = r.gone
		}
	}
	for _, f := range st.failed {
		for _, r := range f.runs {
			if c.marked(&r.sealedObject) {
				continue
			}
			if read >= maxMarkedBytes {
				return false, nil
			}
			members, err := c.runs.buried(r)
			if err != nil {
				return false, err
			}
			read += r.size
			for i, e := range members {
				if r.has(i) {
					c.named(e.ref.object)
				}
			}
			c.marks[r.name] = r.gone
		}
	}
	return true, nil
}

// marked takes off the run's own object, and reports whether all that it refers to was.
func (c *collection) marked(o *sealedObject) bool {
	c.named(o.name)
	before, ok := c.marks[o.name]
	if !ok {
		return false
	}
	for i, b := range before {
		if o.gone == nil || b&^o.gone[i] != 0 {
			return false
		}
	}
	return true
}
