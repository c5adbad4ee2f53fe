//go:build unix

package web

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
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
