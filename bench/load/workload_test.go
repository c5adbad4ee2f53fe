//go:build unix

package load

import (
	"testing"

	"example.com/holdfast/bench/peer"
)

func TestKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range All() {
		if seen[w.Key] || w.Key == "" || w.Title == "" {
			t.Errorf("%q, %q: no name of its own", w.Key, w.Title)
		}
		seen[w.Key] = true
	}
	seen = map[string]bool{}
	for _, p := range peer.All("") {
		if seen[p.Key] || p.Key == "" || p.Name == "" {
			t.Errorf("%q, %q: no name of its own", p.Key, p.Name)
		}
		seen[p.Key] = true
	}
}

func TestConcerns(t *testing.T) {
	for name, c := range map[string]struct {
		w    Workload
		p    peer.Peer
		want bool
	}{
		"an ordinary one":      {Workload{Processes: 2, Depth: 9}, peer.Peer{}, true},
		"too few at a time":    {Workload{Workers: 64}, peer.Peer{MinWorkers: 65}, false},
		"enough at a time":     {Workload{Workers: 64}, peer.Peer{MinWorkers: 64}, true},
		"a worker by itself":   {Workload{}, peer.Peer{NoSingles: true}, false},
		"a worker":             {Workload{Joint: true}, peer.Peer{NoSingles: true}, true},
		"a floor with a depth": {Workload{Depth: 1}, peer.Peer{Floor: true}, false},
		"floors of processes":  {Workload{Processes: 2}, peer.Peer{Floor: true}, false},
		"a floor":              {Workload{Workers: 64}, peer.Peer{Floor: true}, true},
	} {
		if got := c.w.Concerns(c.p); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestWithout(t *testing.T) {
	for name, c := range map[string]struct {
		w    Workload
		p    peer.Peer
		want string
	}{
		"an ordinary one":          {Workload{Processes: 2, Depth: 9}, peer.Peer{}, ""},
		"missing":                  {Workload{}, peer.Peer{Missing: "not here"}, "not here"},
		"one process":              {Workload{Processes: 2}, peer.Peer{OneProcess: true}, "one process only"},
		"batches of none":          {Workload{Batch: 100}, peer.Peer{NoBatch: true}, "no batches"},
		"deeper than can be":       {Workload{Depth: 10}, peer.Peer{MaxDepth: 9}, "too long to fill"},
		"as deep as it can be had": {Workload{Depth: 9}, peer.Peer{MaxDepth: 9}, ""},
	} {
		if got := c.w.Without(c.p); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
