//go:build unix

package holdfast

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// Whatever is one JSON value in UTF-8 gets a layout that is one too: the same tokens in the
// same order, laid out once and for all. encoding/json's own indentation agrees where no
// string has an escape.
func FuzzLayout(f *testing.F) {
	for _, seed := range []string{
		`null`, `{"a":[1,{},[]],"b":"x"}`, `"\ud83d\ude00\ud800\u0000\/"`, "[ 1.0 , -0,1e400]", `{"a":1,"a":{"":[[[]]]}}`, "\"\u2028<&>\"", `[1`, "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 1<<12 {
			t.Skip("the layout of depth grows with its square")
		}
		was := bytes.Clone(in)
		out, err := layout("x.json", in, 1<<30)
		if !bytes.Equal(in, was) {
			t.Fatalf("the payload became %q", in)
		}
		if (err == nil) != (checkJSON("x.json", in) == nil) {
			t.Fatalf("layout says %v, the check %v", err, checkJSON("x.json", in))
		}
		if err != nil {
			return
		}
		if err := checkJSON("x.json", out); err != nil {
			t.Fatalf("%q became %q: %v", in, out, err)
		}
		again, err := layout("x.json", out, int64(len(out)))
		if err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q became %q, %v", out, again, err)
		}
		if got, want := jsonTokens(t, out), jsonTokens(t, in); !slices.Equal(got, want) {
			t.Fatalf("%q became %q: tokens %q, want %q", in, out, got, want)
		}
		if bytes.IndexByte(in, '\\') >= 0 {
			return
		}
		var flat, want bytes.Buffer
		if json.Compact(&flat, in) != nil || json.Indent(&want, flat.Bytes(), "", "  ") != nil || want.String() != string(out) {
			t.Fatalf("got %q, want %q", out, want.String())
		}
	})
}

// No text at a lock's name upsets the reader, and what it reads is what stands there.
func FuzzLockRecord(f *testing.F) {
	whole, _ := newRecord(time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC))
	f.Add(whole)
	for _, seed := range []string{
		"", "{}", "null", `{"ownerToken":"x"}`, `{"createdAt":"2026-01-02T03:04:05.678Z","pid":1}`, `{"ownerToken":1,"createdAt":2}`, "\x00\x00", string(whole[:60]),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		owner, created := parseRecord(text)
		var r map[string]any
		if json.Unmarshal(text, &r) != nil {
			if owner != "" || !created.IsZero() {
				t.Fatalf("read %q, %v of what is no object", owner, created)
			}
			return
		}
		if want, _ := r["ownerToken"].(string); owner != want {
			t.Errorf("the owner is %q, want %q", owner, want)
		}
		at, _ := r["createdAt"].(string)
		if want, err := time.Parse(time.RFC3339Nano, at); err == nil && !created.Equal(want) || err != nil && !created.IsZero() {
			t.Errorf("the time is %v, want %v of %q", created, want, at)
		}
	})
}

// What checkID takes can be a name, and cutID gives it back; nothing else does.
func FuzzID(f *testing.F) {
	for _, seed := range []string{"a", "", ".a", "a/b", "con", "nul.txt", "a.json", "\u00e9", "A-_.9"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		n := namesOf(id)
		got, ok := cutID(n.pending, pendingSuffix)
		if taken := checkID(id) == nil; ok != taken || taken && got != id {
			t.Errorf("%q: cut to %q, %t; taken %t", id, got, ok, taken)
		}
		if !ok {
			return
		}
		for _, name := range []string{n.pending, n.processing, n.delivered, n.lock} {
			if len(name) > 255 || bytes.ContainsAny([]byte(name), "/\x00") {
				t.Errorf("%q is no file name", name)
			}
			if isTemp(name) || name == markerFile || name == retirementsDir || isLock(name) != (name == n.lock) {
				t.Errorf("%q is taken for something else", name)
			}
		}
	})
}
