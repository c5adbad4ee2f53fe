package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// exchangeRoom is what the exchanged files have room for: the largest group of a run.
const exchangeRoom = 1 << 20

// FloorExchange overwrites one of two files in turn and exchanges their names.
func FloorExchange() Peer {
	return Peer{
		Key: "floor-exchange", Name: "floor: 3 × (overwrite, fdatasync, exchange, fsync dir)",
		How: "The bytes of each call overwrite the retired one of two preallocated files, `fdatasync`, which changes names with the current one " +
			"(`RENAME_EXCHANGE`), `fsync` of the directory.",
		Floor: true,
		Open:  openExchange,
	}
}

func openExchange(_ context.Context, dir string) (Queue, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	e := exchange{dir: d}
	for i, name := range exchangeNames {
		// Written, not only allocated: what was never written changes the file's extents
		// when it is, and so its size on the disk's journal.
		if err = writeSynced(filepath.Join(dir, name), make([]byte, exchangeRoom)); err != nil {
			break
		}
		if e.files[i], err = os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0); err != nil {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return &floor{durable: e.durable, close: e.close}, nil
}

var exchangeNames = [2]string{"retired", "current"}

type exchange struct {
	dir   *os.File
	files [2]*os.File // the retired one first
}

func (e *exchange) durable(p []byte) error {
	if _, err := e.files[0].WriteAt(p, 0); err != nil {
		return err
	}
	if err := datasync(e.files[0]); err != nil {
		return err
	}
	fd := int(e.dir.Fd())
	if err := unix.Renameat2(fd, exchangeNames[0], fd, exchangeNames[1], unix.RENAME_EXCHANGE); err != nil {
		return err
	}
	e.files[0], e.files[1] = e.files[1], e.files[0]
	return e.dir.Sync()
}

func (e *exchange) close() error {
	err := e.dir.Close()
	for _, f := range e.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// FloorChained overwrites one of four files in turn and exchanges its name with a fifth one,
// as the store does.
func FloorChained() Peer {
	return Peer{
		Key: "floor-chained", Name: chainedName,
		How: "The bytes of each call overwrite one of four preallocated files in turn, `fdatasync`, which changes names with a fifth one " +
			"(`RENAME_EXCHANGE`). Beside every third `fdatasync` there is an `fsync` of the directory.",
		Floor: true,
		Open:  openChained,
	}
}

type chained struct {
	dir   *os.File
	files [5]*os.File // the current one last
	names [4]string
	n     int // calls
}

func openChained(_ context.Context, dir string) (Queue, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	c := &chained{dir: d}
	for i := range c.files {
		name := "current"
		if i < len(c.names) {
			name = fmt.Sprint("spare-", i)
			c.names[i] = name
		}
		if err = writeSynced(filepath.Join(dir, name), make([]byte, exchangeRoom)); err != nil {
			break
		}
		if c.files[i], err = os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0); err != nil {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return &floor{durable: c.durable, close: c.close}, nil
}

func (c *chained) durable(p []byte) error {
	i, last := c.n%len(c.names), len(c.names)
	c.n++
	if _, err := c.files[i].WriteAt(p, 0); err != nil {
		return err
	}
	beside := make(chan error, 1)
	if c.n%3 == 0 {
		go func() { beside <- c.dir.Sync() }()
	} else {
		beside <- nil
	}
	if err := errors.Join(datasync(c.files[i]), <-beside); err != nil {
		return err
	}
	fd := int(c.dir.Fd())
	if err := unix.Renameat2(fd, c.names[i], fd, "current", unix.RENAME_EXCHANGE); err != nil {
		return err
	}
	c.files[i], c.files[last] = c.files[last], c.files[i]
	return nil
}

func (c *chained) close() error {
	err := c.dir.Close()
	for _, f := range c.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
