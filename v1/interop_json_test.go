//go:build unix

package holdfast

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// An interopText is a JSON text and what JavaScript makes of it. Both sides always read the
// same value. The bytes are those of JSON.stringify(value, null, 2), but where JavaScript's
// value is not the text: numbers that it writes otherwise, keys that it orders or drops.
type interopText struct {
	name, text string
	otherwise  bool
}

var interopTexts = []interopText{
	{name: "null", text: `null`},
	{name: "words", text: `[true,false,null]`},
	{name: "empty", text: `[{},[],"",{"":{}}]`},
	{name: "white space", text: " {\t\"a\" :\r\n[ 1 , 2 ] } "},
	{name: "nesting", text: strings.Repeat(`{"a":[`, 40) + strings.Repeat(`]}`, 40)},
	{name: "a slash", text: `"\/ / <\/script>"`},
	{name: "escapes for no reason", text: `"\u0041\u00e9\u003c\u2028\u2029\u007f\ud83d\ude00"`},
	{name: "as they are", text: "\"\u2028\u2029\u007f\u0080<&>é\U0001f600\ufeff\ufffd\""},
	{name: "control characters", text: `"\u0000\u0001\b\t\n\u000b\f\r\u001f\"\\"`},
	{name: "the short ones by number", text: `"\u0008\u0009\u000A\u000c\u000D\u0022\u005C\u002f"`},
	{name: "surrogates alone", text: `"\ud800x\uDFFF\ud83d\ud83d\ude00\ude00"`},
	{name: "keys with escapes", text: `{"\u0061\/\ud800":1,"\n":2}`},
	{name: "a key of the language", text: `{"__proto__":{"a":1},"constructor":2,"toString":null}`},
	{name: "numbers", text: `[0,-1,1.5,1e+21,1e-7,123456789012345680000,5e-324,1.7976931348623157e+308,9007199254740991]`},
	{name: "a number in another form", text: `[1.0,1e21,1E5,0.10,100e-2,1e-1]`, otherwise: true},
	{name: "minus zero", text: `-0`, otherwise: true},
	{name: "a number of too many digits", text: `[9007199254740993,0.1000000000000000055511151231257827]`, otherwise: true},
	{name: "a number too large", text: `[1e400,-1e400,1e-400]`, otherwise: true},
	{name: "the same key twice", text: `{"a":1,"b":2,"a":3}`, otherwise: true},
	{name: "keys like integers", text: `{"b":1,"10":2,"9":3}`, otherwise: true},
}

// What Go writes reads in JavaScript as the same value, and is laid out the same way.
func TestInteropLayout(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	d := newInteropDirs(t)
	s, err := Open(d.Queue, nil)
	interopOK(t, err)
	t.Cleanup(func() { interopOK(t, s.Close()) })
	compare := func(t *testing.T, text string, otherwise bool) {
		t.Helper()
		_, err := s.Enqueue(context.Background(), interopID, []byte(text))
		interopOK(t, err)
		file := filepath.Join(d.Queue, interopID+pendingSuffix)
		var r struct {
			Value, Bytes bool
			Want         string
		}
		p.must(t, "compare", interopArgs{"file": file, "text": text}, &r)
		got, err := os.ReadFile(file)
		interopOK(t, err)
		if !r.Value {
			t.Errorf("%s\nwas written as %s\nwhich JavaScript reads as another value", text, got)
		}
		if r.Bytes == otherwise {
			t.Errorf("%s\nwas written as %s\nJavaScript writes %s\nthe same bytes: %v, want %v", text, got, r.Want, r.Bytes, !otherwise)
		}
	}
	for _, c := range interopTexts {
		t.Run(c.name, func(t *testing.T) { compare(t, c.text, c.otherwise) })
	}
	t.Run("any", func(t *testing.T) {
		g := interopJSON{interopRandom(t)}
		for range 300 {
			compare(t, g.value(4), false)
		}
	})
}

// interopJSON makes JSON texts that JavaScript writes as it read them, up to white space
// and escapes.
type interopJSON struct{ *rand.Rand }

func (g interopJSON) space() string {
	return strings.Repeat([]string{" ", "\n", "\t", "\r"}[g.IntN(4)], g.IntN(3)/2)
}

