package queue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCheckPayloadAccepts(t *testing.T) {
	for _, p := range []string{
		`null`, `true`, `false`, `0`, `-0`, `-0.0`, `1e400`, `-1E-400`, `0e+0`, `12.50e07`,
		`9007199254740993`, strings.Repeat("9", 400),
		`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"\u00e9\uD83D\uDE00"`, `"12345678"`, `"123456789\n"`,
		`"\ud800"`, `"\udc00\ud800"`, `"\u0000"`,
		"\"\u2028\u2029\"", "\"\x7f\"", `"é😀漢字"`, "\"\ufeff\"", "\"\ufffd\"", "\"\U0010ffff\"",
		`[]`, `{}`, `[[]]`, `[{}]`, `{"a":{}}`, `[1,2,3]`, `[ ]`, `{ }`, "[\n]",
		`{"a":1,"a":2}`, `{"":""}`, `{"a":[1,{"b":null}],"c":"d"}`,
		" \t\r\n[ 1 , 2 ] \t\r\n", ` "x" `,
		"{ \"b\":9007199254740993, \"a\":1.0, \"z\":-0, \"e\":1e400, \"s\":\"<a&b>\u2028\" }",
	} {
		if err := CheckPayload([]byte(p), DefaultMaxPayloadBytes, DefaultMaxPayloadDepth); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
}

func TestCheckPayloadRefuses(t *testing.T) {
	const zeros = "\x00\x00"
	for _, test := range []struct {
		payload string
		at      int
		reason  string // a part of it
	}{
		{"", 0, "no JSON value"},
		{" \n", 2, "no JSON value"},
		{"\ufeff{}", 0, "byte order mark"},
		{" \ufeff{}", 1, "want a JSON value"},
		{zeros, 0, "want a JSON value"},
		{`{}` + zeros, 2, "more follows"},
		{`1 2`, 2, "more follows"},
		{`{}{}`, 2, "more follows"},
		{`[]]`, 2, "more follows"},
		{`"a"b`, 3, "more follows"},
		{`x`, 0, "want a JSON value"},
		{`NaN`, 0, "want a JSON value"},
		{`Infinity`, 0, "want a JSON value"},
		{`'a'`, 0, "want a JSON value"},
		{"\v1", 0, "want a JSON value"},
		{"\u00a01", 0, "want a JSON value"},
		{`//c`, 0, "want a JSON value"},

		{`tru`, 0, "true, false or null"},
		{`[nul]`, 1, "true, false or null"},
		{`falsy`, 0, "true, false or null"},
		{`True`, 0, "want a JSON value"},
		{`truex`, 4, "more follows"},

		{`-`, 1, "without a digit"},
		{`+1`, 0, "want a JSON value"},
		{`.5`, 0, "want a JSON value"},
		{`01`, 0, "leading zero"},
		{`-01`, 1, "leading zero"},
		{`1.`, 2, "without a digit"},
		{`1.e1`, 2, "without a digit"},
		{`1e`, 2, "without a digit"},
		{`1e+`, 3, "without a digit"},
		{`[1e-]`, 4, "without a digit"},
		{`0x10`, 1, "more follows"},
		{`1_000`, 1, "more follows"},

		{`"`, 1, "inside a string"},
		{`"abc`, 4, "inside a string"},
		{`"12345678`, 9, "inside a string"},
		{`"\`, 2, "inside a string"},
		{`"\"`, 3, "inside a string"},
		{`"\u12`, 5, "inside a string"},
		{`"\u12"`, 5, "hexadecimal"},
		{`"\u00g0"`, 5, "hexadecimal"},
		{`"\x41"`, 2, "an escape that"},
		{`"\'"`, 2, "an escape that"},
		{`"\U0001F600"`, 2, "an escape that"},
		{"\"a\nb\"", 2, "control character"},
		{"\"0123456\x1f\"", 8, "control character"},
		{"\"\x00\"", 1, "control character"},
		{"\"a\xffb\"", 2, "invalid UTF-8"},
		{"\"0123456\x80\"", 8, "invalid UTF-8"},
		{"\"\xc0\xaf\"", 1, "invalid UTF-8"},         // overlong
		{"\"\xed\xa0\x80\"", 1, "invalid UTF-8"},     // a surrogate, encoded
		{"\"\xf4\x90\x80\x80\"", 1, "invalid UTF-8"}, // beyond U+10FFFF
		{"\"\xe2\x82", 1, "invalid UTF-8"},           // cut off
		{"{\"\xff\":1}", 2, "invalid UTF-8"},         // in a key
		{"\xff", 0, "want a JSON value"},             // outside a string

		{`[`, 1, "inside the value"},
		{`[1`, 2, "inside the value"},
		{`[1,`, 3, "inside the value"},
		{`[,1]`, 1, "want a JSON value"},
		{`[1,]`, 3, "want a JSON value"},
		{`[1 2]`, 3, "the array's end"},
		{`[1}`, 2, "the array's end"},
		{`[1:2]`, 2, "the array's end"},
		{`]`, 0, "want a JSON value"},
		{`{`, 1, "inside the value"},
		{`{"a"`, 4, "inside the value"},
		{`{"a":`, 5, "inside the value"},
		{`{"a":1`, 6, "inside the value"},
		{`{"a":1,`, 7, "inside the value"},
		{`{"a":}`, 5, "want a JSON value"},
		{`{"a":]`, 5, "want a JSON value"},
		{`{"a" 1}`, 5, "colon"},
		{`{"a",1}`, 4, "colon"},
		{`{a:1}`, 1, "key in double quotes"},
		{`{1:2}`, 1, "key in double quotes"},
		{`{,}`, 1, "key in double quotes"},
		{`{"a":1,}`, 7, "key in double quotes"},
		{`{"a":1 "b":2}`, 7, "the object's end"},
		{`{"a":1]`, 6, "the object's end"},
		{`}`, 0, "want a JSON value"},
		{`[{]`, 2, "key in double quotes"},
	} {
		err := CheckPayload([]byte(test.payload), DefaultMaxPayloadBytes, DefaultMaxPayloadDepth)
		if !errors.Is(err, ErrInvalidPayload) || errors.Is(err, ErrTooLarge) {
			t.Errorf("%q: error %v; want ErrInvalidPayload", test.payload, err)
			continue
		}
		place := fmt.Sprintf("at byte %d: ", test.at)
		if !strings.Contains(err.Error(), place) || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("%q: error %q; want %q and %q in it", test.payload, err, place, test.reason)
		}
	}
}

func TestCheckPayloadBounds(t *testing.T) {
	t.Run("size", func(t *testing.T) {
		p := []byte(`"12345"`)
		if err := CheckPayload(p, len(p), 0); err != nil {
			t.Errorf("at the bound: %v", err)
		}
		err := CheckPayload(p, len(p)-1, 0)
		if !errors.Is(err, ErrTooLarge) || !errors.Is(err, ErrInvalid) {
			t.Errorf("past the bound: error %v; want ErrTooLarge", err)
		}
		// A payload past the bound is not looked into.
		if err := CheckPayload([]byte("\xff\xff"), 1, 0); !errors.Is(err, ErrTooLarge) {
			t.Errorf("past the bound and invalid: error %v; want ErrTooLarge", err)
		}
	})

	t.Run("depth", func(t *testing.T) {
		for _, depth := range []int{1, 2, 63, 64, 65, 512, 1023, 1024, 1025, 5000} {
			// Objects and arrays in a pattern that no shift by a word repeats.
			var p, end []byte
			for i := range depth {
				if i%7%2 == 0 {
					p, end = append(p, '['), append(end, ']')
				} else {
					p, end = append(p, `{"k":`...), append(end, '}')
				}
			}
			p = append(p, '1')
			deepest := bytes.LastIndexAny(p, "[{")
			for i := len(end) - 1; i >= 0; i-- {
				p = append(p, end[i])
			}
			if err := CheckPayload(p, len(p), depth); err != nil {
				t.Errorf("depth %d of %d: %v", depth, depth, err)
			}
			err := CheckPayload(p, len(p), depth-1)
			want := fmt.Sprintf("at byte %d: nests deeper than %d", deepest, depth-1)
			if !errors.Is(err, ErrInvalidPayload) || !strings.Contains(err.Error(), want) {
				t.Errorf("depth %d of %d: error %v; want ErrInvalidPayload with %q", depth, depth-1, err, want)
			}

			// The innermost bracket closed by the other kind.
			wrong := bytes.Clone(p)
			k := deepest + bytes.IndexAny(p[deepest:], "]}")
			wrong[k] ^= ']' ^ '}'
			if err := CheckPayload(wrong, len(p), depth); !errors.Is(err, ErrInvalidPayload) {
				t.Errorf("depth %d, wrong bracket: error %v; want ErrInvalidPayload", depth, err)
			}
		}
	})

	t.Run("a scalar has no depth", func(t *testing.T) {
		if err := CheckPayload([]byte(`"x"`), 10, 0); err != nil {
			t.Error(err)
		}
	})
}

// An error goes into logs; a payload must not.
func TestCheckPayloadErrorKeepsPayloadOut(t *testing.T) {
	const secret = "hunter2"
	for _, p := range []string{
		secret, `"` + secret, `{"` + secret + `" 1}`, `["` + secret + `" "` + secret + `"]`, `"\` + secret + `"`, `"` + secret + "\xff\"",
	} {
		err := CheckPayload([]byte(p), DefaultMaxPayloadBytes, DefaultMaxPayloadDepth)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: error %v", p, err)
		}
	}
}

func TestCheckPayloadAllocatesNothing(t *testing.T) {
	for name, p := range map[string]string{
		"plain":    `{"text":"` + strings.Repeat("plain text ", 1000) + `"}`,
		"unicode":  `{"text":"` + strings.Repeat("größer 漢字 😀 \\u00e9 ", 1000) + `"}`,
		"numbers":  "[" + strings.Repeat("-12.5e3,", 1000) + "0]",
		"literals": "[" + strings.Repeat("true,false,null,", 1000) + "{}]",
		"nested":   strings.Repeat(`[{"k":`, 512) + "1" + strings.Repeat("}]", 512),
	} {
		payload := []byte(p)
		allocs := testing.AllocsPerRun(20, func() {
			if err := CheckPayload(payload, DefaultMaxPayloadBytes, 1024); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations; want none", name, allocs)
		}
	}
}

// The eight-byte look must agree with the byte-wise one at every place in a word.
func TestPlainBytes(t *testing.T) {
	for c := range 256 {
		special := c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf
		for shift := 0; shift < 64; shift += 8 {
			for _, fill := range []uint64{0x2020202020202020, 0x2323232323232323, 0x5b5b5b5b5b5b5b5b, 0x7f7f7f7f7f7f7f7f} {
				w := fill&^(0xff<<shift) | uint64(c)<<shift
				if got := plainBytes(w); got == special {
					t.Fatalf("byte %#x at bit %d among %#x: plain %v; want %v", c, shift, fill&0xff, got, !special)
				}
			}
		}
	}
}

// FuzzCheckPayload compares the scanner with encoding/json, which has the same
// grammar but another depth bound and no mind for UTF-8.
func FuzzCheckPayload(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `null`, `-0`, `1e400`, `01`, `1.`, `"\ud800"`, `"\u12"`, "\"\xff\"", "\"\xed\xa0\x80\"", "\ufeff{}",
		`{"a":1,"a":2}`, `[1,]`, `{"a":[{}]}`, `{"a" 1}`, `[[[[[[[[[[]]]]]]]]]]`, "\"0123456\n\"", " \t\r\n[ 1 , 2 ] \t\r\n",
	} {
		f.Add([]byte(seed), uint8(8))
	}
	f.Fuzz(func(t *testing.T, p []byte, maxDepth uint8) {
		err := CheckPayload(p, len(p), int(maxDepth))
		want := json.Valid(p) && utf8.Valid(p) && depthOf(p) <= int(maxDepth)
		if (err == nil) != want {
			t.Fatalf("%q with depth %d: error %v; want accepted %v", p, maxDepth, err, want)
		}
		if err != nil && !errors.Is(err, ErrInvalidPayload) {
			t.Fatalf("%q: error %v; want ErrInvalidPayload", p, err)
		}
		if len(p) > 0 && !errors.Is(CheckPayload(p, len(p)-1, int(maxDepth)), ErrTooLarge) {
			t.Fatalf("%q: not refused one byte past the bound", p)
		}
	})
}

// depthOf gives how deeply the brackets of a valid JSON text nest.
func depthOf(p []byte) int {
	depth, most, quoted := 0, 0, false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[', c == '{':
			depth++
			most = max(most, depth)
		case c == ']', c == '}':
			depth--
		}
	}
	return most
}

func BenchmarkCheckPayload(b *testing.B) {
	for _, bench := range []struct{ name, payload string }{
		{"plain", `{"text":"` + strings.Repeat("plain text ", 6000) + `"}`},
		{"unicode", `{"text":"` + strings.Repeat("größer 漢字 😀 ", 3000) + `"}`},
		{"update", "[" + strings.Repeat(`{"update_id":9007199254740993,"message":{"text":"hi 👋","ok":true,"n":null}},`, 800) + "0]"},
	} {
		p := []byte(bench.payload)
		b.Run(bench.name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				if err := CheckPayload(p, len(p), 8); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
