//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"example.com/holdfast/queue"
)

// newStore gives a store in a temporary directory; when the test ends it must still
// verify.
func newTestStore(t *testing.T, o *Options) (*Store, string) {
	t.Helper()
	dir := t.TempDir() + "/store"
	set := ownHolders(&o)
	s, err := Create(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		set.die()
		mustVerify(t, dir)
	})
	return s, dir
}

// ownHolders gives the options a set of holders that can die before this process does.
func ownHolders(o **Options) *holderSet {
	var own Options
	if *o != nil {
		own = **o
	}
	if own.holders == nil {
		own.holders = &holderSet{}
	}
	*o = &own
	return own.holders
}

// die closes every holder, as the end of the process does.
func (h *holderSet) die() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, x := range h.made {
		_ = x.file.Close()
		_ = x.space.Close()
		delete(h.made, key)
	}
}

// mustVerify fails the test if the store at dir has a fault or was left unsettled.
func mustVerify(t testing.TB, dir string) {
	t.Helper()
	r, err := VerifyDir(context.Background(), dir, nil, VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || !r.Settled {
		t.Fatalf("verify: %+v", r)
	}
}

func TestLifeOfAMessage(t *testing.T) {
	s, _ := newTestStore(t, nil)
	ctx := t.Context()
	payload := []byte(`{"b":9007199254740993,"a":1.0}`)
	e, err := s.Enqueue(ctx, "mail", queue.Message{ID: "m1", Payload: payload})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enqueue(ctx, "mail", queue.Message{ID: "m1", Payload: payload}); !errors.Is(err, queue.ErrDuplicate) {
		t.Fatalf("second enqueue: %v", err)
	}
	var ms []queue.Message
	for i := range 100 {
		ms = append(ms, queue.Message{ID: fmt.Sprintf("b%d", i), Payload: []byte(fmt.Sprintf(`{"n":%d}`, i))})
	}
	if _, err := s.EnqueueBatch(ctx, "mail", ms); err != nil {
		t.Fatal(err)
	}
	c, err := s.Claim(ctx, "mail", queue.ClaimOptions{Max: 3})
	if err != nil || len(c.Deliveries) != 3 {
		t.Fatalf("claim: %v %v", c, err)
	}
	if string(c.Deliveries[0].Payload) != string(payload) || c.Deliveries[0].Receipt.Generation != e.Generation {
		t.Fatalf("delivery: %+v", c.Deliveries[0])
	}
	if string(c.Deliveries[2].Payload) != `{"n":1}` {
		t.Fatalf("delivery: %s", c.Deliveries[2].Payload)
	}
	if err := s.Ack(ctx, c.Deliveries[0].Receipt); err != nil {
		t.Fatal(err)
	}
	if err := s.Ack(ctx, c.Deliveries[0].Receipt); !errors.Is(err, queue.ErrGone) {
		t.Fatalf("second ack: %v", err)
	}
	if err := s.Release(ctx, c.Deliveries[1].Receipt, queue.ReleaseOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Fail(ctx, c.Deliveries[2].Receipt, queue.FailOptions{Cause: "no"}); err != nil {
		t.Fatal(err)
	}
	st, err := s.Status(ctx, queue.StatusOptions{Orphans: true})
	if err != nil {
		t.Fatal(err)
	}
	q := st.Queues["mail"]
	if q.Pending != 99 || q.Processing != 0 || q.Failed != 1 || st.Orphans != 1 || !st.Settled || st.Complete() {
		t.Fatalf("status: %+v", st)
	}
}
