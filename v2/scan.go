//go:build unix

package holdfast

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A scanner reads canonical text. It knows no white space and no choice: each
// method takes one spelling. The first fault sticks, and from then on the methods
// do nothing and answer zeros, so that a decoder reads as the grammar does and
// asks for the fault where a loop must end.
type scanner struct {
	b    []byte
	i    int
	err  *CorruptError
	sure bool // the fault stands whatever the rest of the file looks like
}

func newScanner(b []byte) scanner {
	s := scanner{b: b}
	if len(b) == 0 {
		s.final(0, ErrCorrupt, "empty")
	}
	return s
}

// fail notes the first fault.
func (s *scanner) fail(at int, format string, args ...any) {
	if s.err == nil {
		s.err = &CorruptError{Offset: int64(at), Reason: fmt.Sprintf(format, args...), Err: ErrCorrupt}
	}
}

// final notes a fault that no half-written file can explain.
func (s *scanner) final(at int, sentinel error, format string, args ...any) {
	if s.err == nil {
		s.fail(at, format, args...)
		s.err.Err = sentinel
		s.sure = true
	}
}

// corrupt gives the fault as an error about file.
func (s *scanner) corrupt(file string) error {
	s.err.File = file
	return s.err
}

// peek reports whether c is next.
func (s *scanner) peek(c byte) bool { return s.err == nil && s.i < len(s.b) && s.b[s.i] == c }

// lit takes exactly text.
func (s *scanner) lit(text string) {
	if s.err != nil {
		return
	}
	if rest := s.b[s.i:]; len(rest) >= len(text) && string(rest[:len(text)]) == text {
		s.i += len(text)
		return
	}
	for i := range len(text) {
		if s.i == len(s.b) || s.b[s.i] != text[i] {
			s.unexpected("want " + quoted(text[i:]))
			return
		}
		s.i++
	}
}

// unexpected is the fault that something else stands here than what was wanted.
func (s *scanner) unexpected(want string) {
	switch {
	case s.i == len(s.b):
		s.fail(s.i, "half-written: the file ends here; %s", want)
	case isSpace(s.b[s.i]):
		s.fail(s.i, "white space: not canonical; %s", want)
	case s.b[s.i] == 0:
		s.fail(s.i, "a zero byte: lost or never written; %s", want)
	default:
		s.fail(s.i, "%s, found %s", want, quoted(s.b[s.i:]))
	}
}

// end takes the last newline and the end of the file.
func (s *scanner) end() {
	if s.peek('\n') || s.i == len(s.b) {
		s.lit("\n")
	}
	if n := len(s.b) - s.i; n > 0 {
		s.final(s.i, ErrCorrupt, "%d trailing bytes after the end", n)
	}
}

// endPadded is end where spaces may follow the last newline.
func (s *scanner) endPadded() {
	s.b = withoutPadding(s.b)
	s.end()
}

// withoutPadding cuts off the spaces at the end.
func withoutPadding(b []byte) []byte { return bytes.TrimRight(b, " ") }

// more goes to the next element of an array whose opening bracket was taken, or
// takes the closing one and reports false.
func (s *scanner) more(first bool) bool {
	if s.peek(']') {
		s.i++
		return false
	}
	if !first {
		if s.err == nil && !s.peek(',') {
			s.unexpected(`want "," or "]"`)
		} else {
			s.i++
		}
	}
	return s.err == nil
}

// number takes a decimal number from 0 to maxNumber.
func (s *scanner) number() uint64 {
	if s.err != nil {
		return 0
	}
	start, i := s.i, s.i
	var n uint64
	for i < len(s.b) && '0' <= s.b[i] && s.b[i] <= '9' {
		n = n*10 + uint64(s.b[i]-'0') // may wrap: the length tells
		i++
	}
	switch digits := i - start; {
	case digits == 0 && s.peek('-'):
		s.fail(start, "a negative number")
	case digits == 0:
		s.unexpected("want a number")
	case digits > 1 && s.b[start] == '0':
		s.fail(start, "a number with a leading zero")
	case digits > 16 || n > maxNumber:
		s.fail(start, "a number beyond %d", uint64(maxNumber))
	case i < len(s.b) && strings.IndexByte(".eE", s.b[i]) >= 0:
		s.fail(start, "a number with a fraction or an exponent")
	default:
		s.i = i
		return n
	}
	return 0
}

