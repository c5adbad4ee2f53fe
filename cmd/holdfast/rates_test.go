//go:build unix

package main

import (
	"testing"
	"time"

	"example.com/holdfast/queue"
)

func surveyOf(second int, settled bool, c *queue.Counters) *survey {
	v := &survey{at: time.Unix(int64(second), 0), status: queue.Status{Settled: settled, Queues: map[string]queue.QueueStatus{}}}
	if c != nil {
		v.status.Queues["q"] = queue.QueueStatus{Counters: *c}
	}
	return v
}

func TestFlow(t *testing.T) {
	was := &queue.Counters{Enqueued: 10, Reprocessed: 1, Completed: 5, Failed: 1, Superseded: 1, Cleared: 1}
	for _, try := range []struct {
		name    string
		before  *survey
		now     *survey
		in, out string
	}{
		{"the first look", nil, surveyOf(2, true, was), "-", "-"},
		{"nothing happened", surveyOf(0, true, was), surveyOf(2, true, was), "0", "0"},
		{"some of each", surveyOf(0, true, was), surveyOf(4, true, &queue.Counters{Enqueued: 12, Reprocessed: 2, Completed: 7, Failed: 2, Superseded: 2, Cleared: 3}), "0.8", "1.5"},
		{"a new queue", surveyOf(0, true, nil), surveyOf(10, true, was), "1.1", "0.8"},
		{"a queue that was not seen", surveyOf(0, false, nil), surveyOf(10, true, was), "-", "-"},
		{"a counter went back", surveyOf(0, true, was), surveyOf(10, true, &queue.Counters{Enqueued: 100, Reprocessed: 1, Completed: 4, Failed: 1, Superseded: 1, Cleared: 1}), "-", "-"},
		{"no time went by", surveyOf(2, true, was), surveyOf(2, true, was), "-", "-"},
		{"the clock went back", surveyOf(9, true, was), surveyOf(2, true, was), "-", "-"},
	} {
		f := flowOf(try.before, try.now, "q")
		if in, out := rateText(f.In), rateText(f.Out); in != try.in || out != try.out {
			t.Errorf("%s: in %s, out %s; want %s, %s", try.name, in, out, try.in, try.out)
		}
	}
}

func TestRateText(t *testing.T) {
	for rate, want := range map[float64]string{0: "0", 0.01: "<0.1", 0.05: "0.1", 9.94: "9.9", 9.96: "10", 9999: "9999", 123456: "123k"} {
		if got := rateText(&rate); got != want {
			t.Errorf("%v: %s, want %s", rate, got, want)
		}
	}
}
