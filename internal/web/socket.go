//go:build unix

package web

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
)

// maxSocketPath is what the kernel has room for.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// ListenUnix listens on a unix socket of mode 0600. While it does, it holds a lock on a file
// beside it, PATH.lock, that the kernel lets go of when the process dies: of servers that
// start at once one listens. A socket that a dead one left is replaced; anything else that
// stands at either path stays. Closing removes both, but no socket of another. Where another
// server listens the error is EADDRINUSE, as it is of Listen.
func ListenUnix(path string) (net.Listener, error) {
	switch {
	case strings.HasPrefix(path, "@"):
		return nil, fmt.Errorf("%q: a socket without a file can be reached by all users; if you mean a file, write ./%s: %w", path, path, ErrAddress)
	case len(path) > maxSocketPath:
		return nil, fmt.Errorf("%s: the path of a unix socket has at most %d bytes: %w", path, maxSocketPath, ErrAddress)
	}
	lock, err := lockSocket(path + ".lock")
	if err != nil {
		return nil, err
	}
	l, err := listenLocked(path)
	if err != nil {
		return nil, errors.Join(err, unlockSocket(lock))
	}
	l.lock = lock
	return l, nil
}

// listenLocked clears the way and listens. Only after bind is there a mode to set, and only
// after listen may anybody connect: nothing of the process, as its umask is, needs changing.
func listenLocked(path string) (*unixListener, error) {
	if err := clearSocket(path); err != nil {
		return nil, err
	}
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	socket := os.NewFile(uintptr(fd), path)
	defer socket.Close() // the listener has a descriptor of its own
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
		return nil, &fs.PathError{Op: "bind", Path: path, Err: err}
	}
	l, err := listenBound(socket, path)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	return l, nil
}

func listenBound(socket *os.File, path string) (*unixListener, error) {
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, err
	}
	own, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Listen(int(socket.Fd()), syscall.SOMAXCONN); err != nil {
		return nil, os.NewSyscallError("listen", err)
	}
	inner, err := net.FileListener(socket)
	if err != nil {
		return nil, err
	}
	l := &unixListener{Listener: inner, path: path, own: own}
	l.close = sync.OnceValue(l.remove)
	return l, nil
}

// A unixListener removes its socket when it is closed.
type unixListener struct {
	net.Listener
	path  string
	own   fs.FileInfo // of the socket
	lock  *os.File
	close func() error
}

func (l *unixListener) Close() error { return l.close() }

// remove removes the socket if it is still this one, and closes. While it is open no other
// file can have its identity.
func (l *unixListener) remove() error {
	now, err := os.Lstat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil && os.SameFile(now, l.own):
		err = os.Remove(l.path)
	}
	return errors.Join(err, l.Listener.Close(), unlockSocket(l.lock))
}

// clearSocket removes a socket that nobody answers.
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
		return fmt.Errorf("%s: another server answers there: %w", path, syscall.EADDRINUSE)
	case !errors.Is(err, syscall.ECONNREFUSED):
		return err
	}
	return os.Remove(path)
}
