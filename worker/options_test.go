package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
	"example.com/holdfast/queue/memory"
)

func TestDefaults(t *testing.T) {
	g, err := Options{}.group().checked()
	if err != nil {
		t.Fatal(err)
	}
	q, err := Options{}.queue().checked()
	if err != nil {
		t.Fatal(err)
	}
	want(t, "group", []any{g.Concurrency, g.Grace, g.Drain, g.ReapEvery, g.StoreFailures, g.Weighted, g.Logger != nil},
		[]any{1, 10 * time.Second, 20 * time.Second, 15 * time.Second, 20, false, true})
	want(t, "queue", q, QueueOptions{Lease: time.Minute, Weight: 1,
		Retry: RetryPolicy{Base: 2 * time.Second, Max: time.Hour, MaxFailures: 20, MaxLapses: 10}})
	p, err := RetryPolicy{Base: 2 * time.Hour}.checked()
	if err != nil || p.Max != 2*time.Hour {
		t.Errorf("a base above the longest delay: got %+v, %v", p, err)
	}
}

// Every option of a Run reaches its group and its queue.
func TestOptionsArePassedOn(t *testing.T) {
	o := Options{
		Concurrency: 3, Lease: 5 * time.Second, Timeout: 6 * time.Second, Grace: 7 * time.Second,
		Retry: RetryPolicy{Base: 8, Max: 9, MaxFailures: 10, MaxLapses: 11}, Drain: 12, ReapEvery: 13,
		Label: "l", Fair: true, StoreFailures: 14,
	}
	want(t, "queue", o.queue(), QueueOptions{Lease: 5 * time.Second, Timeout: 6 * time.Second, Retry: o.Retry, Fair: true})
	g := o.group()
	want(t, "group", []any{g.Concurrency, g.Grace, g.Drain, g.ReapEvery, g.Label, g.StoreFailures},
		[]any{3, 7 * time.Second, time.Duration(12), time.Duration(13), "l", 14})
}

func TestBadOptions(t *testing.T) {
	h := func(context.Context, *queue.Received[string]) error { return nil }
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Concurrency: -1}, "concurrency -1"},
		{Options{Concurrency: MaxConcurrency + 1}, "concurrency 1001"},
		{Options{Lease: -1}, "lease"},
		{Options{Lease: MinLease - 1}, "lease"},
		{Options{Lease: queue.MaxLease + 1}, "lease"},
		{Options{Timeout: -1}, "time limit"},
		{Options{Grace: -1}, "grace"},
		{Options{ReapEvery: -1}, "reaping interval"},
		{Options{Retry: RetryPolicy{Base: -1}}, "base delay"},
		{Options{Retry: RetryPolicy{Base: time.Minute, Max: time.Second}}, "longest delay"},
		{Options{Label: strings.Repeat("x", 129)}, "label"},
	} {
		err := Run(t.Context(), queue.New[string](memory.New(nil), "mail"), h, c.o)
		if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want ErrInvalid that names the %s", c.o, err, c.want)
		}
	}
}
