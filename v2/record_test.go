//go:build unix

package holdfast

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

func sampleOwner() queue.Owner {
	return queue.Owner{
		Token: namedToken("owner").String(), PID: 4711, Host: "phone", Boot: "6f1c2a34-0d1e-4c55-9a77-2d1b8f0e9c11",
		Since: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC),
	}
}

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := queue.Owner{
			Token: drawToken(t).String(), PID: rapid.IntRange(0, 1<<31-1).Draw(t, "pid"),
			Host: drawText(t, 40), Boot: drawText(t, 20),
			Since:     time.UnixMilli(rapid.Int64Range(0, 253402300799999).Draw(t, "since")).UTC(),
			Uncertain: rapid.Bool().Draw(t, "uncertain"),
		}
		b := encodeRecord(o)
		if len(b) != recordSize {
			t.Fatalf("a record of %d bytes", len(b))
		}
		if got, blank := decodeRecord(b); got != o || blank {
			t.Fatalf("got %+v, blank %v; want %+v", got, blank, o)
		}
	})
}

// A record has its size whatever is in it, and can be read again.
func TestRecordIsCutToFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := sampleOwner()
		o.PID = 1<<31 - 1
		o.Host = rapid.String().Draw(t, "host") + strings.Repeat(rapid.SampledFrom([]string{"h", "é", "\x00", "\"", "\xff", "😀"}).Draw(t, "piece"), rapid.IntRange(0, 600).Draw(t, "n"))
		o.Boot = strings.Repeat(rapid.SampledFrom([]string{"b", "é", "\x00", "\xff"}).Draw(t, "piece"), rapid.IntRange(0, 600).Draw(t, "n"))
		b := encodeRecord(o)
		got, blank := decodeRecord(b)
		switch {
		case len(b) != recordSize:
			t.Fatalf("a record of %d bytes: %q", len(b), b)
		case got.Token != o.Token || blank || !got.Since.Equal(o.Since):
			t.Fatalf("got %+v, blank %v", got, blank)
		case !strings.HasPrefix(strings.ToValidUTF8(o.Host, "\ufffd"), got.Host) || !utf8.ValidString(got.Host):
			t.Fatalf("host %q of %q", got.Host, o.Host)
		case len(o.Host) <= 64 && utf8.ValidString(o.Host) && !strings.Contains(o.Host, "\x00") && got.Host != o.Host && len(o.Boot) <= 64:
			t.Fatalf("host %q was cut to %q without need", o.Host, got.Host)
		}
	})
}

func TestRecordRefusals(t *testing.T) {
	good := string(encodeRecord(sampleOwner()))
	if o, blank := decodeRecord([]byte(blankRecord)); o != (queue.Owner{}) || !blank || len(blankRecord) != recordSize {
		t.Errorf("the blank record: got %+v, %v", o, blank)
	}
	late := sampleOwner()
	late.Since = time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC)
	swap := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for name, text := range map[string]string{
		"empty":                       "",
		"cut":                         good[:recordSize-1],
		"cut in the object":           good[:100],
		"too long":                    good + " ",
		"blank without its newline":   strings.Repeat(" ", recordSize),
		"blank and short":             blankRecord[1:],
		"blank and long":              " " + blankRecord,
		"blank but for one byte":      "x" + blankRecord[1:],
		"zeros":                       string(make([]byte, recordSize)),
		"half blanked":                blankRecord[:40] + good[40:],
		"half written":                good[:40] + blankRecord[40:],
		"no newline":                  good[:recordSize-1] + " ",
		"something in the padding":    good[:recordSize-2] + "x\n",
		"a tab in the padding":        good[:recordSize-2] + "\t\n",
		"space inside":                swap(`"pid":4711`, `"pid": 4711`)[:recordSize-1] + "\n",
		"leading zero":                swap(`"pid":4711`, `"pid":0471`),
		"pid of another size":         swap(`"pid":4711,"host":"phone"`, `"pid":99999999999,"host":""`)[:recordSize-1] + "\n",
		"case":                        swap(`"owner"`, `"Owner"`),
		"unknown field":               swap(`"host"`, `"hose"`),
		"token":                       swap(sampleOwner().Token[:1], "1"),
		"time in another zone":        swap(`678Z`, `678z`),
		"a day that is none":          swap(`2026-01-02`, `2026-02-30`),
		"comma for the point":         swap(`05.678Z`, `05,678Z`),
		"a year of five digits":       string(encodeRecord(late)),
		"neither true nor false":      swap(`false`, `maybe`),
		"escape that needs not be":    swap(`phone"`, `\u0070"`)[:recordSize-1] + "\n",
		"array":                       "[]" + blankRecord[2:],
		"json of the wrong beginning": " " + good[:recordSize-2] + "\n",
	} {
		if text == good {
			t.Errorf("%s: the case changes nothing", name)
		}
		if o, blank := decodeRecord([]byte(text)); o != (queue.Owner{}) || blank {
			t.Errorf("%s: got %+v, blank %v; want an owner that cannot be read", name, o, blank)
		}
	}
}
