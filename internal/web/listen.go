//go:build unix

package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// ErrAddress is wrapped by what says that an address may not be listened on.
var ErrAddress = errors.New("not an address to serve on")

// Listen listens on a loopback address and port, such as 127.0.0.1:7340; port 0 lets the
// system choose. A name is refused: what it means is not decided on this machine.
func Listen(address string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q: want an address and port such as 127.0.0.1:7340: %w", address, ErrAddress)
	case !at.Addr().IsLoopback():
		return nil, fmt.Errorf("%s: only a loopback address (127.0.0.1 or [::1]) or a unix socket, for nothing here is encrypted; use ssh -L to reach it from another machine: %w", address, ErrAddress)
	}
	return net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
}

// ListenUnix listens on a unix socket of mode 0600. A socket there that nobody answers is
// what a server left that was killed: it is replaced. Anything else stays.
func ListenUnix(path string) (net.Listener, error) {
	if err := clearSocket(path); err != nil {
		return nil, err
	}
	// The mode is that of the creation: there is no moment in which others may connect.
	before := syscall.Umask(0o177)
	l, err := net.Listen("unix", path)
	syscall.Umask(before)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func clearSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is no socket: %w", path, ErrAddress)
	}
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		c.Close() // it was only to see who answers
		return fmt.Errorf("%s: another server answers there: %w", path, ErrAddress)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return err
	}
	return os.Remove(path)
}
