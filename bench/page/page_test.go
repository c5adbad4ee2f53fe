//go:build unix

package page

import (
	"os"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/bench/load"
	"example.com/holdfast/bench/measure"
	"example.com/holdfast/bench/peer"
	"example.com/holdfast/internal/crashtest/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func TestFigure(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0.00", 0.0123: "0.012", 0.0996: "0.10", 1.234: "1.23", 9.996: "10.0", 12.34: "12.3",
		99.96: "100", 1234.5: "1,234", 1234567: "1,234,567", -1234: "-1,234",
	} {
		if got := figure(x); got != want {
			t.Errorf("%v: got %q, want %q", x, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[float64]string{300: "300 B", 2048: "2.00 KiB", 150 << 20: "150 MiB"} {
		if got := size(n); got != want {
			t.Errorf("%v: got %q, want %q", n, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	table := table{head: []string{"", "a", "b"}}
	table.add("x", "1", none)
	var out strings.Builder
	table.write(&out)
	const want = "|  | a | b |\n| --- | ---: | ---: |\n| x | 1 | – |\n\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

var (
	own   = peer.Peer{Key: "holdfast", Name: "own"}
	other = peer.Peer{Key: "other", Name: "other"}
	gone  = peer.Peer{Key: "gone", Name: "gone", Missing: "not here"}
	floor = peer.Peer{Key: floorOfSync, Name: "floor", Floor: true}
)

// every makes samples of 100 messages that take so many milliseconds each.
func every(ms ...float64) (samples []measure.Sample) {
	for _, x := range ms {
		d := time.Duration(x * 100 * float64(time.Millisecond))
		samples = append(samples, measure.Sample{Messages: 100, Elapsed: d, CPU: d / 10, Written: 51200, Flushes: 300})
	}
	return samples
}

// report is one that was thought out: the own peer takes 1, 2 and 4 ms, the other twice
// that in each round.
func report() Report {
	rows := func(own1, other1 []measure.Sample) []Row {
		return []Row{
			{Peer: own, Samples: own1, State: load.State{Size: 4096, Text: 300}},
			{Peer: other, Samples: other1, State: load.State{Size: -1}},
			{Peer: gone, Without: "not here", State: load.State{Size: -1}},
			{Peer: floor, Samples: every(0.9), State: load.State{Size: -1}},
		}
	}
	fast, slow := every(1, 2, 4), every(2, 4, 8)
	one := load.Workload{Key: "one", Title: "One"}
	many := load.Workload{Key: "64", Title: "Many", Workers: 64}
	return Report{
		Machine: "a machine", Reps: 3, Size: load.Size{Messages: 1000, Limit: time.Second}, Device: true,
		Peers: []peer.Peer{own, other, gone, floor},
		Results: []Result{
			{Workload: one, Rows: rows(fast, slow)},
			{Workload: many, Rows: rows(fast, slow)},
			{Workload: load.Workload{Key: "1k", Title: "Deep", Depth: 1000}, Rows: rows(every(3), every(4))},
			{Workload: load.Workload{Key: "open", Title: "Open", Depth: 1000, Reopen: true}, Rows: rows(fast, slow)},
			{Workload: load.Workload{Key: "cpu", Title: "CPU", Memory: true}, Rows: rows(fast, slow)},
		},
		Syncs: []Syncs{
			{Workload: one, PerMessage: map[string]float64{"holdfast": 9, "other": 1, floorOfSync: 3}},
			{Workload: many, PerMessage: map[string]float64{"holdfast": 0.5, "other": 1}},
		},
	}
}

func written(r Report) string {
	var out strings.Builder
	Write(&out, r)
	return out.String()
}

func TestWrite(t *testing.T) {
	page := written(report())
	for name, want := range map[string]string{
		"the machine":       "0001-01-01: a machine.",
		"medians":           "| own | 500 | 500 | 200 |",
		"left out":          "| gone | not here | – | – |",
		"rates, and ratios": "| other | 250 | 125–500 | 2.00 (2.00–2.00) |",
		"times, and ratios": "| other | 400 | 200–800 | 2.00 (2.00–2.00) |",
		"depth":             "| other | 4.00 | 4.00 (1.00) |",
		"depth of ours":     "| own | 2.00 | 3.00 (1.50) |",
		"the device":        "| own | 512 B | 3.00 | 512 B | 3.00 |",
		"the state":         "| 1,000 | 4.00 KiB | 300 B |",
		"syncs that group":  "| own | 9.00 | 0.50 | 135% | 10.0% | the number of its syncs; 64 callers share syncs, 18.0 at a time |",
		"syncs that do not": "| other | 1.00 | 1.00 | 7.50% | 10.0% | syncs that are dearer than an append's; 64 callers share no sync |",
		"a set-up":          "- **gone**: left out, not here.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%s: %q is missing", name, want)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// What could not be measured is left out with a word.
func TestWriteWithout(t *testing.T) {
	r := report()
	r.Device = false
	r.Syncs = []Syncs{{Without: "strace is not installed"}}
	page := written(r)
	for _, want := range []string{"Left out: there is no block device", "Left out: the syncs were not counted, for strace is not installed."} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
	// Without the first peer there is nothing to compare with.
	r = report()
	for i := range r.Results {
		r.Results[i].Rows = r.Results[i].Rows[1:]
	}
	if page := written(r); !strings.Contains(page, "| other | 250 | 125–500 | – |") || strings.Contains(page, "NaN") {
		t.Errorf("without the first peer:\n%s", page)
	}
	if page := written(Report{}); strings.Contains(page, "## At a glance") || strings.Contains(page, "%!") {
		t.Errorf("of nothing:\n%s", page)
	}
}

// A processor that works most of the time is what limits a peer.
func TestBusy(t *testing.T) {
	r := report()
	samples := r.Results[0].Rows[0].Samples
	for i := range samples {
		samples[i].CPU = samples[i].Elapsed
	}
	if got, want := r.limit(own), "the processor; 64 callers share syncs, 18.0 at a time"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
