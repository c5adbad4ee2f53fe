//go:build unix

package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"example.com/holdfast/queue"
)

// A receipt that is given short still stands for one claim.
func TestShortReceiptsPinTheClaim(t *testing.T) {
	s := newStore(t)
	var receipts []string
	for i, q := range []string{"a", "a", "b/c", "b/c"} {
		s.must("enqueue", q, "1", "--id", fmt.Sprint("m", i))
		receipts = append(receipts, decode[claimLine](t, s.must("claim", q, "--json", "--lease", "none")).Receipt)
	}
	r := receipts[0]
	store, rest, _ := strings.Cut(r, ":")
	end := r[strings.LastIndexByte(r, ':')-10:] // 8 of the token, .0 and :1
	before := treeOf(t, s.dir)
	for _, command := range [][]string{{"ack"}, {"release"}, {"fail", "--cause", "x"}} {
		for _, short := range []string{
			"1", ":1", "0:1", ".0:1", end[1:], end[3:], // too little of the token
			store, store + ":a", store + ":a:m0", store + ":a:m0:", // prefixes
			strings.TrimSuffix(r, ":1"), strings.TrimSuffix(r, "1"), // the attempt is cut off
			end + "0", end[:10] + ":2", end[:10] + ":01", end[:10] + ":0", end[:10] + ":+1", // another attempt, or none
			"zzzzzzzz.0:1", "nonsense", "", "other:" + rest,
		} {
			got := s.refused(exitUsage, "invalid_receipt", append(command, short)...)
			if l := decode[errorLine](t, got.err); !strings.HasPrefix(l.Run, "holdfast ls ") {
				t.Errorf("%q: the next command is %q", short, l.Run)
			}
		}
	}
	got := s.run("ack", store+":a:m0")
	if !strings.Contains(got.err, "at least 8 characters of the generation's token and the whole attempt") ||
		!strings.HasSuffix(got.err, "; run: holdfast ls a --dir "+s.dir+"\n") {
		t.Errorf("it does not say what a short receipt needs: %q", got.err)
	}
	if after := treeOf(t, s.dir); len(after) != len(before) || len(lines(s.must("ls", "a", "--json"))) != 2 {
		t.Error("something was settled")
	}

	if got := s.must("ls", "a"); !strings.Contains(got, "  "+end+"\n") {
		t.Errorf("ls does not show the short receipt %s: %q", end, got)
	}
	s.must("ack", end)
	s.must("ack", receipts[1][len(receipts[1])-20:])
	s.must("release", receipts[2][5:]) // it lacks a part of the store's ID only
	s.must("fail", receipts[3][len(store)+1:], "--cause", "x")
	s.refused(exitRefused, "gone", "ack", r)            // a whole receipt is used as it is
	s.refused(exitUsage, "invalid_receipt", "ack", end) // a short one is of a current lease
}

// A late worker's short receipt does not settle the claim that came after its own.
func TestALateShortReceiptSettlesNothing(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1", "--id", "m")
	late := decode[claimLine](t, s.must("claim", "chat", "--json", "--lease", "none")).Receipt
	now := decode[claimLine](t, s.must("load", "chat", "m", "--json", "--lease", "none")).Receipt
	s.refused(exitUsage, "invalid_receipt", "ack", late[len(late)-12:])
	if e := decode[entryLine](t, s.must("ls", "chat", "--json")); e.Receipt != now {
		t.Errorf("it was settled: %+v", e)
	}
	s.must("ack", now[len(now)-12:])
}

// A beginning can look like an end: here the ID like a generation, and the first
// character of the generation like an attempt.
func TestABeginningIsNotAnEnd(t *testing.T) {
	const whole = "s:q:abcdefgh.0:2zzzzzzzzzzzzzzzzzzzzzzzzz.0:1"
	l := &leaseFinder{s: &ackStore{}, listed: true, texts: []string{whole}}
	if r, err := l.find(t.Context(), "s:q:abcdefgh.0:2"); !errors.Is(err, queue.ErrInvalidReceipt) {
		t.Errorf("got %v, %v", r, err)
	}
	if r, err := l.find(t.Context(), whole[len(whole)-12:]); err != nil || r.String() != whole {
		t.Errorf("got %v, %v", r, err)
	}
}
