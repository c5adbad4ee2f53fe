package queue

import (
	"fmt"
	"strconv"
	"strings"
)

// A Receipt is proof of one claim: it names the store, the queue, the ID, the
// generation and the attempt, and is good for as long as exactly that claim is
// the message's current one. It holds no secret; it fences, it does not authorise.
type Receipt struct {
	Store      string // store id
	Queue      string
	ID         string
	Generation string
	Attempt    uint64 // 1 for the first claim of a generation
}

// String gives the receipt as one word that needs no quoting in a shell:
//
//	STORE:QUEUE:ID:GENERATION:ATTEMPT
//
// [ParseReceipt] reads it.
func (r Receipt) String() string {
	return r.Store + ":" + r.Queue + ":" + r.ID + ":" + r.Generation + ":" + strconv.FormatUint(r.Attempt, 10)
}

// MarshalText gives the text form.
func (r Receipt) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the text form.
func (r *Receipt) UnmarshalText(text []byte) error {
	parsed, err := ParseReceipt(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}

// ParseReceipt reads the text form of a receipt. Only the exact form that
// [Receipt.String] writes is taken; anything else is [ErrInvalidReceipt].
func ParseReceipt(text string) (Receipt, error) {
	// Text that cannot be a receipt is not shown: it may be somebody's payload.
	for i := range len(text) {
		if c := text[i]; !nameByte(c) && c != '/' && c != ':' {
			return Receipt{}, fmt.Errorf("text of %d bytes: byte %d cannot stand in a receipt: %w", len(text), i, ErrInvalidReceipt)
		}
	}
	parts := strings.Split(text, ":")
	if len(parts) != 5 {
		return Receipt{}, fmt.Errorf("%q: want STORE:QUEUE:ID:GENERATION:ATTEMPT: %w", clip(text), ErrInvalidReceipt)
	}
	r := Receipt{Store: parts[0], Queue: parts[1], ID: parts[2], Generation: parts[3]}
	for _, part := range []string{r.Store, r.Generation} {
		if err := checkComponent("token", part); err != nil {
			return Receipt{}, fmt.Errorf("%q: %v: %w", clip(text), err, ErrInvalidReceipt)
		}
	}
	if err := CheckQueue(r.Queue); err != nil {
		return Receipt{}, fmt.Errorf("%q: %v: %w", clip(text), err, ErrInvalidReceipt)
	}
	if err := CheckID(r.ID); err != nil {
		return Receipt{}, fmt.Errorf("%q: %v: %w", clip(text), err, ErrInvalidReceipt)
	}
	attempt, err := strconv.ParseUint(parts[4], 10, 64)
	if err != nil || attempt == 0 || strconv.FormatUint(attempt, 10) != parts[4] {
		return Receipt{}, fmt.Errorf("%q: the attempt is not a number from 1: %w", clip(text), ErrInvalidReceipt)
	}
	r.Attempt = attempt
	return r, nil
}

// clip keeps an error short when somebody passes something else for a receipt.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
