//go:build unix

package holdfast

import (
	"bytes"
	"strings"
)

// Fields are the names that may stand in one kind of object, in their order.
type fields struct {
	names []string
	texts []string // ,"name": as it stands in the file
}

func newFields(names ...string) *fields {
	f := &fields{names: names}
	for _, name := range names {
		f.texts = append(f.texts, `,"`+name+`":`)
	}
	return f
}

// text gives the text before the value of the i-th field of an object in which no
// field is left out.
func (f *fields) text(i int) string {
	if i == 0 {
		return f.texts[0][1:]
	}
	return f.texts[i]
}

// Members read one object field by field. must and may are called in the order
// of the fields.
type members struct {
	*fields
	s    *scanner
	next int    // the first field that was not asked for
	seen uint32 // a bit for each field that was there
}

// open takes the opening brace of an object of fields f.
func (s *scanner) open(f *fields) members {
	s.lit("{")
	return members{fields: f, s: s}
}

// must takes a field's name, up to its value.
func (o *members) must(name string) {
	if !o.may(name) && o.s.err == nil {
		o.wrong(o.next - 1)
	}
}

// may takes a field's name if it is next.
func (o *members) may(name string) bool {
	for o.names[o.next] != name {
		o.next++
	}
	text := o.texts[o.next]
	o.next++
	if o.s.err != nil {
		return false
	}
	if o.seen == 0 {
		text = text[1:]
	}
	if rest := o.s.b[o.s.i:]; len(rest) < len(text) || string(rest[:len(text)]) != text {
		return false
	}
	o.s.i += len(text)
	o.seen |= 1 << (o.next - 1)
	return true
}

// last reports whether no field is left.
func (o *members) last() bool { return o.s.peek('}') }

// close takes the closing brace.
func (o *members) close() {
	switch {
	case o.last():
		o.s.i++
	case o.s.err == nil:
		o.wrong(len(o.names))
	}
}

// wrong finds out what stands where field want, or the object's end, should.
func (o *members) wrong(want int) {
	s := o.s
	wanted := `want "}"`
	if want < len(o.names) {
		wanted = `want the field "` + o.names[want] + `"`
	}
	at := s.i
	if o.seen != 0 && s.peek(',') {
		at++
	} else if o.seen != 0 {
		s.unexpected(wanted)
		return
	}
	if at == len(s.b) || s.b[at] != '"' {
		s.i = at
		s.unexpected(wanted)
		return
	}
	end := bytes.IndexByte(s.b[at+1:], '"')
	if end < 0 {
		s.i = len(s.b)
		s.unexpected(wanted)
		return
	}
	name := string(s.b[at+1 : at+1+end])
	for i, known := range o.names {
		switch {
		case name == known && i == want:
			s.i = at + 1 + end + 1
			s.unexpected(`want ":"`)
		case name == known && o.seen&(1<<i) != 0:
			s.fail(at, "duplicate field %q", name)
		case name == known:
			s.fail(at, "field %q out of order; %s", name, wanted)
		case strings.EqualFold(name, known):
			s.fail(at, "field %q: its name is %q, in this case", name, known)
		}
		if s.err != nil {
			return
		}
	}
	s.fail(at, "unknown field %s", quoted(name))
}
