//go:build unix

package web

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// The length of a token, in characters.
const (
	minToken = 22 // 128 bits in base64
	maxToken = 512
)

// Token reads the token in a file, which must be a plain file of the caller's that nobody
// else can read. Where there is none it makes one, of 256 random bits and mode 0600, and
// reports that it did. What it says of a token or its file does not name the file.
func Token(name string) (token string, made bool, err error) {
	token, err = readToken(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, false, err
	}
	token, err = makeToken(name)
	if errors.Is(err, fs.ErrExist) { // another server was first
		token, err = readToken(name)
		return token, false, err
	}
	return token, err == nil, err
}

func makeToken(name string) (string, error) {
	var random [32]byte
	rand.Read(random[:]) // it never fails
	token := base64.RawURLEncoding.EncodeToString(random[:])
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	if err = f.Chmod(0o600); err == nil { // a umask may have taken from it what the next start needs
		_, err = f.WriteString(token + "\n")
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(name) // half a token would be refused the next time
		return "", err
	}
	return token, nil
}

func readToken(name string) (string, error) {
	// Without blocking: a FIFO there would hold us for ever.
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close() // only read
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return "", errors.New("this is no plain file")
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("others can read it (mode %04o): chmod 600 it, and change what stands in it", info.Mode().Perm())
	case ok && int(owner.Uid) != os.Geteuid():
		return "", errors.New("it belongs to another user")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxToken+2))
	if err != nil {
		return "", err
	}
	token := strings.TrimRight(string(text), "\r\n")
	if len(token) < minToken || len(token) > maxToken {
		return "", fmt.Errorf("the token in it has %d characters: from %d to %d; remove the file, and a new one is made", len(token), minToken, maxToken)
	}
	for _, c := range []byte(token) {
		if c <= ' ' || c > '~' {
			return "", errors.New("a token is one word of plain ASCII")
		}
	}
	return token, nil
}