// millis takes a time or a size.
func (s *scanner) millis() int64 { return int64(s.number()) }

// string takes a string in quotes and gives its value, which may lie in the file's
// bytes: a caller that keeps it copies it. The value is valid UTF-8 of at most
// limit bytes. what names it in a fault.
func (s *scanner) string(what string, limit int) []byte {
	if s.err != nil {
		return nil
	}
	if !s.peek('"') {
		s.unexpected("want " + what + " in quotes")
		return nil
	}
	start := s.i + 1
	i := start
	for i < len(s.b) && plain[s.b[i]] {
		i++
	}
	if i < len(s.b) && s.b[i] == '"' {
		if i-start > limit {
			s.fail(s.i, "%s of %d bytes: at most %d", what, i-start, limit)
			return nil
		}
		s.i = i + 1
		return s.b[start:i:i]
	}
	return s.stringFrom(start, i, what, limit)
}

// plain tells the bytes that stand for themselves in a string and need no look at
// their neighbours.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// stringFrom is string for values that are more than plain bytes: the ones from
// start to i are.
func (s *scanner) stringFrom(start, i int, what string, limit int) []byte {
	value := bytes.Clone(s.b[start:i])
	for {
		switch {
		case i >= len(s.b):
			s.fail(len(s.b), "half-written: the file ends in the middle of a string")
			return nil
		case len(value) > limit:
			s.fail(s.i, "%s is longer than %d bytes", what, limit)
			return nil
		}
		c := s.b[i]
		switch {
		case c == '"':
			s.i = i + 1
			return value
		case c < ' ':
			s.fail(i, "a raw control character in a string")
			return nil
		case c == '\\':
			plainByte, size := unescape(s.b[i:])
			if size == 0 {
				s.fail(i, "the escape %s is not canonical", quoted(s.b[i:min(i+6, len(s.b))]))
				return nil
			}
			value = append(value, plainByte)
			i += size
		case c < utf8.RuneSelf:
			value = append(value, c)
			i++
		default:
			r, size := utf8.DecodeRune(s.b[i:])
			if r == utf8.RuneError && size == 1 {
				s.fail(i, "invalid UTF-8 in a string")
				return nil
			}
			value = append(value, s.b[i:i+size]...)
			i += size
		}
	}
}

// unescape reads the escape at the beginning of b and gives its length, 0 if it
// is not one of the canonical ones: \" and \\, and \u00xx in lower case for the
// control characters.
func unescape(b []byte) (byte, int) {
	switch {
	case len(b) >= 2 && (b[1] == '"' || b[1] == '\\'):
		return b[1], 2
	case len(b) >= 6 && string(b[1:4]) == "u00":
		high, low := hexDigit(b[4]), hexDigit(b[5])
		if (high == 0 || high == 1) && low >= 0 {
			return byte(high<<4 | low), 6
		}
	}
	return 0, 0
}

// hexDigit is the value of a lower-case hexadecimal digit, else -1.
func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// token takes a token in quotes.
func (s *scanner) token(what string) token {
	at := s.i
	text := s.string(what, maxWord)
	if s.err != nil {
		return token{}
	}
	t, ok := parseToken(text)
	if !ok {
		s.fail(at, "%s %s is not a token", what, quoted(text))
	}
	return t
}

// generation takes a generation in quotes.
func (s *scanner) generation() generation {
	at := s.i
	text := s.string("generation", maxWord)
	if s.err != nil {
		return generation{}
	}
	g, ok := parseGeneration(string(text))
	if !ok {
		s.fail(at, "%s is not a generation", quoted(text))
	}
	return g
}

// checksum takes eight lower-case hexadecimal digits in quotes.
func (s *scanner) checksum() uint32 {
	at := s.i
	text := s.string("checksum", maxWord)
	if s.err != nil {
		return 0
	}
	var sum uint32
	ok := len(text) == 8
	for _, c := range text {
		d := hexDigit(c)
		ok = ok && d >= 0
		sum = sum<<4 | uint32(d&15)
	}
	if !ok {
		s.fail(at, "checksum %s is not eight lower-case hexadecimal digits", quoted(text))
	}
	return sum
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// quoted shows the beginning of a piece of a file in an error.
func quoted[T string | []byte](text T) string {
	const most = 32
	if len(text) > most {
		return fmt.Sprintf("%q…", string(text[:most]))
	}
	return fmt.Sprintf("%q", string(text))
}
