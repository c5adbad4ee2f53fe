//go:build unix

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"example.com/holdfast/queue"
)

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

func TestManyReceiptsShareCommits(t *testing.T) {
	const n = 300
	s := newStore(t)
	s.mustFeed(strings.Repeat("1\n", 3*n), "enqueue", "chat", "--ndjson")
	for _, command := range [][]string{{"release"}, {"ack"}, {"retry"}, {"fail", "--cause", "x"}} {
		var receipts, ids []string
		for _, l := range lines(s.must("claim", "chat", "-n", fmt.Sprint(n), "--json")) {
			c := decode[claimLine](t, l)
			receipts, ids = append(receipts, c.Receipt), append(ids, c.ID)
		}
		revision := func() uint64 { return decode[statusLine](t, s.must("status", "--json")).Revision }
		before := revision()
		got := lines(s.must(append(append(command, receipts...), "--json")...))
		if commits := revision() - before; len(receipts) != n || commits == 0 || commits > n/4 {
			t.Errorf("%s: %d commits for %d receipts", command[0], commits, len(receipts))
		}
		for i, l := range got {
			if decode[settledLine](t, l).ID != ids[i] {
				t.Fatalf("%s: result %d is not of operand %d", command[0], i, i)
			}
		}
		if len(got) != n {
			t.Errorf("%s: %d results", command[0], len(got))
		}
	}
	before := decode[statusLine](t, s.must("status", "--json")).Revision
	got := len(lines(s.must("reprocess", "--all")))
	if commits := decode[statusLine](t, s.must("status", "--json")).Revision - before; got != n || commits == 0 || commits > n/4 {
		t.Errorf("reprocess: %d results in %d commits", got, commits)
	}
}

// An ackStore holds every ack until so many are in flight, and scripts the rest.
type ackStore struct {
	store
	mu              sync.Mutex
	flying, most    int
	together, total int
	gate            chan struct{}
	ack             func(r queue.Receipt) error
}

func (f *ackStore) ID() string   { return "s" }
func (f *ackStore) Close() error { return nil }

func (f *ackStore) Ack(ctx context.Context, r queue.Receipt) error {
	f.mu.Lock()
	f.flying++
	f.total++
	f.most = max(f.most, f.flying)
	if f.gate != nil && f.total == f.together {
		close(f.gate)
	}
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.flying--
		f.mu.Unlock()
	}()
	if f.gate != nil {
		<-f.gate
	}
	if f.ack != nil {
		return f.ack(r)
	}
	return ctx.Err()
}

func fakeReceipts(n int) (receipts []string) {
	for i := range n {
		receipts = append(receipts, fmt.Sprintf("s:chat:m%d:g.0:1", i))
	}
	return receipts
}

func TestOperandsAreBounded(t *testing.T) {
	// It would never end if fewer were worked on at once.
	f := &ackStore{together: mostAtOnce, gate: make(chan struct{})}
	s := &session{t: t, dir: "/fake", engine: with(f)}
	if got := lines(s.must(append([]string{"ack"}, fakeReceipts(1000)...)...)); len(got) != 1000 || got[999] != "acked chat m999" {
		t.Errorf("%d results", len(got))
	}
	if f.most != mostAtOnce {
		t.Errorf("%d at once, want %d", f.most, mostAtOnce)
	}
}

func TestTheSameReceiptTwiceIsSettledInOrder(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1", "--id", "m")
	r := decode[claimLine](t, s.must("claim", "chat", "--json")).Receipt
	if got := fmt.Sprint(grouped([]operand{{key: "a"}, {key: "b"}, {key: "a"}})); got != "[[0 2] [1]]" {
		t.Errorf("groups: %s", got)
	}
	got := s.run("ack", r, r, r[len(r)-12:])
	if got.out != "acked chat m\n" || len(lines(got.err)) != 2 || got.code != exitRefused {
		t.Errorf("%+v", got)
	}
}

func TestInterruptedOperandsAreOneLine(t *testing.T) {
	for _, try := range []struct {
		gone string // a message that is refused
		want string
	}{
		{"", "stopped: 18 of 500 settled, 482 not tried"},
		{"m3", "stopped: 17 of 500 settled, 1 refused, 482 not tried"},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		var settled int
		var mu sync.Mutex
		f := &ackStore{}
		f.ack = func(r queue.Receipt) error {
			mu.Lock()
			defer mu.Unlock()
			if settled == 18 {
				interrupt()
				return context.Canceled
			}
			settled++
			if r.ID == try.gone {
				return &queue.LostError{Queue: r.Queue, ID: r.ID, Attempt: 1, Reason: "acked", Err: queue.ErrGone}
			}
			return nil
		}
		if try.gone != "" { // all in one commit, which has taken the refused one
			f.ack = func(r queue.Receipt) error {
				var i int
				fmt.Sscanf(r.ID, "m%d", &i)
				switch {
				case r.ID == try.gone:
					return &queue.LostError{Queue: r.Queue, ID: r.ID, Attempt: 1, Reason: "acked", Err: queue.ErrGone}
				case i >= 18:
					return context.Canceled
				}
				return nil
			}
		}
		s := &session{t: t, dir: "/fake", engine: with(f)}
		got := s.feedFrom(ctx, strings.NewReader(""), append([]string{"ack"}, fakeReceipts(500)...)...)
		interrupt()
		rows := lines(got.err)
		if got.code != exitIO || rows[len(rows)-1] != "holdfast: /fake: "+try.want || try.gone == "" && len(rows) != 1 {
			t.Errorf("exit %d, %q; want %q", got.code, got.err, try.want)
		}
	}
}
