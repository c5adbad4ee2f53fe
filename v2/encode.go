//go:build unix

package holdfast

import (
	"strconv"

	"example.com/holdfast/queue"
)

// encodeState appends state.json to dst. It keeps each slot's and each failed
// entry's text in it, so that the next state, which shares what did not change,
// copies text instead of making it again; for those it allocates nothing.
func encodeState(dst []byte, st *state) []byte {
	b := appendHead(dst, head{st.commit, st.store, st.revision})
	b = append(b, `,"features":`...)
	b = appendFeatures(b, st.uses())
	if st.after != (token{}) {
		b = append(b, `,"after":"`...)
		b = st.after.append(b)
		b = append(b, '"')
	}
	b = append(b, `,"settings":{"on_dead_owner":`...)
	b = appendString(b, string(st.settings.OnDeadOwner))
	b = append(b, `},"fence":`...)
	b = strconv.AppendUint(b, st.fence, 10)
	b = append(b, `,"recoveries":`...)
	b = strconv.AppendUint(b, st.recoveries, 10)
	b = append(b, `,"resolved":[`...)
	for i, r := range st.resolved {
		b = appendComma(b, i)
		b = append(b, `["`...)
		b = r.commit.append(b)
		b = append(b, `","`...)
		b = strconv.AppendUint(b, r.revision, 10)
		b = append(b, `"]`...)
	}
	b = append(b, ']')
	b = appendImports(b, st.imports)
	b = append(b, `,"queues":[`...)
	for i, q := range st.queues {
		b = appendComma(b, i)
		b = appendQueue(b, q)
	}
	b = append(b, `],"failed":[`...)
	for i, f := range st.failed {
		b = appendComma(b, i)
		b = appendSpace(b, f)
	}
	b = append(b, ']')
	if st.exchange {
		sum := checksum(b[len(dst):])
		b = append(b, `,"sum":`...)
		b = appendChecksum(b, sum)
	}
	b = append(b, `,"end":"`...)
	b = st.commit.append(b)
	return append(b, "\"}\n"...)
}

func appendHead(b []byte, h head) []byte {
	b = append(b, `{"commit":"`...)
	b = h.commit.append(b)
	b = append(b, `","protocol":"`+protocol+`","version":`...)
	b = strconv.AppendInt(b, version, 10)
	b = append(b, `,"store":"`...)
	b = h.store.append(b)
	b = append(b, `","revision":"`...)
	b = strconv.AppendUint(b, h.revision, 10)
	return append(b, '"')
}

func appendQueue(b []byte, q *queueState) []byte {
	b = append(b, `{"name":`...)
	b = appendString(b, q.name)
	b = append(b, `,"next":`...)
	b = strconv.AppendUint(b, q.next, 10)
	b = append(b, `,"counters":{`...)
	for i, n := range counts(&q.counters) {
		b = append(b, counterFields.text(i)...)
		b = strconv.AppendUint(b, *n, 10)
	}
	b = append(b, '}')
	if q.paused {
		b = append(b, `,"paused":true`...)
	}
	b = appendText(b, `,"cursor":`, q.cursor)
	b = appendText(b, `,"turn":`, q.turn)
	b = appendText(b, `,"failed_in":`, q.failedNS)
	b = appendRuns(b, q.runs)
	b = append(b, `,"slots":[`...)
	for i, s := range q.slots {
		b = appendComma(b, i)
		if s.enc == nil {
			start := len(b)
			b = appendSlot(b, s)
			s.enc = exactly(b[start:])
			continue
		}
		b = append(b, s.enc...)
	}
	return append(b, "]}"...)
}

// counts gives the counters in the order of their fields.
func counts(c *queue.Counters) [12]*uint64 {
	return [...]*uint64{
		&c.Enqueued, &c.Superseded, &c.Claimed, &c.Completed, &c.Retried, &c.Released,
		&c.Reaped, &c.Failed, &c.Reprocessed, &c.Cleared, &c.Purged, &c.Damaged,
	}
}

