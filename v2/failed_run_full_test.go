//go:build unix

package holdfast

import (
	"fmt"
	"strings"
	"testing"

	"example.com/holdfast/queue"
)

// A deep queue of which everything fails, and into which nobody enqueues meanwhile: the
// evidence is sealed by the claims, so the state does not fill, and what lies in runs is
// not shut in them.
func TestAllOfADeepQueueCanFail(t *testing.T) {
	s, _ := newTestStore(t, &Options{MaxStateBytes: leastStateBytes})
	ctx := t.Context()
	const all = 400
	for i := 0; i < all; i += 50 {
		ms := make([]queue.Message, 50)
		for j := range ms {
			ms[j] = small(fmt.Sprintf("m%03d", i+j))
		}
		mustEnqueue(t, s, "mail", ms...)
	}
	cause := strings.Repeat("why ", maxLastError/4)
	for failed := 0; failed < all; {
		held := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 10})
		if len(held) == 0 {
			t.Fatalf("nothing to claim after %d", failed)
		}
		for _, d := range held {
			if _, err := s.Fail(ctx, d.Receipt, queue.FailOptions{Cause: cause}); err != nil {
				t.Fatalf("fail %d: %v", failed, err)
			}
			failed++
		}
	}
	if size := s.cached.size; size > leastStateBytes {
		t.Errorf("the state takes %d bytes", size)
	}
	mustEnqueue(t, s, "mail", small("more"))
	status, err := s.Status(ctx, queue.StatusOptions{})
	if g := status.Queues["mail"]; err != nil || g.Failed != all || g.Pending != 1 {
		t.Errorf("%+v, %v", g, err)
	}
}
