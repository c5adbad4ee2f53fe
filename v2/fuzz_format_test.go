//go:build unix

package holdfast

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// The one property of every decoder of the format: what it takes has one
// spelling, and what it refuses it refuses by the typed error.

func FuzzDecodeState(f *testing.F) {
	st := sampleState()
	good := encodeState(nil, st)
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte{})
	f.Add(encodeState(nil, &state{commit: st.commit, store: st.store, revision: 1, settings: Settings{AutoRecover}}))
	f.Add(encodeState(nil, bigState(3)))
	f.Add(encodeState(nil, sampleImports()))
	chained := sampleState()
	chained.exchange, chained.after = true, namedToken("before")
	f.Add(encodeState(nil, chained))
	f.Add(append(encodeState(nil, chained), "   "...))
	sealed, _ := sampleFailedRun()
	f.Add(encodeState(nil, sealed))
	withRuns, _, _ := sampleRuns()
	f.Add(encodeState(nil, withRuns))
	for _, change := range [][2]string{
		{`"fence":25`, `"fence":9007199254740991`}, {`"features":[]`, `"features":["x"]`}, {`\u000a`, `\n`},
		{`"ann"`, `"bob"`}, {`",14,12,`, `",13,14,`}, {`"s":1`, `"s":2`}, {`"version":2`, `"version":3`},
		{`"back":"reaped"`, `"back":"reaped","lease":{"f":0}`}, {`"back":"reaped"`, `"back":"reaped","lease":{"d":1,"w":"w","f":1}`},
		{`"back":"reaped"`, `"back":"retried","lease":{"f":1}`}, {`,"a":1,"lease":{"f":25}`, `,"back":"reprocessed"`},
		{`"d":1767323345678,`, ``}, {`"lease":{"f":25}`, `"lease":{"b":"boot","m":0,"f":25}`},
	} {
		f.Add([]byte(strings.Replace(string(good), change[0], change[1], 1)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decodeState(b, stateFile, st.store)
		if err != nil {
			checkRefusal(t, b, err)
			return
		}
		clearTexts(got)
		if got.exchange {
			b = withoutPadding(b)
		}
		if again := encodeState(nil, got); !bytes.Equal(again, b) {
			t.Fatalf("two spellings of one state\n   %q\nand %q", b, again)
		}
		if head := stateHead(b); head == nil || len(head) > headSize {
			t.Fatalf("head %q", head)
		}
	})
}

func FuzzDecodeFormat(f *testing.F) {
	good := encodeFormat(namedToken("store"))
	f.Add(good)
	f.Add(good[:20])
	f.Add([]byte{})
	f.Add(bytes.Replace(good, []byte("2"), []byte("3"), 1))
	f.Add(bytes.Replace(good, []byte(","), []byte(", "), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		store, err := decodeFormat(b, formatFile)
		if err != nil {
			checkRefusal(t, b, err)
			return
		}
		if again := encodeFormat(store); !bytes.Equal(again, b) {
			t.Fatalf("two spellings of one format\n   %q\nand %q", b, again)
		}
	})
}

func FuzzDecodeRecord(f *testing.F) {
	good := encodeRecord(sampleOwner())
	f.Add(good)
	f.Add([]byte(blankRecord))
	f.Add([]byte{})
	f.Add(append([]byte(blankRecord[:30]), good[30:]...))
	odd := sampleOwner()
	odd.Host, odd.Uncertain = "\"\\\x01é😀", true
	f.Add(encodeRecord(odd))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, blank := decodeRecord(b)
		switch {
		case blank && string(b) != blankRecord:
			t.Fatalf("%q was taken for the blank record", b)
		case o.Token == "" && o != (queue.Owner{}):
			t.Fatalf("half an owner: %+v", o)
		case o.Token != "" && !bytes.Equal(encodeRecord(o), b):
			t.Fatalf("two spellings of one record\n   %q\nand %q", b, encodeRecord(o))
		}
	})
}

// Small damage to sound states gets past the grammar more often than what the
// fuzzer makes of bytes.
func TestDamagedState(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"", "0", "1", "-", ".0", `"`, `\`, "{", "}", "[", "]", ",", ",,", " ", "\n", "\x00", "\xff", "null", `"a":0,`, `"k":"",`})
	taken, tried := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		st := drawState(t)
		b := encodeState(nil, st)
		for range 20 {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			cut := rapid.IntRange(0, min(3, len(b)-at)).Draw(t, "cut")
			bad := slices.Concat(b[:at], []byte(pieces.Draw(t, "piece")), b[at+cut:])
			tried++
			got, err := decodeState(bad, stateFile, st.store)
			if err != nil {
				checkRefusal(t, bad, err)
				continue
			}
			clearTexts(got)
			if again := encodeState(nil, got); !bytes.Equal(again, bad) {
				t.Fatalf("two spellings of one state\n   %q\nand %q", bad, again)
			}
			taken++
		}
	})
	if taken == 0 || taken == tried {
		t.Errorf("%d of %d damaged states were taken: this test shows nothing", taken, tried)
	}
}

func checkRefusal(t interface {
	Helper()
	Fatalf(string, ...any)
}, b []byte, err error) {
	t.Helper()
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.Reason == "" || corrupt.File == "" {
		t.Fatalf("an error of another type: %v", err)
	}
	if corrupt.Offset < -1 || corrupt.Offset > int64(len(b)) {
		t.Fatalf("at byte %d of %d", corrupt.Offset, len(b))
	}
	if len(corrupt.Reason) > 2048 {
		t.Fatalf("a reason of %d bytes", len(corrupt.Reason))
	}
}
