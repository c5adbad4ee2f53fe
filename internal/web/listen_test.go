//go:build unix

package web

import (
	"errors"
	"net"
	"os"
	"path/filepath"
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

func TestListenUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v %v, want mode 0600", info, err)
	}
	if _, err := ListenUnix(path); !errors.Is(err, ErrAddress) {
		t.Errorf("where another answers: %v, want ErrAddress", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // as when it is killed
	l.Close()
	if l, err = ListenUnix(path); err != nil {
		t.Fatalf("where a dead one's socket stands: %v", err)
	}
	l.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket stays: %v", err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(path); !errors.Is(err, ErrAddress) {
		t.Errorf("where a file stands: %v, want ErrAddress", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("the file was touched: %q %v", text, err)
	}
}
