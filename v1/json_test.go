//go:build unix

package holdfast

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The layout of JSON.stringify(value, null, 2); the numbers and keys are the caller's.
func TestLayout(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"null", `null`, `null`},
		{"true", ` true `, `true`},
		{"false", "\tfalse\r\n", `false`},
		{"empty object", `{ }`, `{}`},
		{"empty array", "[\n]", `[]`},
		{"empty string", `""`, `""`},
		{"object", `{"a":1,"b":2}`, "{\n  \"a\": 1,\n  \"b\": 2\n}"},
		{"array", `[1,2]`, "[\n  1,\n  2\n]"},
		{"nested", `{"a":[{},[],{"b":[1]}]}`, "{\n  \"a\": [\n    {},\n    [],\n    {\n      \"b\": [\n        1\n      ]\n    }\n  ]\n}"},
		{"spaces everywhere", " { \"a\" : [ 1 , \t2 ] ,\n\"b\":null } ", "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": null\n}"},
		{"order and number of keys", `{"b":1,"a":2,"b":3,"1":4,"0":5}`, "{\n  \"b\": 1,\n  \"a\": 2,\n  \"b\": 3,\n  \"1\": 4,\n  \"0\": 5\n}"},
		{"numbers", `[9007199254740993,1.0,-0,1e400,1E+2,0.10,-1.5e-3]`,
			"[\n  9007199254740993,\n  1.0,\n  -0,\n  1e400,\n  1E+2,\n  0.10,\n  -1.5e-3\n]"},
		{"a number at the end", `-12.5e1`, `-12.5e1`},
		{"what stands for itself", `"<a&b>` + "\u2028\u2029\u007f\u00e9\U0001f600" + `"`, `"<a&b>` + "\u2028\u2029\u007f\u00e9\U0001f600" + `"`},
		{"what was escaped for no reason", `"\/\u0041\u003c\u00e9\u2028\u007f\ud83d\ude00"`, `"/A<` + "\u00e9\u2028\u007f\U0001f600" + `"`},
		{"what must be escaped", `"\"\\\b\f\n\r\t"`, `"\"\\\b\f\n\r\t"`},
		{"the same by number", `"\u0022\u005c\u0008\u000C\u000a\u000D\u0009"`, `"\"\\\b\f\n\r\t"`},
		{"other control characters", `"\u0000\u001F\u000b"`, `"\u0000\u001f\u000b"`},
		{"a surrogate alone", `"\uD800 \udc00x\uD83D"`, `"\ud800 \udc00x\ud83d"`},
		{"surrogates in the wrong order", `"\ude00\ud83d"`, `"\ude00\ud83d"`},
		{"a surrogate before a pair", `"\ud83d\ud83d\ude00"`, `"\ud83d` + "\U0001f600" + `"`},
		{"a surrogate before another escape", `"\ud83d\n\ud83d\u0041"`, `"\ud83d\n\ud83dA"`},
		{"a replacement character", `"\ufffd"`, "\"\ufffd\""},
		{"keys", `{"\u0041\/\ud800":{"":1}}`, "{\n  \"A/\\ud800\": {\n    \"\": 1\n  }\n}"},
		{"brackets in strings", `["]","}",",",":","{\"a\":[1]}"]`, "[\n  \"]\",\n  \"}\",\n  \",\",\n  \":\",\n  \"{\\\"a\\\":[1]}\"\n]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := []byte(c.in)
			got, err := layout("x.json", in, 1<<20)
			if err != nil || string(got) != c.want {
				t.Fatalf("got %q, %v; want %q", got, err, c.want)
			}
			if string(in) != c.in {
				t.Errorf("the payload became %q", in)
			}
			again, err := layout("x.json", got, int64(len(got)))
			if err != nil || !bytes.Equal(again, got) {
				t.Errorf("laid out again: %q, %v", again, err)
			}
			if _, err := layout("x.json", in, int64(len(got))-1); !errors.Is(err, ErrTooLarge) {
				t.Errorf("one byte too many: %v", err)
			}
		})
	}
}

func TestLayoutRefuses(t *testing.T) {
	for _, c := range []struct{ name, in, says string }{
		{"nothing", "", ""},
		{"white space", " \n", ""},
		{"cut", `{"a":1`, ""},
		{"two values", "1 2", ""},
		{"a comma too many", `[1,]`, ""},
		{"a comment", `[1] // x`, ""},
		{"a word", `undefined`, ""},
		{"NaN", `NaN`, ""},
		{"a leading zero", `01`, ""},
		{"a leading plus", `+1`, ""},
		{"a single quote", `'a'`, ""},
		{"a control character", "\"\x01\"", ""},
		{"an unknown escape", `"\x"`, ""},
		{"half an escape", `"\u12"`, ""},
		{"a byte order mark", "\xef\xbb\xbf1", ""},
		{"a surrogate in UTF-8", "\"\xed\xa0\x80\"", "UTF-8"},
		{"a byte that is no UTF-8", "\"\xff\"", "UTF-8"},
		{"an overlong form", "\"\xc0\xaf\"", "UTF-8"},
		{"a form feed", "\f1", ""},
		{"a no-break space", "\u00a01", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, limit := range []int64{1 << 20, 0} {
				got, err := layout("x.json", []byte(c.in), limit)
				unitIs(t, "layout", err, ErrInvalidJSON, "x.json", c.says)
				if got != nil {
					t.Errorf("%q beside an error", got)
				}
			}
			unitIs(t, "check", checkJSON("x.json", []byte(c.in)), ErrInvalidJSON, "x.json", c.says)
		})
	}
}

