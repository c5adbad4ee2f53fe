//go:build unix

package holdfast

import (
	"encoding/base32"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// A token is 128 random bits: it names a store, a commit, an object or a holder,
// and is never reused. Its text is 26 characters of a-z and 2-7 (RFC 4648 base32
// in lower case, unpadded), so that names made of it meet on no filesystem.
type token [16]byte

const tokenChars = 26

var tokenText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func newToken(r io.Reader) (token, error) {
	var t token
	if _, err := io.ReadFull(r, t[:]); err != nil {
		return token{}, fmt.Errorf("no randomness: %w", err)
	}
	return t, nil
}

func (t token) String() string {
	var b [tokenChars]byte
	tokenText.Encode(b[:], t[:])
	return string(b[:])
}

func (t token) append(b []byte) []byte { return tokenText.AppendEncode(b, t[:]) }

func (t token) zero() bool { return t == token{} }

// parseToken takes only the one spelling that String gives: the two bits that the
// last character has to spare must be zero.
func parseToken[T string | []byte](s T) (token, bool) {
	var t token
	if len(s) != tokenChars {
		return t, false
	}
	var buf [tokenChars]byte
	copy(buf[:], s)
	if _, err := tokenText.Decode(t[:], buf[:]); err != nil {
		return token{}, false
	}
	var again [tokenChars]byte
	tokenText.Encode(again[:], t[:])
	if again != buf {
		return token{}, false
	}
	return t, true
}

// A generation names one acceptance of a message: the commit that accepted it and
// its place in that commit. It is never reused, because a commit token never is,
// not even that of a commit that was published and lost.
type generation struct {
	commit token
	index  uint32
}

func (g generation) String() string {
	return g.commit.String() + "." + strconv.FormatUint(uint64(g.index), 10)
}

func (g generation) append(b []byte) []byte {
	b = g.commit.append(b)
	b = append(b, '.')
	return strconv.AppendUint(b, uint64(g.index), 10)
}

func parseGeneration(s string) (generation, bool) {
	head, tail, ok := strings.Cut(s, ".")
	if !ok {
		return generation{}, false
	}
	commit, ok := parseToken(head)
	if !ok {
		return generation{}, false
	}
	index, err := strconv.ParseUint(tail, 10, 32)
	if err != nil || strconv.FormatUint(index, 10) != tail {
		return generation{}, false
	}
	return generation{commit, uint32(index)}, true
}
