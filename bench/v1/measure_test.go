//go:build unix

package main

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0: 1, 0.25: 1.75, 0.5: 2.5, 1: 4} {
		if got := quantile(values, q); got != want {
			t.Errorf("quantile %v: got %v, want %v", q, got, want)
		}
	}
	if got := quantile([]float64{7}, 0.75); got != 7 {
		t.Errorf("one value: got %v, want 7", got)
	}
}

// Each round begins with another contender, each trial has an empty directory of its own,
// and the first round does not count.
func TestMeasureInterleaves(t *testing.T) {
	var order []string
	dirs := map[string]bool{}
	trial := func(name string) func(string, load) (time.Duration, error) {
		return func(dir string, l load) (time.Duration, error) {
			order = append(order, name)
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 || dirs[dir] {
				t.Errorf("%s: %d entries, %v, used before: %v", dir, len(entries), err, dirs[dir])
			}
			dirs[dir] = true
			return time.Duration(l.messages) * time.Millisecond, nil
		}
	}
	list := []contender{{name: "a", trial: trial("a")}, {name: "b", trial: trial("b")}}
	if err := measure(list, t.TempDir(), 2, load{messages: 10, workers: 1}); err != nil {
		t.Fatal(err)
	}
	if want := strings.Fields("a b b a a b"); !slices.Equal(order, want) {
		t.Errorf("order: got %q, want %q", order, want)
	}
	for _, c := range list {
		if want := []float64{1000, 1000}; !slices.Equal(c.speeds, want) {
			t.Errorf("%s: got %v, want %v", c.name, c.speeds, want)
		}
	}
}

func TestMeasureFails(t *testing.T) {
	broken := errors.New("broken")
	list := []contender{{name: "a", trial: func(string, load) (time.Duration, error) { return 0, broken }}}
	if err := measure(list, t.TempDir(), 1, load{messages: 1, workers: 1}); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// A trial settles every message that it counts.
func TestOwnTrial(t *testing.T) {
	for _, c := range contenders() {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := c.trial(dir, load{messages: 5, workers: 2}); err != nil {
				t.Fatal(err)
			}
			left, err := os.ReadDir(dir + "/queue")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range left {
				if e.Name() != ".fs-safe-retirements" {
					t.Errorf("%s was left", e.Name())
				}
			}
		})
	}
}
