//go:build unix

package page

import (
	"fmt"
	"io"

	"example.com/holdfast/bench/measure"
)

// cost is what one workload is measured in, and how a sample tells it. Less is better
// where it is a time.
func (r Result) cost() (unit string, pick func(measure.Sample) float64, time bool) {
	switch {
	case r.Workload.Reopen:
		return "ms", func(s measure.Sample) float64 { return s.Elapsed.Seconds() * 1e3 }, true
	case r.Workload.Memory:
		return "µs of CPU a message", func(s measure.Sample) float64 { return s.CPU.Seconds() * 1e6 / float64(s.Messages) }, true
	}
	return "messages/s", measure.Sample.Rate, false
}

// write prints one workload: median, ends, and how many times as good the first peer is.
func (r Result) write(w io.Writer) {
	unit, pick, time := r.cost()
	fmt.Fprintf(w, "### %s\n\n", r.Workload.Title)
	t := table{head: []string{"", unit, "min–max", "holdfast is … times as good (min–max)"}}
	base := r.row(first)
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Without != "" {
			t.add(row.Peer.Name, row.Without, none, none)
			continue
		}
		values := measure.Values(row.Samples, pick)
		s := measure.Summarize(values)
		t.add(row.Peer.Name, figure(s.Median), figure(s.Min)+"–"+figure(s.Max), times(base, row, pick, time))
	}
	t.write(w)
}

// times says round by round how many times as good the first peer is as another.
func times(base, row *Row, pick func(measure.Sample) float64, time bool) string {
	if base == nil || base.Peer.Key == row.Peer.Key {
		return none
	}
	own, other := measure.Values(base.Samples, pick), measure.Values(row.Samples, pick)
	if time {
		own, other = other, own
	}
	s := measure.Summarize(measure.Ratios(own, other))
	return fmt.Sprintf("%s (%s–%s)", figure(s.Median), figure(s.Min), figure(s.Max))
}
