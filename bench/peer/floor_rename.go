//go:build unix

package peer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
)

// FloorRename replaces one file by a new one.
func FloorRename() Peer {
	return Peer{
		Key: "floor-rename", Name: "floor: 3 × (temp, fsync, rename, fsync dir)",
		How:   "The bytes of each call are written to a new file, `fsync`, which is renamed over the last, `fsync` of the directory.",
		Floor: true,
		Open: func(_ context.Context, dir string) (Queue, error) {
			d, err := os.Open(dir)
			if err != nil {
				return nil, err
			}
			temp, name := filepath.Join(dir, "temp"), filepath.Join(dir, "state")
			return &floor{close: d.Close, durable: func(p []byte) error {
				if err := writeSynced(temp, p); err != nil {
					return err
				}
				if err := os.Rename(temp, name); err != nil {
					return err
				}
				return d.Sync()
			}}, nil
		},
	}
}

func writeSynced(name string, p []byte) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(p)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
