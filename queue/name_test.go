package queue

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestCheckID(t *testing.T) {
	long := strings.Repeat("x", MaxNameBytes)
	for _, id := range []string{
		"a", "A", "0", "_", "-", "a.b", "a..b", "-rf", "chat-42", "0190f5ac-0000-7000-8000-000000000000",
		"state", "format", "status", "console", "com", "com10", "lpt", "nula", "x.con", long,
	} {
		if err := CheckID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, test := range []struct{ id, rule string }{
		{"", "empty"},
		{".", "begin with a dot"},
		{"..", "begin with a dot"},
		{".x", "begin with a dot"},
		{"x.", "end with a dot"},
		{"a/b", "may stand"},
		{"../x", "begin with a dot"},
		{`a\b`, "may stand"},
		{"a b", "may stand"},
		{"a:b", "may stand"},
		{"a~b", "may stand"},
		{"a\x00", "may stand"},
		{"a\n", "may stand"},
		{"\xff", "may stand"},
		{"\u00e9", "may stand"},  // é, composed
		{"e\u0301", "may stand"}, // é, decomposed
		{"CON", "device name"},
		{"con", "device name"},
		{"nul.txt", "device name"},
		{"Aux.tar.gz", "device name"},
		{"prn", "device name"},
		{"com1", "device name"},
		{"LPT9.log", "device name"},
		{long + "x", "at most 128"},
	} {
		err := CheckID(test.id)
		if !errors.Is(err, ErrInvalidName) || !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), test.rule) {
			t.Errorf("%q: error %v; want ErrInvalidName that names the rule %q", test.id, err, test.rule)
		}
	}
}

func TestCheckQueue(t *testing.T) {
	component := strings.Repeat("x", MaxNameBytes)
	deep := strings.Repeat("12345678901234567890123456789012/", MaxQueueBytes/33)
	for _, name := range []string{
		"inbox", "a/b", "status/of", "ack/a", "statuses", "a/ack-2", component + "/" + component, deep + "x",
	} {
		if err := CheckQueue(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, test := range []struct{ name, rule string }{
		{"", "empty"},
		{"/", "empty"},
		{"/a", "empty"},
		{"a/", "empty"},
		{"a//b", "empty"},
		{"a/../b", "begin with a dot"},
		{"a/./b", "begin with a dot"},
		{"a/con/b", "device name"},
		{component + "x/a", "at most 128"},
		{strings.Repeat("a/", MaxQueueBytes/2) + "b", "at most 1024"},
		{"enqueue", "reserved"},
		{"a/dequeue", "reserved"},
		{"peek", "reserved"},
		{"size", "reserved"},
		{"status", "reserved"},
		{"Status", "reserved"},
		{"messages", "reserved"},
		{"clear", "reserved"},
		{"a/ACK", "reserved"},
	} {
		err := CheckQueue(test.name)
		if !errors.Is(err, ErrInvalidName) || !strings.Contains(err.Error(), test.rule) {
			t.Errorf("%q: error %v; want ErrInvalidName that names the rule %q", test.name, err, test.rule)
		}
	}
}

func TestCheckFailedName(t *testing.T) {
	for _, name := range []string{"a", "a~b", "a~aaaabbbbccccddddeeeeffffgg.17"} {
		if err := CheckFailedName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "~", "a~", "~a", "a~b~c", "a/b", "a~../b", "con", "a.~b"} {
		if err := CheckFailedName(name); !errors.Is(err, ErrInvalidName) {
			t.Errorf("%q: error %v; want ErrInvalidName", name, err)
		}
	}
}

func TestCheckText(t *testing.T) {
	for _, s := range []string{"", "chat 42", "größer", "漢字 😀", "a/b:c", strings.Repeat("x", MaxNameBytes)} {
		if err := CheckText("label", s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{
		"\x00", "a\nb", "\x1b[2J", "\x7f", "\u009b2J", "\u0085", "\xff", "\xed\xa0\x80", strings.Repeat("x", MaxNameBytes+1),
	} {
		err := CheckText("label", s)
		if !errors.Is(err, ErrInvalidName) || !strings.Contains(err.Error(), "label") {
			t.Errorf("%q: error %v; want ErrInvalidName that names the label", s, err)
		}
	}
}

// FuzzNames holds accepted names against what they must never be: anything that
// means more than one plain name on some filesystem, terminal or command line.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{
		"", "a", "a/b", "..", "a/..", "x.", "con", "com1.txt", "a~b", "status", "é", "\x1b[0m", "a\\b", "a:b", strings.Repeat("a", 129),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if CheckID(s) == nil {
			plainName(t, s)
			if CheckFailedName(s) != nil {
				t.Errorf("ID %q cannot be its own failed name", s)
			}
			r := Receipt{Store: "s", Queue: "q", ID: s, Generation: "g", Attempt: 1}
			if parsed, err := ParseReceipt(r.String()); err != nil || parsed != r {
				t.Errorf("ID %q does not survive a receipt: %v", s, err)
			}
		}
		if CheckFailedName(s) == nil {
			if n := strings.Count(s, "~"); n > 1 {
				t.Errorf("failed name %q has %d tildes", s, n)
			}
			for part := range strings.SplitSeq(s, "~") {
				plainName(t, part)
			}
			if filepath.Base(s) != s {
				t.Errorf("failed name %q: base %q", s, filepath.Base(s))
			}
		}
		if CheckQueue(s) == nil {
			if len(s) > MaxQueueBytes {
				t.Errorf("queue name of %d bytes", len(s))
			}
			for part := range strings.SplitSeq(s, "/") {
				plainName(t, part)
			}
			if filepath.Clean(s) != s || !filepath.IsLocal(s) {
				t.Errorf("queue name %q is not a clean local path", s)
			}
		}
		if CheckText("text", s) == nil {
			if len(s) > MaxNameBytes || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
				t.Errorf("text %q", s)
			}
		}
	})
}

func plainName(t *testing.T, s string) {
	t.Helper()
	switch {
	case s == "", len(s) > MaxNameBytes, s == ".", s == "..", s[0] == '.', s[len(s)-1] == '.':
		t.Errorf("accepted name %q", s)
	case strings.ContainsAny(s, "/\\:*?\"<>|~ "), strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }):
		t.Errorf("accepted name %q with a byte that is not plain", s)
	case filepath.Base(s) != s, !filepath.IsLocal(s):
		t.Errorf("accepted name %q is not one local path component", s)
	}
}
