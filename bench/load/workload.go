//go:build unix

package load

import (
	"example.com/holdfast/bench/peer"
)

// A Workload is one thing that all peers are asked to do.
type Workload struct {
	Key   string // names it on the command line
	Title string // of its table

	Workers   int  // goroutines, in each process. Zero: 1
	Batch     int  // messages of one call. Zero: 1
	Processes int  // that do it at a time. Zero: this one
	Joint     bool // the ack of a message and the claim of the next are one call
	Depth     int  // messages that are pending meanwhile
	Claimed   int  // messages that others have claimed meanwhile
	Reopen    bool // not messages, but opening and the first claim
	Memory    bool // on tmpfs, for the CPU time
	Deep      bool // only when asked for: it takes minutes to fill
}

// All lists the workloads in the order of the tables.
func All() []Workload {
	return []Workload{
		{Key: "one", Title: "One goroutine"},
		{Key: "64", Title: "64 goroutines", Workers: 64},
		{Key: "256", Title: "256 goroutines", Workers: 256},
		{Key: "batch", Title: "Batches of 100", Batch: 100},
		{Key: "joint", Title: "Ack and next claim in one call, one chain", Joint: true},
		{Key: "joint-64", Title: "Ack and next claim in one call, 64 chains", Joint: true, Workers: 64},
		{Key: "two", Title: "Two processes", Processes: 2},
		{Key: "four", Title: "Four processes", Processes: 4},
		{Key: "claimed", Title: "1,000 others claimed", Claimed: 1000},
		{Key: "1k", Title: "1,000 others pending", Depth: 1000},
		{Key: "10k", Title: "10,000 others pending", Depth: 10_000},
		{Key: "100k", Title: "100,000 others pending", Depth: 100_000},
		{Key: "1m", Title: "1,000,000 others pending", Depth: 1_000_000, Deep: true},
		{Key: "open", Title: "Opening and first claim, 100,000 pending", Depth: 100_000, Reopen: true},
		{Key: "cpu", Title: "CPU time on tmpfs, one goroutine", Memory: true},
		{Key: "cpu-64", Title: "CPU time on tmpfs, 64 goroutines", Workers: 64, Memory: true},
	}
}

// Concerns reports whether a peer has a place in the workload's table: one that is set up
// for something else has not.
func (w Workload) Concerns(p peer.Peer) bool {
	if p.Floor && (w.Depth > 0 || w.Claimed > 0 || w.Memory || w.Processes > 1) {
		return false // it is no queue
	}
	return w.workers() >= p.MinWorkers && (w.Joint || !p.NoSingles)
}

// Without says in a few words why a peer that it concerns is left out. Empty: it is not.
func (w Workload) Without(p peer.Peer) string {
	switch {
	case p.Missing != "":
		return p.Missing
	case p.NoBatch && w.Batch > 1:
		return "no batches"
	case p.OneProcess && w.Processes > 1:
		return "one process only"
	case p.MaxDepth > 0 && w.Depth > p.MaxDepth:
		return "too long to fill"
	}
	return ""
}

func (w Workload) workers() int { return max(w.Workers, 1) }

func (w Workload) batch() int { return max(w.Batch, 1) }

// count is how many messages a trial has at most, where one goroutine has so many.
func (w Workload) count(messages int) int {
	return messages * w.workers() * w.batch()
}
