//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// unsafeIn gives what could steer a terminal in text that is to stand on one; a line feed
// between lines is none.
func unsafeIn(text string) (found []string) {
	for _, r := range text {
		if unicode.IsControl(r) && r != '\n' || strings.ContainsRune("\u200b\u202e\u2066\ufeff", r) {
			found = append(found, fmt.Sprintf("%U", r))
		}
	}
	return found
}

func TestUnsafeIn(t *testing.T) {
	if got := unsafeIn("a\x1b[31m\u009b\u202eb\nc"); len(got) != 3 {
		t.Errorf("found %v", got)
	}
	if got := unsafeIn("é ✂ \\u001b\n"); len(got) != 0 {
		t.Errorf("found %v in what is safe", got)
	}
}

func TestTableFitsEveryWidth(t *testing.T) {
	columns := []column{
		{head: "NAME", least: 6}, {head: "N", right: true}, {head: "WIDE", right: true, rank: 2},
		{head: "UNUSED", rank: 1}, {head: "ERROR", least: 5, rank: 3},
	}
	rows := [][]string{
		{"uploads/thumbnails", "12", "1234567", "", "no \x1b[2J\u009bway\nat all"},
		{"日本語のキュー", "3", "1", "", "\u202eevil"},
		{"👩‍👩‍👧", "", "", "", ""},
	}
	for width := 1; width <= 100; width++ {
		lines := layOut(columns, rows, width)
		if len(lines) != 4 {
			t.Fatalf("%d lines", len(lines))
		}
		for _, line := range lines {
			if got := ansi.StringWidth(line); got > width {
				t.Errorf("%d cells in %d: %q", got, width, line)
			}
			if found := unsafeIn(line); found != nil {
				t.Errorf("%v in %q", found, line)
			}
		}
	}
	for _, try := range []struct {
		width int
		want  string
	}{
		{0, "NAME                 N     WIDE  ERROR\nuploads/thumbnails  12  1234567  no \\u001b[2J\\u009bway\\u000aat all\n日本語のキュー       3        1  \\u202eevil\n👩‍👩‍👧"},
		{30, "NAME       N     WIDE  ERROR\nuploads…  12  1234567  no \\u0…\n日本語…    3        1  \\u202e…\n👩‍👩‍👧"},
		{20, "NAME      N     WIDE\nupload…  12  1234567\n日本語…   3        1\n👩‍👩‍👧"},
		{12, "NAME       N\nuploads…  12\n日本語…    3\n👩‍👩‍👧"},
	} {
		if got := strings.Join(layOut(columns, rows, try.width), "\n"); got != try.want {
			t.Errorf("at %d:\n%s\nwant\n%s", try.width, got, try.want)
		}
	}
}

func TestShortAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 119 * time.Second: "119s", 2 * time.Minute: "2m", 2 * time.Hour: "2h", 47 * time.Hour: "47h",
		48 * time.Hour: "2d", 9999 * 24 * time.Hour: "9999d",
	} {
		if got := shortAge(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
