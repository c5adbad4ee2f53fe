//go:build unix

package holdfast

import (
	"math/rand/v2"
	"strings"
	"testing"

	"example.com/holdfast/queue"
)

// scannedIn gives the verdict on a text that comes in pieces of so many bytes.
func scannedIn(text string, piece int) bool {
	var s jsonScan
	for at := 0; at < len(text); at += piece {
		if !s.write([]byte(text[at:min(at+piece, len(text))])) {
			return false
		}
	}
	return s.whole()
}

// In pieces of any size the verdict is that of queue.CheckPayload: of each of these texts, of
// each with any byte in the place of one, and of each that is cut anywhere.
func TestJSONScan(t *testing.T) {
	t.Parallel()
	texts := []string{
		"", " ", "1", "-1", "0", "-0", "00", "-", "1.", "1.5", "01", "1e", "1e+", "1e+5", "1E-05", "0e0", "-0.0e-0", "1.5.5", "9007199254740993", "0x1",
		"true", "false", "null", "tru", "nul l", "truefalse", `""`, `"a"`, `"\u00e9\n\\\""`, `"\ud800"`, `"\u12"`, `"\x"`, "\"\x1f\"", "\"\x7f\"",
		`"é€😀"`, "\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "\xef\xbb\xbf1", "[]", "{}", "[ ]", "{ }", "[1,2]", "[1,]", "[,1]", "[1 2]",
		`{"a":1}`, `{"a":1,"a":2}`, `{"a":}`, `{"a"}`, `{a:1}`, `{"a":1,}`, `{1:2}`, "[[[[]]]]", `[{"a":[{}]},{"b":{}}]`, "[1}", `{"a":1]`, "]", "}", "1,2", "1 2", "\t[ 1 ,\r\n2 ]  ",
		`{"k":"v","n":[-1.5e3,true,null,"` + strings.Repeat("x", 20) + `é"]}`, strings.Repeat("[", 200) + strings.Repeat("]", 200), strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70),
	}
	same := func(text string, pieces ...int) {
		want := queue.CheckPayload([]byte(text), len(text), len(text)) == nil
		for _, piece := range pieces {
			if got := scannedIn(text, piece); got != want {
				t.Errorf("%q in pieces of %d: %v, want %v", text, piece, got, want)
			}
		}
	}
	some := []byte("\x00\x1f \n\"\\/{}[]:,+-.019aeEnrtufls\x7f\x80\xbf\xc3\xe2\xed\xf0\xf4\xff")
	for _, text := range texts {
		same(text, 1, 2, 3, 7, 1000)
		for i := range text {
			same(text[:i], 1, 1000)
			for _, c := range some {
				same(text[:i]+string([]byte{c})+text[i+1:], 1, 1000)
			}
		}
	}
	seed := uint64(7)
	r := rand.New(rand.NewPCG(seed, seed))
	for range 20_000 { // what has the words of JSON in any order
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString([]string{"[", "]", "{", "}", ",", ":", `"a"`, "1", "-", "0", ".", "e", "true", "nul", " ", `"`, `\`, "é", "\xc3"}[r.IntN(19)])
		}
		same(b.String(), 1, 2, 1000)
	}
}

// What nests deeper than there are bits for is refused, and costs no more.
func TestJSONScanIsBounded(t *testing.T) {
	t.Parallel()
	s := jsonScan{depth: maxScanned - 1, open: make([]uint64, maxScanned/64)}
	if !s.write([]byte("[")) || s.write([]byte("[")) {
		t.Errorf("at depth %d", s.depth)
	}
}
