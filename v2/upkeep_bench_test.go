//go:build unix

package holdfast

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/holdfast/queue"
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

// A verification of 256 MiB of payloads, in objects of 1 MiB that the page cache has, by so
// many goroutines.
//
//	go test -run - -bench Verify ./v2
func BenchmarkVerify(b *testing.B) {
	const messages = 256
	s, err := Create(b.Context(), filepath.Join(b.TempDir(), "store"), &Options{holders: &holderSet{}})
	mustDo(b, err)
	defer s.Close()
	payload := bytes.Repeat([]byte(`{"to":"ann","text":"as a mail may be"},`), 1<<20/39)
	payload = append(append([]byte("["), payload...), "1]"...)
	for i := range messages {
		mustEnqueue(b, s, "mail", queue.Message{ID: fmt.Sprint("m", i), Payload: payload})
	}
	for _, workers := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.SetBytes(int64(messages * len(payload)))
			for b.Loop() {
				r, err := s.Verify(b.Context(), VerifyOptions{Workers: workers})
				if err != nil || !r.OK || r.Messages != messages {
					b.Fatalf("%+v, %v", r, err)
				}
			}
		})
	}
}
