//go:build unix

package peer

import (
	"context"
	"os"
	"path/filepath"
)

// FloorAppend appends to one file and syncs its data.
func FloorAppend() Peer {
	return Peer{
		Key: "floor-append", Name: "floor: 3 × (append, fdatasync)",
		How:   "The bytes of each call are appended to one file, and `fdatasync`.",
		Floor: true,
		Open: func(_ context.Context, dir string) (Queue, error) {
			f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				return nil, err
			}
			return &floor{close: f.Close, durable: func(p []byte) error {
				if _, err := f.Write(p); err != nil {
					return err
				}
				return datasync(f)
			}}, nil
		},
	}
}
