//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"

	"example.com/holdfast/queue"
)

func TestTopKeys(t *testing.T) {
	view := topSurvey()
	for i := range 50 {
		view.failed = append(view.failed, queue.Entry{Queue: "chat", FailedName: fmt.Sprintf("m%02d", i), FailedAt: view.at, LastError: "timeout"})
	}
	b := newTopBench(t, &topFake{view: view}, 80, 24)
	for _, try := range []struct{ keys, has, hasNot string }{
		{"tab", "[2:claims]", "[1"},
		{"tab", "[3:failed]", "[2:c"},
		{"tab", "[1:queues]", "[3"},
		{"shift+tab", "[3:failed]", "[1"},
		{"end", "> m49", "> c "},
		{"k", "> m48", "> m49"},
		{"home", "> c ", "> m"},
		{"pgdown", "> m", "> c "},
		{"/ N O T space", "nothing here has", "> m"},
		{"ctrl+u r o u t e enter", "> c ", "m49"},
		{"enter", "last error no route to host", "> c "},
		{"esc", "> c ", "last error no route"},
		{"esc", "m00", "/route"},
		{"x", "release is on page 2", "[y/N]"},
		{"?", "remove the failed message for good", "> c "},
		{"1 ?", "pause the queue", "purge"},
		{"?", "uploads", "pause the queue,"},
		{"/ z z z enter p", "nothing to pause", "[y/N]"},
		{"esc / a backspace esc", "chat", "/a"},
	} {
		b.press(strings.ReplaceAll(try.keys, "space", "-"))
		b.has(try.has)
		b.hasNot(try.hasNot)
	}
	b.press("q")
	if !b.quit {
		t.Error("q does not quit")
	}
}
