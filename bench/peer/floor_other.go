//go:build unix && !linux

package peer

import "os"

// datasync is a whole sync where the system has no other.
func datasync(f *os.File) error { return f.Sync() }

// FloorExchange is left out where names cannot be exchanged.
func FloorExchange() Peer {
	return Peer{
		Key: "floor-exchange", Name: "floor: 3 × (overwrite, fdatasync, exchange, fsync dir)",
		Missing: "needs Linux", Floor: true,
	}
}

// FloorChained likewise.
func FloorChained() Peer {
	return Peer{Key: "floor-chained", Name: chainedName, Missing: "needs Linux", Floor: true}
}
