//go:build unix

package measure

import "slices"

// A Summary is the middle and the ends of several values.
type Summary struct{ Median, Min, Max float64 }

// Summarize gives the summary of values, of which there is at least one.
func Summarize(values []float64) Summary {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Summary{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// Ratios divides values by others of the same rounds: what made one round slow was slow
// for both.
func Ratios(values, by []float64) []float64 {
	ratios := make([]float64, min(len(values), len(by)))
	for i := range ratios {
		ratios[i] = values[i] / by[i]
	}
	return ratios
}

// Values picks one value of each sample.
func Values(samples []Sample, pick func(Sample) float64) []float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = pick(s)
	}
	return values
}

// Interleave calls do for each of n peers once a round. Each round begins with another
// one, so that none always runs first or behind the same neighbour's leavings.
func Interleave(n, rounds int, do func(round, i int) error) error {
	for round := range rounds {
		for k := range n {
			if err := do(round, (round+k)%n); err != nil {
				return err
			}
		}
	}
	return nil
}
