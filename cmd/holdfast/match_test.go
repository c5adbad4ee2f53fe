//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestIDsBySomePrefixOrSuffix(t *testing.T) {
	s := newStore(t)
	for _, id := range []string{"order-1", "order-11", "parcel.7"} {
		s.must("enqueue", "chat", `"`+id+`"`, "--id", id)
	}
	for given, want := range map[string]string{
		"order-1": "order-1", "order-11": "order-11", // the whole name beats a prefix
		"p": "parcel.7", "parcel.": "parcel.7", ".7": "parcel.7", "r-1": "order-1", "11": "order-11",
	} {
		got := s.run("show", "chat", given, "--payload")
		if got.code != 0 || got.out != `"`+want+`"` {
			t.Errorf("%q: exit %d, %q %s; want %s", given, got.code, got.out, got.err, want)
		}
	}
	got := s.refused(exitUsage, "ambiguous", "show", "chat", "order")
	if l := decode[errorLine](t, got.err); !strings.Contains(l.Error, "order-1 order-11") {
		t.Errorf("the candidates are missing: %s", l.Error)
	}
	s.refused(exitNothing, "not_found", "show", "chat", "rder")
	s.refused(exitUsage, "invalid_name", "show", "chat", "x.")
	s.refused(exitUsage, "invalid_name", "show", "chat", "")
	s.refused(exitUsage, "ambiguous", "load", "chat", "order")
	if got := decode[claimLine](t, s.must("load", "chat", "par", "--json")); got.ID != "parcel.7" {
		t.Errorf("load: %+v", got)
	}
}

func TestReceiptsBySomePrefixOrSuffix(t *testing.T) {
	s := newStore(t)
	var receipts []string
	for i, q := range []string{"a", "a", "b/c", "b/c"} {
		s.must("enqueue", q, "1", "--id", fmt.Sprint("m", i))
		receipts = append(receipts, decode[claimLine](t, s.must("claim", q, "--json", "--lease", "none")).Receipt)
	}
	store, rest, _ := strings.Cut(receipts[0], ":")
	got := s.refused(exitUsage, "ambiguous", "ack", store)
	if l := decode[errorLine](t, got.err); strings.Count(l.Error, store+":") != 4 {
		t.Errorf("the candidates are missing: %s", l.Error)
	}
	s.refused(exitUsage, "ambiguous", "ack", ":1")
	s.refused(exitUsage, "invalid_receipt", "ack", "nonsense")
	s.refused(exitUsage, "invalid_receipt", "ack", "")
	s.refused(exitUsage, "invalid_receipt", "ack", "other:"+rest)

	s.must("ack", strings.TrimSuffix(receipts[0], ":1")) // a prefix
	s.must("ack", receipts[1][len(receipts[1])-20:])     // a suffix inside the generation
	s.must("release", receipts[2][5:])                   // a suffix that cuts the store's ID only
	s.must("fail", store+":b/c:m3", "--cause", "x")
	s.refused(exitRefused, "gone", "ack", receipts[0]) // a whole receipt is used as it is
}

func TestSeveralOperandsDoAllTheyCan(t *testing.T) {
	s := newStore(t)
	s.mustFeed("1\n2\n3\n", "enqueue", "chat", "--ndjson")
	var receipts []string
	for _, l := range lines(s.must("claim", "chat", "-n", "3", "--json")) {
		receipts = append(receipts, decode[claimLine](t, l).Receipt)
	}
	s.must("ack", receipts[0])
	got := s.run("ack", receipts[1], receipts[0], receipts[2], "--json")
	if got.code != exitRefused || len(lines(got.out)) != 2 || len(lines(got.err)) != 1 {
		t.Errorf("exit %d, %q, %q", got.code, got.out, got.err)
	}
	if l := decode[errorLine](t, got.err); l.Code != "gone" || l.Receipt != receipts[0] || l.Queue != "chat" {
		t.Errorf("%+v", l)
	}
	// 2 is worse than 5.
	if got := s.run("ack", receipts[0], "nonsense", receipts[0]); got.code != exitUsage || len(lines(got.err)) != 3 {
		t.Errorf("exit %d, %q", got.code, got.err)
	}
}
