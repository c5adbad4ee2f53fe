//go:build unix

package holdfast

import "example.com/holdfast/queue"

// The feature "import" in state.json: what is remembered of imports, and the marks of
// what the open ones have brought.

// appendImports writes nothing where there is none. Closing one makes it shorter, so
// that it finds room in a full state.
func appendImports(b []byte, list []importRecord) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(b, `,"imports":[`...)
	for i, m := range list {
		b = appendComma(b, i)
		b = append(b, `["`...)
		b = m.token.append(b)
		b = append(b, `",`...)
		b = appendString(b, m.queue)
		if m.open {
			b = append(b, `,"open"`...)
		}
		b = append(b, ']')
	}
	return append(b, ']')
}

// imports reads what the state remembers of imports.
func (d *decoder) imports() (list []importRecord) {
	d.importing = map[string]token{}
	before := ""
	d.lit("[")
	for first := true; d.more(first); first = false {
		if len(list) == maxImports {
			d.fail(d.i, "more than %d imports", maxImports)
			break
		}
		start := d.i
		var m importRecord
		d.lit("[")
		m.token = d.token("import")
		d.lit(",")
		m.queue = d.name("queue name", queue.MaxQueueBytes, queue.CheckQueue)
		if m.open = d.peek(','); m.open {
			d.lit(`,"open"`)
		}
		d.lit("]")
		text := m.token.String()
		_, twice := d.importing[m.queue]
		switch {
		case m.token.zero():
			d.fail(start, "an import whose token is zero")
		case text <= before:
			d.fail(start, "import %s after %s: not sorted, or twice", text, before)
		case m.open && twice:
			d.fail(start, "import %s: another one into queue %q is open", text, m.queue)
		case m.open:
			d.importing[m.queue] = m.token
		}
		before = text
		list = append(list, m)
	}
	if len(list) == 0 {
		d.fail(d.i, "an empty list of imports: it must be left out")
	}
	return list
}

// importsHaveQueues refuses an open import whose queue no status would show.
func (d *decoder) importsHaveQueues(st *state) {
	for _, m := range st.imports {
		if m.open && st.queue(m.queue) == nil {
			d.fail(-1, "import %s is open, but there is no queue %q", m.token, m.queue)
		}
	}
}

// marked refuses a reference of an import that is not open.
func (d *decoder) marked(at int, queueName, id string, r *ref) {
	if !r.mark.zero() && d.importing[queueName] != r.mark {
		d.fail(at, "ID %q: of import %s, which is not open into queue %q", id, r.mark, queueName)
	}
}
