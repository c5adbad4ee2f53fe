//go:build unix

package holdfast

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A collection of a hundred thousand orphans of 1 KiB beside a thousand messages: how many
// a second, and the longest hold of the lock.
//
//	go test -run - -bench Collect -benchtime 1x ./v2
func BenchmarkCollect(b *testing.B) {
	const orphans = 100_000
	var longest time.Duration
	var holds int64
	for range b.N {
		b.StopTimer()
		dir := filepath.Join(b.TempDir(), "store")
		s, err := Create(b.Context(), dir, &Options{holders: &holderSet{}})
		mustDo(b, err)
		for _, m := range smalls(1000) {
			mustEnqueue(b, s, "mail", m)
		}
		payload := make([]byte, 1<<10)
		for i := range orphans {
			var t token
			binary.BigEndian.PutUint64(t[:], uint64(i+1)*0x9e3779b97f4a7c15)
			at := filepath.Join(dir, namespaceDir, objectsDir, t.String())
			mustDo(b, os.Mkdir(at, 0o700), os.WriteFile(filepath.Join(at, payloadFile), payload, 0o600))
		}
		b.StartTimer()
		r, err := s.Collect(b.Context(), CollectOptions{})
		b.StopTimer()
		if err != nil || r.Objects < orphans {
			b.Fatalf("%+v, %v", r, err)
		}
		longest, holds = max(longest, r.LongestHold), r.Holds
		mustDo(b, s.Close())
		b.StartTimer()
	}
	b.ReportMetric(float64(orphans*b.N)/b.Elapsed().Seconds(), "objects/s")
	b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest-hold")
	b.ReportMetric(float64(holds), "holds")
}
