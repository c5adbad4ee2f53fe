//go:build unix

package load

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPayload(t *testing.T) {
	for _, n := range []uint64{0, 42, 24 * childNumbers} {
		p := payload(n)
		if len(p) != PayloadBytes || !json.Valid(p) {
			t.Errorf("%d: %d bytes, JSON: %v", n, len(p), json.Valid(p))
		}
		if got, err := numberOf(p); err != nil || got != n {
			t.Errorf("%d: read as %d, %v", n, got, err)
		}
	}
	for name, p := range map[string][]byte{
		"empty":     nil,
		"cut off":   payload(1)[:PayloadBytes-1],
		"too long":  append(payload(1), ' '),
		"no number": []byte(strings.Replace(string(payload(1)), "1", "y", 1)),
		"a bit":     []byte(strings.Replace(string(payload(1)), "x", "y", 1)),
	} {
		if n, err := numberOf(p); err == nil {
			t.Errorf("%s: read as %d", name, n)
		}
	}
}

func TestLedger(t *testing.T) {
	for name, c := range map[string]struct {
		sent int
		seen []uint64
		left int
		want string // empty: all is well
	}{
		"nothing":         {0, nil, 0, ""},
		"all seen":        {3, []uint64{2, 0, 1}, 0, ""},
		"some left":       {3, []uint64{1}, 2, ""},
		"one lost":        {3, []uint64{0, 1}, 0, "1 were lost"},
		"all lost":        {2, nil, 0, "2 were lost"},
		"one doubled":     {3, []uint64{0, 1, 2}, 1, "1 too many"},
		"one seen twice":  {3, []uint64{0, 1, 0}, 1, "delivered twice"},
		"one never there": {3, []uint64{3}, 3, "never enqueued"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(0, false)
			for range c.sent {
				l.Next()
			}
			var err error
			for _, n := range c.seen {
				if err == nil {
					err = l.See(payload(n))
				}
			}
			if err == nil {
				err = l.Check(c.left)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// Processes get each other's messages; a message that two of them got is found.
func TestMerge(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		left    int
		want    string
	}{
		"each other's":  {[]answer{{span{10, 12}, []uint64{20, 11}}, {span{20, 21}, []uint64{10}}}, 0, ""},
		"both got one":  {[]answer{{span{10, 12}, []uint64{10, 11}}, {span{20, 21}, []uint64{10}}}, 0, "delivered twice"},
		"one is lost":   {[]answer{{span{10, 12}, []uint64{10}}, {span{20, 21}, []uint64{20}}}, 0, "1 were lost"},
		"one is nobody": {[]answer{{span{10, 12}, []uint64{10, 12}}}, 0, "never enqueued"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(0, false)
			err := l.merge(c.answers)
			if err == nil {
				err = l.Check(c.left)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