func (g interopJSON) value(depth int) string {
	kind := g.IntN(7)
	if depth == 0 {
		kind %= 5
	}
	text := ""
	switch kind {
	case 0:
		text = []string{"null", "true", "false", "{}", "[]", `""`}[g.IntN(6)]
	case 1:
		text = strconv.Itoa(int(g.Int32()) - g.IntN(1<<31))
	case 2:
		// Of a magnitude in which both sides write no exponent, and the shortest digits.
		text = strconv.FormatFloat(g.NormFloat64()*1000, 'f', -1, 64)
	case 3, 4:
		text = g.text()
	case 5:
		var all []string
		for range g.IntN(4) {
			all = append(all, g.value(depth-1))
		}
		text = "[" + g.space() + strings.Join(all, ",") + "]"
	case 6:
		var all []string
		for i := range g.IntN(4) {
			// The number keeps keys apart; no key is like an integer.
			key := strings.TrimSuffix(g.text(), `"`) + fmt.Sprintf(`k%d"`, i)
			all = append(all, g.space()+key+g.space()+":"+g.value(depth-1))
		}
		text = "{" + g.space() + strings.Join(all, ",") + "}"
	}
	return g.space() + text + g.space()
}

// text makes a string of all planes, in all the ways in which it may be written.
func (g interopJSON) text() string {
	b := []byte{'"'}
	for range g.IntN(8) {
		switch g.IntN(6) {
		case 0:
			b = append(b, 'a'+byte(g.IntN(26)))
		case 1:
			b = append(b, '\\', `"\/bfnrt`[g.IntN(8)])
		case 2:
			b = fmt.Appendf(b, `\u%04x`, g.IntN(1<<16)) // lone surrogates, and pairs, too
		case 3:
			b = fmt.Appendf(b, `\u%04X`, g.IntN(256))
		case 4:
			r := rune(' ' + g.IntN(0x10ffff-' '))
			if r == '"' || r == '\\' {
				r = '<'
			}
			b = append(b, string(r)...) // a surrogate becomes U+FFFD
		case 5:
			b = fmt.Appendf(b, `\ud8%02x\udc%02x`, g.IntN(256), g.IntN(256))
		}
	}
	return string(append(b, '"'))
}

// What JavaScript writes reads in Go as the same bytes.
func TestInteropReadsJavaScript(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	d := newInteropDirs(t)
	for _, r := range []Route{HardLink, RenameNoReplace} {
		s, err := Open(d.Queue, &Options{ClaimBy: r})
		interopOK(t, err)
		for _, c := range interopTexts {
			var parsed any
			if json.Unmarshal([]byte(c.text), &parsed) != nil || c.otherwise {
				continue // JavaScript has another value than the text
			}
			p.must(t, "enqueue", interopArgs{"queue": d.Queue, "id": interopID, "entry": json.RawMessage(c.text)}, nil)
			want, err := os.ReadFile(filepath.Join(d.Queue, interopID+pendingSuffix))
			interopOK(t, err)
			claim, err := s.Load(context.Background(), interopID, nil)
			if err != nil || string(claim.Payload) != string(want) {
				t.Fatalf("%s: %v, want %s", c.name, err, want)
			}
			// To write it again changes nothing: both have one layout.
			if again, err := layout("again", claim.Payload, 1<<20); err != nil || string(again) != string(want) {
				t.Errorf("%s: laid out again as %s, want %s: %v", c.name, again, want, err)
			}
			interopOK(t, s.Ack(context.Background(), claim))
		}
		interopOK(t, s.Close())
	}
}

// Both sides take the same IDs.
func TestInteropIDs(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	ids := []string{"a", "A", "_", "-", "-x", "0", ".", "..", ".x", "x.", "x..", "a/b", `a\b`, "a b", "a:b", "a\x00", "é", "", "a.json", "x.processing",
		"CON", "con", "Con.txt", "con.", "CON.a.b", "CONx", "xCON", "PRN", "AUX", "NUL", "nul.json", "COM0", "COM1", "com9.x", "COM10", "LPT1", "lpt9", "LPT0", "COM", "LPT",
		"CLOCK$", "CLOCK", "CONIN", "CONOUT.x", "NUL-1", "aux_", "a~b", "a+b", "a@b"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		id := make([]byte, 1+rng.IntN(6))
		for i := range id {
			id[i] = "aZ09._-CONcompltNU1 /é"[rng.IntN(22)]
		}
		ids = append(ids, strings.ToValidUTF8(string(id), "?"))
	}
	var takes []bool
	p.must(t, "verdicts", interopArgs{"ids": ids}, &takes)
	taken := 0
	for i, id := range ids {
		if err := checkID(id); (err == nil) != takes[i] {
			t.Errorf("ID %q: the package takes it: %v; Go: %v", id, takes[i], err)
		}
		if takes[i] {
			taken++
		}
	}
	if taken < 50 || taken > len(ids)-50 {
		t.Errorf("%d of %d taken: the IDs prove little", taken, len(ids))
	}
}
