//go:build unix

// Package page writes what was measured as a page of Markdown tables.
package page

import (
	"time"

	"example.com/holdfast/bench/load"
	"example.com/holdfast/bench/measure"
	"example.com/holdfast/bench/peer"
)

// A Report is one run.
type Report struct {
	Date    time.Time
	Machine string
	Reps    int
	Size    load.Size
	Device  bool // the device's counters could be read
	Peers   []peer.Peer
	Results []Result
	Syncs   []Syncs
}

// A Result is one workload.
type Result struct {
	Workload load.Workload
	Rows     []Row // one for each peer
}

// A Row is one peer in one workload.
type Row struct {
	Peer    peer.Peer
	Without string // why it was left out; empty: it was not
	Samples []measure.Sample
	State   load.State // as the workload began
}

// Syncs is how many syncs each peer makes for a message, by its key.
type Syncs struct {
	Workload   load.Workload
	Without    string // why they were not counted; empty: they were
	PerMessage map[string]float64
}

// first is the key of the peer that the others are compared with.
const first = "holdfast"

// row finds what one peer did in one workload, or nil.
func (r Report) row(workload, key string) *Row {
	for _, result := range r.Results {
		if result.Workload.Key != workload {
			continue
		}
		return result.row(key)
	}
	return nil
}

func (r Result) row(key string) *Row {
	for i := range r.Rows {
		if r.Rows[i].Peer.Key == key && len(r.Rows[i].Samples) > 0 {
			return &r.Rows[i]
		}
	}
	return nil
}

// median is the middle of one value of the samples of a row.
func (r *Row) median(pick func(measure.Sample) float64) float64 {
	return measure.Summarize(measure.Values(r.Samples, pick)).Median
}

// syncs tells how many syncs a peer makes for a message of a workload.
func (r Report) syncs(workload, key string) (float64, bool) {
	for _, s := range r.Syncs {
		if s.Workload.Key == workload {
			n, ok := s.PerMessage[key]
			return n, ok
		}
	}
	return 0, false
}
