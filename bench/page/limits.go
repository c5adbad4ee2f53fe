//go:build unix

package page

import (
	"fmt"
	"io"

	"example.com/holdfast/bench/measure"
	"example.com/holdfast/bench/peer"
)

// floorOfSync is the peer whose every call is one sync and next to nothing else.
const (
	floorOfSync  = "floor-append"
	floorPerSync = 3 // calls of a message
)

// limits says what bounds each peer, as far as the figures of this run tell.
func (r Report) limits(w io.Writer) {
	if len(r.Syncs) == 0 {
		return
	}
	fmt.Fprint(w, "## What limits each\n\n")
	if why := r.Syncs[0].Without; why != "" {
		fmt.Fprintf(w, "Left out: the syncs were not counted, for %s.\n\n", why)
		return
	}
	fmt.Fprint(w, "Syncs are counted with strace, all processes of the peer included. The share is what these syncs would take if each took as long as one of the append floor")
	if r.perSync() > 0 {
		fmt.Fprintf(w, ", %s ms", figure(r.perSync()*1e3))
	}
	fmt.Fprint(w, ", of what a message of one goroutine takes. Over 100% says that its syncs have less to write or are not all flushes. The processor's share is the CPU time of all its processes in the same trials.\n\n")
	t := table{head: []string{"", "syncs a message, one goroutine", "64 goroutines", "share of the syncs", "share of the processor", "limited by"}}
	for _, p := range r.Peers {
		one, ok := r.syncs("one", p.Key)
		many, okMany := r.syncs("64", p.Key)
		if !ok && !okMany {
			continue
		}
		cells := []string{p.Name, none, none, none, none, r.limit(p)}
		if ok {
			cells[1] = figure(one)
		}
		if okMany {
			cells[2] = figure(many)
		}
		if share, ok := r.share(p); ok {
			cells[3] = figure(share*100) + "%"
		}
		if row := r.row("one", p.Key); row != nil {
			cells[4] = figure(row.busy()*100) + "%"
		}
		t.add(cells...)
	}
	t.write(w)
}

// perSync is what one sync of the floor takes in seconds, 0 when that was not measured.
func (r Report) perSync() float64 {
	row := r.row("one", floorOfSync)
	if row == nil {
		return 0
	}
	return row.median(measure.Sample.PerMessage) / floorPerSync
}

// share is the part of a message of one goroutine that its syncs take.
func (r Report) share(p peer.Peer) (float64, bool) {
	syncs, ok := r.syncs("one", p.Key)
	row := r.row("one", p.Key)
	if !ok || row == nil || r.perSync() == 0 {
		return 0, false
	}
	return syncs * r.perSync() / row.median(measure.Sample.PerMessage), true
}

// busy is the part of a trial in which a processor worked for the peer.
func (r *Row) busy() float64 {
	return r.median(func(s measure.Sample) float64 { return s.CPU.Seconds() / s.Elapsed.Seconds() })
}

// limit says it in words: what one goroutine waits for, and what 64 share.
func (r Report) limit(p peer.Peer) string {
	words := ""
	if share, ok := r.share(p); ok {
		switch row := r.row("one", p.Key); {
		case row.busy() >= 0.5:
			words = "the processor"
		case share >= 0.6:
			words = "the number of its syncs"
		default:
			words = "syncs that are dearer than an append's"
		}
	}
	one, ok := r.syncs("one", p.Key)
	many, okMany := r.syncs("64", p.Key)
	if !ok || !okMany || many == 0 {
		return words
	}
	if words != "" {
		words += "; "
	}
	if group := one / many; group >= 1.5 {
		return words + fmt.Sprintf("64 callers share syncs, %s at a time", figure(group))
	}
	return words + "64 callers share no sync"
}
