//go:build unix

package holdfast

import (
	"errors"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// A dead holder's file stays until the commit that ends its leases is durable: if that
// fails, the leases stand, and only the file proves that nobody holds them.
func TestSweepWaitsForTheCommit(t *testing.T) {
	d, s, w := onDisk(t)
	p := d.Process()
	other, err := Open(t.Context(), crashDir, crashOptions(p))
	mustDo(t, err)
	mustEnqueue(t, other, "mail", small("a"))
	mustClaim(t, other, "mail", queue.ClaimOptions{Lease: queue.NoDeadline})
	p.Kill()
	_ = other.Close() // what it had open is gone

	w.Arm(crashtest.FailMatching(isStateSync, syscall.EIO, 1))
	if _, err := s.Reap(t.Context(), queue.ReapOptions{}); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	back, err := s.Reap(t.Context(), queue.ReapOptions{})
	if err != nil || len(back) != 1 || back[0].Cause != queue.ByProof {
		t.Errorf("the next reaping: %+v, %v; want one by proof of death", back, err)
	}
}
