package queue

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// CheckPayload says why p cannot be a payload, or nil. A payload is exactly one
// JSON value of RFC 8259 in valid UTF-8, without a byte order mark, of at most
// maxBytes bytes and with arrays and objects nested at most maxDepth deep (a
// scalar has depth 0). White space around the value belongs to the payload.
//
// What the grammar of the RFC admits is admitted: duplicate keys, numbers of any
// size, -0, and escapes of lone surrogates such as \ud800. Nothing here reads a
// value, for nothing in the store does.
//
// The error names the place and the reason and never the payload. The verdict is
// the same at enqueue and at read. Admitting allocates nothing down to a depth
// of 1024, then one bit for each level. Standard encoding/json does not serve
// here: its Valid admits invalid UTF-8, and its depth bound is fixed.
func CheckPayload(p []byte, maxBytes, maxDepth int) error {
	if len(p) > maxBytes {
		return fmt.Errorf("payload of %d bytes: at most %d: %w", len(p), maxBytes, ErrTooLarge)
	}
	at, reason := jsonText(p).scan(maxDepth)
	switch reason {
	case "":
		return nil
	case tooDeep:
		reason = fmt.Sprintf("nests deeper than %d", maxDepth)
	}
	return fmt.Errorf("payload at byte %d: %s: %w", at, reason, ErrInvalidPayload)
}

// Reasons that are given in more than one place; CheckPayload adds the bound to
// tooDeep.
const (
	tooDeep       = "nests too deeply"
	endsInValue   = "ends inside the value"
	endsInString  = "ends inside a string"
	numberNoDigit = "a number without a digit where one must be"
)

// jsonText is a payload under the scanner's eyes. Each method goes from a place
// to the one behind what it scans, or gives the place and the reason of a fault.
type jsonText []byte

// What may stand at the scanner's place.
const (
	wantValue = iota
	wantValueOrEnd
	wantKey
	wantKeyOrEnd
	wantCommaOrEnd
)

// scan gives the place and the reason of the first fault of p; no fault is an
// empty reason. It is a loop and not a recursion, so that depth costs bits.
func (p jsonText) scan(maxDepth int) (at int, reason string) {
	var room [16]uint64 // a bit for each open bracket: set for an object
	open, depth := room[:], 0
	want := wantValue

	for i := 0; ; {
		i = p.space(i)
		if i == len(p) {
			switch {
			case depth > 0:
				return i, endsInValue
			case want == wantCommaOrEnd:
				return i, ""
			}
			return i, "holds no JSON value"
		}
		c := p[i]
		switch want {
		case wantValue, wantValueOrEnd:
			switch {
			case c == '"':
				if i, reason = p.str(i + 1); reason != "" {
					return i, reason
				}
				want = wantCommaOrEnd
			case c == '{', c == '[':
				if depth >= maxDepth {
					return i, tooDeep
				}
				word, bit := depth/64, uint64(1)<<(depth%64)
				if word == len(open) {
					open = append(open, 0)
				}
				if c == '{' {
					open[word] |= bit
					want = wantKeyOrEnd
				} else {
					open[word] &^= bit
					want = wantValueOrEnd
				}
				depth++
				i++
			case c == '-', '0' <= c && c <= '9':
				if i, reason = p.number(i); reason != "" {
					return i, reason
				}
				want = wantCommaOrEnd
			case c == 't', c == 'f', c == 'n':
				if i, reason = p.literal(i); reason != "" {
					return i, reason
				}
				want = wantCommaOrEnd
			case c == ']' && want == wantValueOrEnd:
				depth--
				i++
				want = wantCommaOrEnd
			case i == 0 && len(p) >= 3 && string(p[:3]) == "\ufeff":
				return i, "begins with a byte order mark"
			default:
				return i, "want a JSON value"
			}

		case wantKey, wantKeyOrEnd:
			if c == '}' && want == wantKeyOrEnd {
				depth--
				i++
				want = wantCommaOrEnd
				continue
			}
			if c != '"' {
				if want == wantKey {
					return i, "want a key in double quotes"
				}
				return i, "want a key in double quotes, or the object's end"
			}
			if i, reason = p.str(i + 1); reason != "" {
				return i, reason
			}
			if i = p.space(i); i == len(p) {
				return i, endsInValue
			}
			if p[i] != ':' {
				return i, "want a colon after the key"
			}
			i++
			want = wantValue

		case wantCommaOrEnd:
			if depth == 0 {
				return i, "more follows the value"
			}
			object := open[(depth-1)/64]&(1<<((depth-1)%64)) != 0
			switch {
			case c == ',' && object:
				want = wantKey
			case c == ',':
				want = wantValue
			case c == '}' && object, c == ']' && !object:
				depth--
			case object:
				return i, "want a comma, or the object's end"
			default:
				return i, "want a comma, or the array's end"
			}
			i++
		}
	}
}

