//go:build unix

package holdfast

import (
	"encoding/json"
	"testing"
	"time"
)

// BenchmarkInterop takes messages from their enqueue to their acknowledgement, one after
// the other in one process: the package, Go by links, Go by renames, and the package
// again, whose two figures differ by noise alone. The four take turns.
func BenchmarkInterop(b *testing.B) {
	const turn = 10 // messages
	p := newInteropPeer(b)
	d := newInteropDirs(b)
	args := interopArgs{"queue": d.Queue, "id": interopID, "entry": json.RawMessage(interopGen("G1")), "n": turn}
	js := func() time.Duration {
		var ms float64
		p.must(b, "lives", args, &ms)
		return time.Duration(ms * float64(time.Millisecond))
	}
	golang := func(r Route) func() time.Duration {
		s, err := Open(d.Queue, &Options{ClaimBy: r})
		interopOK(b, err)
		b.Cleanup(func() { interopOK(b, s.Close()) })
		return func() time.Duration {
			begin := time.Now()
			for range turn {
				for _, step := range []string{"enqueue", "load", "ack"} {
					interopOK(b, interopSteps[step](s))
				}
			}
			return time.Since(begin)
		}
	}
	sides := []struct {
		name string
		do   func() time.Duration
		took time.Duration
	}{{"package/s", js, 0}, {"hard-link/s", golang(HardLink), 0}, {"rename/s", golang(RenameNoReplace), 0}, {"package-again/s", js, 0}}
	for i := range sides {
		sides[i].do() // warm
	}
	n := 0
	for b.Loop() {
		n++
		for i := range sides {
			at := (i + n) % len(sides) // each comes first as often as the others
			sides[at].took += sides[at].do()
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, s := range sides {
		b.ReportMetric(float64(n*turn)/s.took.Seconds(), s.name)
	}
}