// The layout of something small can be huge: no more of it is made than is allowed.
func TestLayoutOfDepth(t *testing.T) {
	const depth = 9000
	deep := []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
	if _, err := layout("x.json", deep, 1<<16); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v, want %v", err, ErrTooLarge)
	}
	w := writer{in: deep, limit: 1 << 16}
	w.value(0)
	if most := 1<<16 + 4*len(deep); len(w.out) > most {
		t.Errorf("%d bytes were made, at most %d were due", len(w.out), most)
	}
	got, err := layout("x.json", []byte(`[[[]]]`), 1<<16)
	if err != nil || string(got) != "[\n  [\n    []\n  ]\n]" {
		t.Errorf("got %q, %v", got, err)
	}
}

// jsonTokens tells the tokens of a JSON text, numbers by their digits.
func jsonTokens(t testing.TB, text []byte) (tokens []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return tokens
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		tokens = append(tokens, fmt.Sprintf("%T %v", token, token))
	}
}

// What enqueue wrote comes back from a load, whichever way the file came there.
func TestEnqueueLayout(t *testing.T) {
	s, d := newUnitStore(t, unitWay{Auto, HardLink})
	payload := `{ "b":9007199254740993, "a":1.0, "z":-0, "e":1e400, "s":"<a&b>` + "\u2028" + `" }`
	want := "{\n  \"b\": 9007199254740993,\n  \"a\": 1.0,\n  \"z\": -0,\n  \"e\": 1e400,\n  \"s\": \"<a&b>\u2028\"\n}"
	unitEnqueue(t, s, "a", payload)
	if got := unitNames(t, d.queue); got != "a.json "+want {
		t.Errorf("the file is %q, want %q", got, want)
	}
	unitOK(t, s.Ack(t.Context(), unitLoad(t, s, "a", want)))
	unitPut(t, d.at("a.json"), payload) // another program's layout stays its own
	unitLoad(t, s, "a", payload)
}

func TestEnqueueRefuses(t *testing.T) {
	d := newUnitDirs(t)
	s := d.open(t, unitWay{Auto, HardLink}, Options{MaxEntryBytes: 10})
	unitEnqueue(t, s, "a", `"12345678"`)
	before := d.tree(t)
	for payload, want := range map[string]error{`"123456789"`: ErrTooLarge, `[1,2,3]`: ErrTooLarge, `[1`: ErrInvalidJSON, "": ErrInvalidJSON} {
		id, err := s.Enqueue(t.Context(), "a", []byte(payload))
		unitIs(t, payload, err, want, "a.json")
		if id != "" {
			t.Errorf("%s: the ID %q beside an error", payload, id)
		}
		if payload != "" && strings.Contains(err.Error(), payload) {
			t.Errorf("%q tells of the payload", err)
		}
	}
	unitUnchanged(t, before, d.tree(t))
}

// An omitted ID becomes a UUID; later ones sort after earlier ones.
func TestEnqueueID(t *testing.T) {
	s, d := newUnitStore(t, unitWay{Auto, HardLink})
	last := ""
	for range 5 {
		id, err := s.Enqueue(t.Context(), "", []byte(`1`))
		if err != nil || len(id) != 36 || id[14] != '7' || id <= last {
			t.Fatalf("got %q, %v after %q", id, err, last)
		}
		last = id
		unitLoad(t, s, id, "1")
	}
	if got := strings.Count(unitNames(t, d.queue), processingSuffix); got != 5 {
		t.Errorf("%d claims, want 5", got)
	}
}

// What stands at the pending name is replaced and never followed; a directory cannot be
// replaced, and nothing is left of the try.
func TestEnqueueOverStrays(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		s, d := newUnitStore(t, w)
		target := filepath.Join(t.TempDir(), "target")
		unitPut(t, target, `"not ours"`)
		unitOK(t, os.Symlink(target, d.at("a.json")), os.Mkdir(d.at("b.json"), 0o700))
		unitEnqueue(t, s, "a", `1`)
		if text, err := os.ReadFile(target); err != nil || string(text) != `"not ours"` {
			t.Errorf("the symlink's target holds %s, %v", text, err)
		}
		before := d.tree(t)
		if _, err := s.Enqueue(t.Context(), "b", []byte(`2`)); err == nil {
			t.Error("enqueued over a directory")
		}
		unitUnchanged(t, before, d.tree(t))
		unitLoad(t, s, "a", "1")
	})
}