func (p jsonText) space(i int) int {
	for i < len(p) && (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t') {
		i++
	}
	return i
}

// str goes from the byte after the opening quote to the byte after the closing
// one.
func (p jsonText) str(i int) (int, string) {
	for {
		// Eight plain bytes at a time: most of most payloads.
		for i+8 <= len(p) && plainBytes(binary.LittleEndian.Uint64(p[i:])) {
			i += 8
		}
		if i >= len(p) {
			return i, endsInString
		}
		switch c := p[i]; {
		case c == '"':
			return i + 1, ""
		case c == '\\':
			var reason string
			if i, reason = p.escape(i); reason != "" {
				return i, reason
			}
		case c < ' ':
			return i, "a raw control character in a string"
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(p[i:])
			if r == utf8.RuneError && size == 1 {
				return i, "invalid UTF-8"
			}
			i += size
		}
	}
}

// plainBytes reports whether none of the eight bytes of w needs a closer look:
// none is a quote, a backslash, a control character or beyond ASCII.
func plainBytes(w uint64) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	quote := w ^ ('"' * ones)      // a zero byte where a quote was
	backslash := w ^ ('\\' * ones) // and a backslash
	// The lowest byte that is zero (in w - ' ', the lowest below a space) borrows
	// and so sets its high bit. Where no byte is, nothing borrows and none is set.
	return (w|(w-' '*ones)|(quote-ones)|(backslash-ones))&highs == 0
}

// escape goes from a backslash to the byte after the escape.
func (p jsonText) escape(i int) (int, string) {
	if i+1 == len(p) {
		return i + 1, endsInString
	}
	switch p[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, ""
	case 'u':
		for k := i + 2; k < i+6; k++ {
			if k == len(p) {
				return k, endsInString
			}
			if c := p[k]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return k, "an escape without its four hexadecimal digits"
			}
		}
		return i + 6, ""
	}
	return i + 1, "an escape that JSON does not have"
}

// number goes from a sign or digit to the byte after the number.
func (p jsonText) number(i int) (int, string) {
	if p[i] == '-' {
		i++
	}
	first := i
	if i = p.digits(i); i == first {
		return i, numberNoDigit
	}
	if p[first] == '0' && i > first+1 {
		return first, "a number with a leading zero"
	}
	if i < len(p) && p[i] == '.' {
		first = i + 1
		if i = p.digits(first); i == first {
			return i, numberNoDigit
		}
	}
	if i < len(p) && (p[i] == 'e' || p[i] == 'E') {
		first = i + 1
		if first < len(p) && (p[first] == '+' || p[first] == '-') {
			first++
		}
		if i = p.digits(first); i == first {
			return i, numberNoDigit
		}
	}
	return i, ""
}

func (p jsonText) digits(i int) int {
	for i < len(p) && '0' <= p[i] && p[i] <= '9' {
		i++
	}
	return i
}

// literal goes over true, false or null.
func (p jsonText) literal(i int) (int, string) {
	word := "true"
	switch p[i] {
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	}
	if len(p)-i < len(word) || string(p[i:i+len(word)]) != word {
		return i, "want true, false or null"
	}
	return i + len(word), ""
}
