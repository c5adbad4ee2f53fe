package queue

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestReceiptText(t *testing.T) {
	r := Receipt{Store: "abcdefghijklmnopqrstuvwxyz", Queue: "bot/inbox", ID: "update.42", Generation: "zyxwvutsrqponmlkjihgfedcba.7", Attempt: math.MaxUint64}
	const text = "abcdefghijklmnopqrstuvwxyz:bot/inbox:update.42:zyxwvutsrqponmlkjihgfedcba.7:18446744073709551615"
	if got := r.String(); got != text {
		t.Errorf("String: %q; want %q", got, text)
	}
	if got, err := ParseReceipt(text); err != nil || got != r {
		t.Errorf("ParseReceipt: %+v, %v; want %+v", got, err, r)
	}

	encoded, err := json.Marshal(r)
	if err != nil || string(encoded) != `"`+text+`"` {
		t.Errorf("Marshal: %s, %v; want the text", encoded, err)
	}
	var decoded Receipt
	if err := json.Unmarshal(encoded, &decoded); err != nil || decoded != r {
		t.Errorf("Unmarshal: %+v, %v; want %+v", decoded, err, r)
	}
	before := decoded
	if err := decoded.UnmarshalText([]byte("no receipt")); !errors.Is(err, ErrInvalidReceipt) || decoded != before {
		t.Errorf("UnmarshalText of no receipt: %v, %+v; want ErrInvalidReceipt and the value untouched", err, decoded)
	}
}

func TestParseReceiptRefuses(t *testing.T) {
	for _, text := range []string{
		"", ":", "::::", "s:q:i:g", "s:q:i:g:1:2", "s:q:i:g:",
		"s:q:i:g:0", "s:q:i:g:01", "s:q:i:g:+1", "s:q:i:g:-1", "s:q:i:g:1.0", "s:q:i:g:0x1", "s:q:i:g:1_0", "s:q:i:g:18446744073709551616",
		":q:i:g:1", "s::i:g:1", "s:q::g:1", "s:q:i::1",
		"../s:q:i:g:1", "s:q/../r:i:g:1", "s:q:a/b:g:1", "s:q:i:../g:1", "s:q/status:i:g:1", "s:q:con:g:1",
		" s:q:i:g:1", "s:q:i:g:1 ", "s:q:i:g:1\n", "s:q:é:g:1", "s:q:i:g:١",
	} {
		if r, err := ParseReceipt(text); !errors.Is(err, ErrInvalidReceipt) || !errors.Is(err, ErrInvalid) || r != (Receipt{}) {
			t.Errorf("%q: %+v, error %v; want the zero value and ErrInvalidReceipt", text, r, err)
		}
	}
}

// Somebody may pass a payload, or a file, where a receipt belongs.
func TestParseReceiptErrorIsShortAndShowsNoPayload(t *testing.T) {
	for _, text := range []string{`{"password":"hunter2"}`, "hunter2 " + strings.Repeat("x", 1<<20), strings.Repeat("x:", 1<<19)} {
		_, err := ParseReceipt(text)
		if err == nil || strings.Contains(err.Error(), "hunter2") || len(err.Error()) > 400 {
			t.Errorf("%.20q: error %.400v", text, err)
		}
	}
}

// FuzzParseReceipt: whatever parses is written back as the same text, and any
// refusal has the one type.
func FuzzParseReceipt(f *testing.F) {
	for _, seed := range []string{
		"s:q:i:g:1", "abcdefghijklmnopqrstuvwxyz:bot/inbox:update.42:zyxwvutsrqponmlkjihgfedcba.7:18446744073709551615",
		"s:q:i:g:01", "s:q:i:g:0", "s:q/../r:i:g:1", "s:q:i:g:1:", "::::1", "s:q/ack:i:g:1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseReceipt(text)
		if err != nil {
			if !errors.Is(err, ErrInvalidReceipt) || r != (Receipt{}) {
				t.Fatalf("%q: %+v, error %v; want the zero value and ErrInvalidReceipt", text, r, err)
			}
			return
		}
		if got := r.String(); got != text {
			t.Fatalf("%q came back as %q", text, got)
		}
		if r.Attempt == 0 || CheckQueue(r.Queue) != nil || CheckID(r.ID) != nil {
			t.Fatalf("%q gave %+v", text, r)
		}
	})
}
