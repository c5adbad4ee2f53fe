//go:build unix

package holdfast

import (
	"bytes"
	"regexp"
	"testing"
	"time"
)

// The record's bytes, as the other side of the protocol expects them.
func TestNewRecord(t *testing.T) {
	form := regexp.MustCompile(`^\{\n  "ownerToken": "([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})",\n` +
		`  "createdAt": "(2026-01-02T03:04:05\.678Z)"\n\}\n\t{8}([\t ]{128})\n$`)
	now := time.Date(2026, 1, 2, 5, 4, 5, 678_999_999, time.FixedZone("", 7200)) // milliseconds are cut, not rounded
	owners, lines := map[string]bool{}, map[string]bool{}
	tabs := 0
	for range 100 {
		text, owner := newRecord(now)
		m := form.FindSubmatch(text)
		if m == nil || string(m[1]) != owner {
			t.Fatalf("owner %s has the record %q", owner, text)
		}
		owners[owner], lines[string(m[3])] = true, true
		tabs += bytes.Count(m[3], []byte("\t"))
		readOwner, created := parseRecord(text)
		if want := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC); readOwner != owner || !created.Equal(want) {
			t.Errorf("read %s, %v; want %s, %v", readOwner, created, owner, want)
		}
	}
	if len(owners) != 100 || len(lines) != 100 {
		t.Errorf("100 records have %d owners and %d last lines", len(owners), len(lines))
	}
	// A random bit a character: 12,800 of them are nowhere near all alike.
	if tabs < 5800 || tabs > 7000 {
		t.Errorf("%d of 12800 characters are tabs", tabs)
	}
}

func TestParseRecord(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		name, text, owner string
		created           time.Time
	}{
		{"less", `{"ownerToken":"x"}`, "x", time.Time{}},
		{"more", `{"pid":1,"ownerToken":"x","createdAt":"2026-01-02T03:04:05Z","host":"h"}`, "x", at},
		{"another zone", `{"ownerToken":"x","createdAt":"2026-01-02T04:04:05.000+01:00"}`, "x", at},
		{"no owner", `{"createdAt":"2026-01-02T03:04:05Z"}`, "", at},
		{"an owner that is no text", `{"ownerToken":7,"createdAt":"2026-01-02T03:04:05Z"}`, "", at},
		{"a time that is no text", `{"ownerToken":"x","createdAt":1767322800000}`, "x", time.Time{}},
		{"no time", `{"ownerToken":"x","createdAt":"soon"}`, "x", time.Time{}},
		{"other names", `{"OWNERTOKEN":"x","createdat":"2026-01-02T03:04:05Z"}`, "", time.Time{}},
		{"empty", ``, "", time.Time{}},
		{"cut", `{"ownerToken":"x`, "", time.Time{}},
		{"null", `null`, "", time.Time{}},
		{"an array", `[]`, "", time.Time{}},
		{"behind the object", `{"ownerToken":"x"}y`, "", time.Time{}},
		{"white space behind it", "{\"ownerToken\":\"x\"}\n\t \t\n", "x", time.Time{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			owner, created := parseRecord([]byte(c.text))
			if owner != c.owner || !created.Equal(c.created) {
				t.Errorf("got %q, %v; want %q, %v", owner, created, c.owner, c.created)
			}
		})
	}
}
