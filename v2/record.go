//go:build unix

package holdfast

import (
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/holdfast/queue"
)

// The lock file holds one owner record of recordSize bytes, always: an object,
// padded with spaces, and a newline. A writer writes it before its transition and
// blanks it after; see docs/format-v2.md.
//
//	{"owner":"TOKEN","pid":123,"host":"phone","boot":"…","since":"2026-01-02T03:04:05.678Z","uncertain":false}     ⏎
const recordSize = 512

// blankRecord is the record of a lock whose last owner finished.
var blankRecord = strings.Repeat(" ", recordSize-1) + "\n"

const sinceLayout = "2006-01-02T15:04:05.000Z"

// encodeRecord gives o as a record. Host and boot id are for people: each is cut at
// maxWord bytes of text, so that the record always fits.
func encodeRecord(o queue.Owner) []byte {
	b := append(make([]byte, 0, recordSize), `{"owner":`...)
	b = appendString(b, cutText(o.Token, tokenChars))
	b = append(b, `,"pid":`...)
	b = strconv.AppendInt(b, int64(o.PID), 10)
	b = append(b, `,"host":`...)
	b = appendString(b, cutText(o.Host, maxWord))
	b = append(b, `,"boot":`...)
	b = appendString(b, cutText(o.Boot, maxWord))
	b = append(b, `,"since":"`...)
	b = o.Since.UTC().AppendFormat(b, sinceLayout)
	b = append(b, `","uncertain":`...)
	b = strconv.AppendBool(b, o.Uncertain)
	b = append(b, '}')
	return append(b, blankRecord[len(b):]...)
}

// cutText gives as much of s as a string of limit bytes holds, escapes counted and
// quotes not.
func cutText(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	for i, r := range s {
		size := utf8.RuneLen(r)
		switch {
		case r < ' ':
			size = len(`\u0000`)
		case r == '"' || r == '\\':
			size = 2
		}
		if limit -= size; limit < 0 {
			return s[:i]
		}
	}
	return s
}

// decodeRecord reads what stands in the lock. blank is true of exactly a blank
// record. Whatever is neither blank nor exactly what encodeRecord writes gives an
// owner without a token: somebody was there, and it cannot be read who.
func decodeRecord(b []byte) (o queue.Owner, blank bool) {
	switch {
	case len(b) != recordSize:
		return queue.Owner{}, false
	case string(b) == blankRecord:
		return queue.Owner{}, true
	}
	s := newScanner(b)
	m := s.open(ownerFields)
	m.must("owner")
	o.Token = s.token("owner").String()
	m.must("pid")
	pid := s.number()
	m.must("host")
	o.Host = string(s.string("host", recordSize))
	m.must("boot")
	o.Boot = string(s.string("boot", recordSize))
	m.must("since")
	since, err := time.Parse(sinceLayout, string(s.string("since", recordSize)))
	o.Since = since
	m.must("uncertain")
	if o.Uncertain = s.peek('t'); o.Uncertain {
		s.lit("true")
	} else {
		s.lit("false")
	}
	m.close()
	if s.err != nil || err != nil || pid > math.MaxInt32 {
		return queue.Owner{}, false
	}
	o.PID = int(pid)
	// The one spelling, padding included.
	if string(encodeRecord(o)) != string(b) {
		return queue.Owner{}, false
	}
	return o, false
}
