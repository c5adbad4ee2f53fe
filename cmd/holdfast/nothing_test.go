//go:build unix

package main

import (
	"strings"
	"testing"
)

// An empty claim and an empty peek say what is there, in words and in numbers.
func TestNothingDueSaysWhatIsThere(t *testing.T) {
	s := newStore(t)
	for range 2 {
		s.must("enqueue", "chat", "1", "--key", "k")
	}
	s.must("claim", "chat", "--lease", "none")
	s.must("enqueue", "chat", "1", "--delay", "1h")
	s.must("enqueue", "mail", "1", "--delay", "1h")
	s.must("enqueue", "held", "1")
	s.must("pause", "held")
	for _, try := range []struct{ queue, text, run string }{
		{"chat", "queue chat: nothing is due; 1 processing, 1 blocked, 1 scheduled; reap returns what is overdue or whose process is gone", "holdfast reap chat"},
		{"mail", "queue mail: nothing is due; 1 scheduled", "holdfast status mail"},
		{"held", "queue held: nothing is due: it is paused; 1 ready", "holdfast resume held"},
		{"none", "queue none: nothing is due", "holdfast status none"},
	} {
		for _, command := range []string{"claim", "peek"} {
			got := s.run(command, try.queue)
			if want := "holdfast: " + s.dir + ": " + try.text + "; run: " + try.run + " --dir " + s.dir + "\n"; got.code != exitNothing || got.err != want {
				t.Errorf("%s %s: exit %d, %q, want %q", command, try.queue, got.code, got.err, want)
			}
		}
	}
	for _, try := range []struct{ queue, want string }{
		{"chat", `"processing":1,"blocked":1,"scheduled":1,"run"`},
		{"held", `"queue":"held","ready":1,"run"`},
		{"none", `"queue":"none","run"`},
	} {
		if got := s.refused(exitNothing, "empty", "peek", try.queue).err; !strings.Contains(got, try.want) {
			t.Errorf("%s: %s lacks %s", try.queue, got, try.want)
		}
	}
}