func appendSlot(b []byte, s *slot) []byte {
	b = append(b, '[')
	b = appendString(b, s.id)
	b = append(b, ',')
	if s.pending != nil {
		b = appendRef(b, s.pending)
		b = append(b, '}')
	} else {
		b = append(b, "null"...)
	}
	if c := s.claimed; c != nil {
		b = append(b, ',')
		b = appendRef(b, &c.ref)
		if c.returned != leased {
			b = append(b, `,"back":"`...)
			b = append(b, c.returned.String()...)
			b = append(b, '"')
		}
		if c.returned == leased || c.returned == reaped && c.lease != (lease{}) {
			b = appendLease(b, &c.lease)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

// appendRef leaves the object open, because a claim goes on in it.
func appendRef(b []byte, r *ref) []byte {
	b = append(b, `{"g":"`...)
	b = r.gen.append(b)
	b = append(b, `","p":["`...)
	b = r.object.append(b)
	b = append(b, `",`...)
	b = strconv.AppendInt(b, r.off, 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, r.size, 10)
	b = append(b, ',')
	b = appendChecksum(b, r.sum)
	b = append(b, `],"s":`...)
	b = strconv.AppendUint(b, r.seq, 10)
	b = append(b, `,"t":`...)
	b = strconv.AppendInt(b, r.enqueued, 10)
	b = appendNumber(b, `,"a":`, r.attempts)
	b = appendNumber(b, `,"e":`, r.excused)
	b = appendNumber(b, `,"l":`, r.lapses)
	b = appendNumber(b, `,"n":`, uint64(r.notBefore))
	b = appendText(b, `,"k":`, r.key)
	b = appendText(b, `,"r":`, r.lastError)
	if !r.mark.zero() {
		b = append(b, `,"i":"`...)
		b = r.mark.append(b)
		b = append(b, '"')
	}
	return b
}

func appendLease(b []byte, l *lease) []byte {
	b = append(b, `,"lease":{`...)
	start := len(b)
	b = appendNumber(b, `,"d":`, uint64(l.deadline))
	if l.bootID != "" {
		b = appendText(b, `,"b":`, l.bootID)
		b = append(b, `,"m":`...)
		b = strconv.AppendInt(b, l.bootEnds, 10)
	}
	if !l.holder.zero() {
		b = append(b, `,"h":"`...)
		b = l.holder.append(b)
		b = append(b, '"')
	}
	b = appendText(b, `,"w":`, l.label)
	b = append(b, `,"f":`...)
	b = strconv.AppendUint(b, l.fence, 10)
	b = append(b, '}')
	return append(b[:start], b[start+1:]...) // the first field has no comma
}

func appendSpace(b []byte, f *failedSpace) []byte {
	b = append(b, `{"name":`...)
	b = appendString(b, f.name)
	b = appendFailedRuns(b, f.runs)
	b = append(b, `,"entries":[`...)
	for i, e := range f.entries {
		b = appendComma(b, i)
		if e.enc == nil {
			start := len(b)
			b = appendEntry(b, e)
			e.enc = exactly(b[start:])
			continue
		}
		b = append(b, e.enc...)
	}
	return append(b, "]}"...)
}

func appendEntry(b []byte, e *failedEntry) []byte {
	b = append(b, '[')
	b = appendString(b, e.name)
	b = append(b, ',')
	b = appendString(b, e.queue)
	b = append(b, ',')
	b = appendString(b, e.id)
	b = append(b, ',')
	b = appendRef(b, &e.ref)
	b = append(b, "},"...)
	b = strconv.AppendInt(b, e.at, 10)
	return append(b, ']')
}

// exactly copies b into memory of its size.
func exactly(b []byte) []byte {
	c := make([]byte, len(b))
	copy(c, b)
	return c
}

func appendComma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

// appendNumber writes a field that is left out when zero.
func appendNumber(b []byte, field string, n uint64) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendUint(append(b, field...), n, 10)
}

// appendText writes a field that is left out when empty.
func appendText(b []byte, field, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(append(b, field...), s)
}

const hexDigits = "0123456789abcdef"

// appendString writes s in quotes, in the one spelling that decodes: a backslash
// before a quote and a backslash, \u00xx for the control characters, everything
// else as it is.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, s[start:i]...)
			b = append(b, '\\', c)
			start = i + 1
		case c < ' ':
			b = append(b, s[start:i]...)
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&15])
			start = i + 1
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
