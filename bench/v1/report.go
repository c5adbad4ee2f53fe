//go:build unix

package main

import (
	"fmt"
	"io"
	"slices"
)

// report prints medians, and each contender's ratio to the first one round by round: its
// median, and the range that holds the middle half. The control's range is what noise looks
// like here: a ratio inside it tells of no difference.
func report(w io.Writer, list []contender, workers, messages int) {
	fmt.Fprintf(w, "%d at a time, %d messages a trial, %d trials each\n", workers, messages, len(list[0].speeds))
	fmt.Fprintf(w, "  %-34s %10s   %s\n", "", "messages/s", "ratio to the first (middle half)")
	for _, c := range list {
		ratios := make([]float64, len(c.speeds))
		for i, s := range c.speeds {
			ratios[i] = s / list[0].speeds[i]
		}
		fmt.Fprintf(w, "  %-34s %10.0f   %.3f (%.3f–%.3f)\n", c.name, quantile(c.speeds, 0.5), quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75))
	}
	fmt.Fprintln(w)
}

func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (sorted[high]-sorted[low])*(at-float64(low))
}
