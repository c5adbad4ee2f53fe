//go:build unix

package holdfast

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// checkJSON says that text is not one JSON value in UTF-8, or nil.
func checkJSON(file string, text []byte) error {
	switch {
	case !utf8.Valid(text):
		return &Error{File: file, What: ErrInvalidJSON, Why: "not valid UTF-8"}
	case !json.Valid(text):
		return &Error{File: file, What: ErrInvalidJSON}
	}
	return nil
}

// layout gives a JSON value the form in which entries are written: what
// JSON.stringify(value, null, 2) makes of it, but that numbers keep their digits and
// keys their order and number.
func layout(file string, value []byte, limit int64) ([]byte, error) {
	if err := checkJSON(file, value); err != nil {
		return nil, err
	}
	w := writer{in: value, out: make([]byte, 0, len(value)+len(value)/4), limit: limit}
	w.value(0)
	if int64(len(w.out)) > limit {
		return nil, &Error{File: file, What: ErrTooLarge, Why: "more than " + strconv.FormatInt(limit, 10) + " bytes in its layout on disk"}
	}
	return w.out, nil
}

// A writer copies one valid JSON text from in to out.
type writer struct {
	in, out []byte
	limit   int64 // once out is longer it is indented no more: the layout of depth grows with its square
}

// next skips white space and gives the byte after it.
func (w *writer) next() byte {
	w.in = bytes.TrimLeft(w.in, " \t\r\n")
	return w.in[0]
}

func (w *writer) value(depth int) {
	switch w.next() {
	case '{':
		w.group(depth, '}', true)
	case '[':
		w.group(depth, ']', false)
	case '"':
		w.text()
	default: // a number or a word
		n := bytes.IndexAny(w.in, " \t\r\n,]}")
		if n < 0 {
			n = len(w.in)
		}
		w.out, w.in = append(w.out, w.in[:n]...), w.in[n:]
	}
}

// group copies an array, or an object, whose members have keys.
func (w *writer) group(depth int, end byte, keys bool) {
	w.out, w.in = append(w.out, w.in[0]), w.in[1:]
	if w.next() == end {
		w.out, w.in = append(w.out, end), w.in[1:]
		return
	}
	for {
		w.line(depth + 1)
		if keys {
			w.next()
			w.text()
			w.next() // the colon
			w.out, w.in = append(w.out, ": "...), w.in[1:]
		}
		w.value(depth + 1)
		c := w.next()
		w.in = w.in[1:]
		if c == end {
			break
		}
		w.out = append(w.out, ',')
	}
	w.line(depth)
	w.out = append(w.out, end)
}

func (w *writer) line(depth int) {
	if int64(len(w.out)) > w.limit {
		return
	}
	w.out = append(w.out, '\n')
	for range depth {
		w.out = append(w.out, "  "...)
	}
}

// text copies a string. Only what must be escaped is, and in the one way in which
// JSON.stringify does.
func (w *writer) text() {
	w.out, w.in = append(w.out, '"'), w.in[1:]
	for w.in[0] != '"' {
		if w.in[0] != '\\' {
			n := bytes.IndexAny(w.in, `"\`)
			w.out, w.in = append(w.out, w.in[:n]...), w.in[n:]
			continue
		}
		w.escape()
	}
	w.out, w.in = append(w.out, '"'), w.in[1:]
}

// escape copies one escape sequence, or both of a surrogate pair.
func (w *writer) escape() {
	c := w.in[1]
	if c != 'u' {
		if c == '/' {
			w.out = append(w.out, '/')
		} else {
			w.out = append(w.out, '\\', c)
		}
		w.in = w.in[2:]
		return
	}
	r := w.unit()
	if utf16.IsSurrogate(r) {
		if len(w.in) > 1 && w.in[0] == '\\' && w.in[1] == 'u' {
			rest := w.in
			low := w.unit()
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				w.out = utf8.AppendRune(w.out, pair)
				return
			}
			w.in = rest
		}
		w.hex(r) // alone: it has no other form
		return
	}
	switch r {
	case '"', '\\':
		w.out = append(w.out, '\\', byte(r))
	case '\b':
		w.out = append(w.out, `\b`...)
	case '\f':
		w.out = append(w.out, `\f`...)
	case '\n':
		w.out = append(w.out, `\n`...)
	case '\r':
		w.out = append(w.out, `\r`...)
	case '\t':
		w.out = append(w.out, `\t`...)
	default:
		if r < ' ' {
			w.hex(r)
		} else {
			w.out = utf8.AppendRune(w.out, r)
		}
	}
}

// unit takes one \uXXXX from in.
func (w *writer) unit() rune {
	n, _ := strconv.ParseUint(string(w.in[2:6]), 16, 32) // checked: the text is valid
	w.in = w.in[6:]
	return rune(n)
}

func (w *writer) hex(r rune) {
	const digits = "0123456789abcdef"
	w.out = append(w.out, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
