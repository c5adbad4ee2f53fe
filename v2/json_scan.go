//go:build unix

package holdfast

import "unicode/utf8"

// A jsonScan gives of a text that comes in pieces the verdict of queue.CheckPayload, which
// wants it whole. It holds a bit for each bracket that is open, and nothing of the text.
type jsonScan struct {
	state   scanState
	open    []uint64 // set for an object
	depth   int
	key     bool // the string is a key
	word    string
	hex     int // digits of an escape that are still to come
	rune    [utf8.UTFMax]byte
	runeLen int
}

// maxScanned bounds the depth of what is scanned in pieces, at 8 MiB of bits.
const maxScanned = 64 << 20

// A scanState is what may come next.
type scanState int

const (
	scanValue scanState = iota
	scanValueOrEnd
	scanKey
	scanKeyOrEnd
	scanColon
	scanCommaOrEnd

	inString
	inEscape
	inHex
	inRune
	inWord // of true, false or null

	inMinus
	inZero
	inDigits
	inPoint
	inFraction
	inExponent
	inExponentSign
	inExponentDigits
)

// write takes the next piece, and says whether the text may still be JSON.
func (s *jsonScan) write(b []byte) bool {
	for i := 0; i < len(b); i++ {
		if s.state == inString {
			for i < len(b) && b[i] >= ' ' && b[i] < utf8.RuneSelf && b[i] != '"' && b[i] != '\\' {
				i++
			}
			if i == len(b) {
				break
			}
		}
		if !s.byte(b[i]) {
			return false
		}
	}
	return true
}

// whole says whether what was written is one whole value.
func (s *jsonScan) whole() bool {
	return s.depth == 0 && (s.state == scanCommaOrEnd || s.endsNumber())
}

// endsNumber reports whether a number that is being read may end here.
func (s *jsonScan) endsNumber() bool {
	switch s.state {
	case inZero, inDigits, inFraction, inExponentDigits:
		return true
	}
	return false
}

func (s *jsonScan) byte(c byte) bool {
	switch s.state {
	case inString, inEscape, inHex, inRune:
		return s.text(c)
	case inWord:
		if c != s.word[0] {
			return false
		}
		if s.word = s.word[1:]; s.word == "" {
			s.state = scanCommaOrEnd
		}
		return true
	}
	if s.state >= inMinus {
		if s.number(c) {
			return true
		}
		if !s.endsNumber() {
			return false
		}
		s.state = scanCommaOrEnd
	}
	switch {
	case c == ' ', c == '\n', c == '\r', c == '\t':
		return true
	case s.state == scanCommaOrEnd:
		return s.behind(c)
	case s.state == scanColon:
		s.state = scanValue
		return c == ':'
	case s.state == scanKeyOrEnd && c == '}', s.state == scanValueOrEnd && c == ']':
		return s.close()
	case c == '"':
		s.key = s.state == scanKey || s.state == scanKeyOrEnd
		s.state = inString
		return true
	case s.state == scanKey, s.state == scanKeyOrEnd:
		return false
	}
	return s.value(c)
}

// value begins a value that is no string.
func (s *jsonScan) value(c byte) bool {
	switch {
	case c == '{', c == '[':
		return s.begin(c == '{')
	case c == '-':
		s.state = inMinus
	case c == '0':
		s.state = inZero
	case '1' <= c && c <= '9':
		s.state = inDigits
	case c == 't':
		s.state, s.word = inWord, "rue"
	case c == 'f':
		s.state, s.word = inWord, "alse"
	case c == 'n':
		s.state, s.word = inWord, "ull"
	default:
		return false
	}
	return true
}

func (s *jsonScan) begin(object bool) bool {
	if s.depth == maxScanned {
		return false
	}
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	if word == len(s.open) {
		s.open = append(s.open, 0)
	}
	if s.depth++; object {
		s.open[word] |= bit
		s.state = scanKeyOrEnd
	} else {
		s.open[word] &^= bit
		s.state = scanValueOrEnd
	}
	return true
}

func (s *jsonScan) close() bool {
	s.depth--
	s.state = scanCommaOrEnd
	return true
}

// behind is what may stand behind a value.
func (s *jsonScan) behind(c byte) bool {
	if s.depth == 0 {
		return false
	}
	object := s.open[(s.depth-1)/64]&(1<<((s.depth-1)%64)) != 0
	switch {
	case c == ',' && object:
		s.state = scanKey
	case c == ',':
		s.state = scanValue
	case c == '}' && object, c == ']' && !object:
		return s.close()
	default:
		return false
	}
	return true
}

// text goes on in a string.
func (s *jsonScan) text(c byte) bool {
	switch {
	case s.state == inEscape:
		switch c {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s.state = inString
		case 'u':
			s.state, s.hex = inHex, 4
		default:
			return false
		}
	case s.state == inHex:
		if s.hex--; s.hex == 0 {
			s.state = inString
		}
		return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
	case s.state == inRune || c >= utf8.RuneSelf:
		s.state = inRune
		s.rune[s.runeLen] = c
		s.runeLen++
		if got := s.rune[:s.runeLen]; utf8.FullRune(got) {
			r, size := utf8.DecodeRune(got)
			s.state, s.runeLen = inString, 0
			return r != utf8.RuneError || size > 1
		}
	case c == '\\':
		s.state = inEscape
	case c == '"' && s.key:
		s.state = scanColon
	case c == '"':
		s.state = scanCommaOrEnd
	default:
		return c >= ' '
	}
	return true
}

// number goes on in a number, or says that c is none of it.
func (s *jsonScan) number(c byte) bool {
	digit := '0' <= c && c <= '9'
	point, exponent := c == '.', c == 'e' || c == 'E'
	switch s.state {
	case inMinus:
		if s.state = inDigits; c == '0' {
			s.state = inZero
		}
		return digit || s.never()
	case inZero, inDigits:
		switch {
		case digit && s.state == inDigits:
		case point:
			s.state = inPoint
		case exponent:
			s.state = inExponent
		default:
			return false
		}
	case inPoint:
		s.state = inFraction
		return digit || s.never()
	case inFraction:
		if exponent {
			s.state = inExponent
		}
		return digit || exponent
	case inExponent:
		if s.state = inExponentSign; digit {
			s.state = inExponentDigits
		}
		return digit || c == '+' || c == '-' || s.never()
	case inExponentSign:
		s.state = inExponentDigits
		return digit || s.never()
	default:
		return digit
	}
	return true
}

// never says that a number cannot end where it would.
func (s *jsonScan) never() bool {
	s.state = inMinus
	return false
}
