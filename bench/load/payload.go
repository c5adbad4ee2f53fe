//go:build unix

// Package load has the workloads: what each asks of a peer, how it is carried out, and the
// check that the peer has kept its word.
package load

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// PayloadBytes is the size of every message.
const PayloadBytes = 512

// A payload is {"n":"0000000000000042","text":"xxx…"}, of one size and of one number.
const (
	payloadHead = `{"n":"`
	digits      = 16
	payloadMid  = `","text":"`
	payloadEnd  = `"}`
)

var payloadTail = []byte(payloadMid +
	strings.Repeat("x", PayloadBytes-len(payloadHead)-digits-len(payloadMid)-len(payloadEnd)) + payloadEnd)

// payload is the message of number n.
func payload(n uint64) []byte {
	p := make([]byte, 0, PayloadBytes)
	p = fmt.Appendf(p, "%s%0*d", payloadHead, digits, n)
	return append(p, payloadTail...)
}

// numberOf reads what payload has made, every byte of it.
func numberOf(p []byte) (uint64, error) {
	rest, ok := bytes.CutPrefix(p, []byte(payloadHead))
	if !ok || len(rest) < digits || !bytes.Equal(rest[digits:], payloadTail) {
		return 0, fmt.Errorf("a payload came back altered: %q", p)
	}
	n, err := strconv.ParseUint(string(rest[:digits]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("a payload came back altered: %w", err)
	}
	return n, nil
}
