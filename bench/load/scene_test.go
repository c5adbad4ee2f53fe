//go:build unix

package load

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/bench/measure"
	"example.com/holdfast/bench/peer"
	"example.com/holdfast/internal/crashtest/testrun"
)

// small is a size that a test has time for.
var small = Size{Messages: 6, Limit: time.Hour}

// play sets a workload up, tries it twice, and checks.
func play(t *testing.T, w Workload, p peer.Peer) (samples []measure.Sample, err error) {
	t.Helper()
	base := t.TempDir()
	s, err := NewScene(t.Context(), w, p, "", base)
	if err != nil {
		return nil, err
	}
	for range 2 {
		sample, err := s.Trial(t.Context(), small, nil, measure.Traffic{})
		if err != nil {
			s.Abandon()
			return samples, err
		}
		samples = append(samples, sample)
	}
	err = s.Finish(t.Context())
	if left, _ := os.ReadDir(base); err == nil && len(left) > 0 {
		t.Errorf("%d entries were left", len(left))
	}
	return samples, err
}

// kinds has a workload of each kind.
var kinds = map[string]Workload{
	"one":         {},
	"goroutines":  {Workers: 4},
	"batches":     {Batch: 3},
	"joint":       {Joint: true},
	"joint of 4":  {Joint: true, Workers: 4},
	"pending":     {Depth: 20},
	"claimed":     {Claimed: 1500},
	"opening":     {Depth: 20, Reopen: true},
	"two at once": {Processes: 2, Workers: 2},
}

func TestScenes(t *testing.T) {
	fake := func() peer.Peer { return fakePeer("") }
	for _, get := range []func() peer.Peer{peer.Holdfast, peer.Worker, peer.Bolt, peer.Goqite, peer.FloorAppend, fake} {
		for name, w := range kinds {
			p := get()
			if !w.Concerns(p) || w.Without(p) != "" || p.Key == "fake" && w.Processes > 1 {
				continue
			}
			t.Run(p.Key+", "+name, func(t *testing.T) {
				samples, err := play(t, w, p)
				if err != nil {
					t.Fatal(err)
				}
				want := w.count(small.Messages) * max(w.Processes, 1)
				if w.Reopen {
					want = 1
				}
				for _, s := range samples {
					if s.Messages != want || s.Elapsed <= 0 {
						t.Errorf("got %d messages in %v, want %d", s.Messages, s.Elapsed, want)
					}
				}
			})
		}
	}
}

// A peer that breaks its word is found out, whatever it is asked to do.
func TestPlantedBugs(t *testing.T) {
	for bug, words := range map[string][]string{
		"loses":        {"a claim found", "were lost"},
		"doubles":      {"delivered twice", "too many"},
		"alters":       {"came back altered"},
		"invents":      {"never enqueued"},
		"forgets acks": {"too many"},
	} {
		for name, w := range kinds {
			if w.Processes > 1 {
				continue // a fake is in one process; see TestMerge
			}
			if (w.Depth > 0 || w.Claimed > 0) && bug != "loses" && bug != "forgets acks" {
				continue // it lies deeper than these trials go
			}
			t.Run(bug+", "+name, func(t *testing.T) {
				_, err := play(t, w, fakePeer(bug))
				found := false
				for _, word := range words {
					found = found || err != nil && strings.Contains(err.Error(), word)
				}
				if !found {
					t.Errorf("got %v, want one of %q", err, words)
				}
			})
		}
	}
}

// A trial ends at its limit, and has one message however late it is.
func TestLimit(t *testing.T) {
	l := newLedger(0, false)
	s := newSupply(l, Size{Messages: 100, Limit: -time.Second})
	if got := len(s.take(3)); got != 3 {
		t.Errorf("the first: got %d messages, want 3", got)
	}
	if got := len(s.take(3)); got != 0 {
		t.Errorf("behind the limit: got %d messages, want none", got)
	}
	s = newSupply(l, Size{Messages: 4, Limit: time.Hour})
	if got := len(s.take(3)) + len(s.take(3)) + len(s.take(3)); got != 4 {
		t.Errorf("got %d messages, want 4", got)
	}
}

// The syncs of a message are those that its peer is known to make.
func TestSyncs(t *testing.T) {
	if why := Tracer(); why != "" {
		testrun.Skip(t, why)
	}
	got, err := Syncs(peer.FloorAppend(), "", t.TempDir(), 1, 4)
	if err != nil || got != 3 {
		t.Errorf("got %v, %v, want 3", got, err)
	}
}

// An strace that traces nothing, as where that is forbidden, is none.
func TestTracer(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if got, want := Tracer(), "strace is not installed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := os.WriteFile(dir+"/strace", []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, want := Tracer(), "strace may not trace here"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCountCalls(t *testing.T) {
	const table = "syscall              calls\n---------------- ---------\nfsync                   12\n" +
		"fdatasync                3\nopenat                  99\n---------------- ---------\ntotal                  114\n"
	if got, err := countCalls(table); err != nil || got != 15 {
		t.Errorf("got %d, %v, want 15", got, err)
	}
	if got, err := countCalls("fsync many\n"); err == nil {
		t.Errorf("got %d of no number", got)
	}
}

// A process that cannot open its peer says so, and the trial fails.
func TestProcessFails(t *testing.T) {
	p, err := startProcess(order{Peer: "bolt", Dir: t.TempDir() + "/missing"})
	if err == nil {
		t.Fatal("it began", errors.Join(p.end()))
	}
}
