//go:build unix

package web

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// killed does to a listener what the end of its process does.
func killed(l net.Listener) error {
	u := l.(*unixListener)
	return errors.Join(u.Listener.Close(), u.lock.Close())
}

func TestListenUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + ".lock"} {
		if info, err := os.Lstat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v, want mode 0600", name, info, err)
		}
	}
	if _, err := ListenUnix(path); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("where another listens: %v, want EADDRINUSE", err)
	}
	if err := killed(l); err != nil {
		t.Fatal(err)
	}
	if l, err = ListenUnix(path); err != nil {
		t.Fatalf("where a dead one's socket stands: %v", err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(filepath.Dir(path)); err != nil || len(names) > 0 {
		t.Errorf("at the end there is %v %v", names, err)
	}
}

// Of servers that start at once over a dead one's socket one listens, and is reached.
func TestListenUnixAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := killed(l); err != nil {
		t.Fatal(err)
	}
	won := make(chan net.Listener, 8)
	var all sync.WaitGroup
	for range cap(won) {
		all.Go(func() {
			l, err := ListenUnix(path)
			if err == nil {
				won <- l
			} else if !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("%v, want EADDRINUSE", err)
			}
		})
	}
	all.Wait()
	if len(won) != 1 {
		t.Errorf("%d listen", len(won))
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), (<-won).Close()); err != nil {
		t.Error(err)
	}
}

// A socket that another made in the place of ours is not ours to remove.
func TestListenUnixLeavesAnothersSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatalf("the other's socket: %v", err)
	}
	c.Close()
	if _, err := ListenUnix(path); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("where another program answers: %v, want EADDRINUSE", err)
	}
}

func TestListenUnixRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		path string
		make func(path string) error
	}{
		"a file":                  {"s", func(path string) error { return os.WriteFile(path, []byte("mine"), 0o600) }},
		"a directory":             {"s", func(path string) error { return os.Mkdir(path, 0o700) }},
		"a file as its lock":      {"s", func(path string) error { return os.WriteFile(path+".lock", []byte("mine"), 0o600) }},
		"too long a path":         {strings.Repeat("s", maxSocketPath+1), func(string) error { return nil }},
		"a socket without a file": {"@s", func(string) error { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := c.make(c.path); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadDir(".")
			if err != nil {
				t.Fatal(err)
			}
			if l, err := ListenUnix(c.path); !errors.Is(err, ErrAddress) {
				t.Errorf("got %v %v, want ErrAddress", l, err)
			}
			after, err := os.ReadDir(".")
			if err != nil || len(after) != len(before) {
				t.Errorf("there was %v and is %v %v", before, after, err)
			}
			for _, name := range []string{"s", "s.lock"} {
				text, err := os.ReadFile(name)
				if err == nil && string(text) != "mine" {
					t.Errorf("%s was touched: %q", name, text)
				}
			}
		})
	}
	t.Run("the longest path", func(t *testing.T) {
		t.Chdir(t.TempDir())
		l, err := ListenUnix(strings.Repeat("s", maxSocketPath))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

// T32 for what the server makes besides: whatever the umask, the owner and nobody else can
// use it.
func TestModesWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077, 0o777} {
		dir := t.TempDir()
		old := syscall.Umask(umask)
		l, err := ListenUnix(filepath.Join(dir, "s"))
		_, _, tokenErr := Token(filepath.Join(dir, "token"))
		now := syscall.Umask(old)
		if err != nil || tokenErr != nil || now != umask {
			t.Fatalf("umask %04o: %v, %v, and it is %04o", umask, err, tokenErr, now)
		}
		for _, name := range []string{"s", "s.lock", "token"} {
			if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("umask %04o: %s: %v %v, want mode 0600", umask, name, info, err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
