//go:build unix

package web

import (
	"errors"
	"net"
	"testing"
)

func TestListenRefuses(t *testing.T) {
	for _, address := range []string{
		"", ":7340", "0.0.0.0:7340", "[::]:7340", "192.168.1.5:7340", "8.8.8.8:80", "localhost:7340", "example.com:80",
		"127.0.0.1", "127.0.0.1:http", "127.0.0.1:99999", "[fe80::1%lo]:80", "[::ffff:10.0.0.1]:80",
	} {
		l, err := Listen(address)
		if err == nil {
			l.Close()
		}
		if !errors.Is(err, ErrAddress) {
			t.Errorf("%q: %v, want ErrAddress", address, err)
		}
	}
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if at := l.Addr().(*net.TCPAddr); !at.IP.IsLoopback() || at.Port == 0 {
		t.Errorf("it listens on %v", at)
	}
}
