//go:build unix

package holdfast

import (
	"fmt"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// How many operations of the filesystem each commit takes, exactly: whoever adds one says
// here what for. The claim reads a payload.
func TestOperationsOfACommit(t *testing.T) {
	s, w := counted(t)
	if !s.cached.st.exchange {
		skip(t, "names cannot be exchanged here")
	}
	ctx := t.Context()
	var d []queue.Delivery
	claim := func() error {
		c, err := s.Claim(ctx, "mail", queue.ClaimOptions{WithoutHolder: true})
		d = c.Deliveries
		return err
	}
	enqueue := func() error { return second(s.Enqueue(ctx, "mail", queue.Message{Payload: []byte(`1`)})) }
	for range preparesAfter {
		mustDo(t, enqueue())
	}
	for _, step := range []struct {
		name string
		do   func() error
		want int
	}{
		{"enqueue that prepares", enqueue, 59},
		{"enqueue", enqueue, 45},
		{"claim", claim, 38},
		{"ack", func() error { return s.Ack(ctx, d[0].Receipt) }, 31},
		{"empty claim", func() error { return second(s.Claim(ctx, "other", queue.ClaimOptions{WithoutHolder: true})) }, 14},
		{"status", func() error { return second(s.Status(ctx, queue.StatusOptions{})) }, 13},
	} {
		w.Arm(crashtest.Plan{})
		mustDo(t, step.do())
		if got := w.Count(); got != step.want {
			t.Errorf("%s: %d operations, want %d\n%s", step.name, got, step.want, w.Trace())
		}
	}
}

// What a commit allocates, on the operating system's filesystem and with a little room: an
// enqueue, a claim and an ack, by one caller, with nothing else in the queue and with much.
func TestAllocationsOfAMessage(t *testing.T) {
	if raceDetector() {
		t.Skip("the race detector allocates too")
	}
	const most = 340
	for _, pending := range []int{0, 200} {
		t.Run(fmt.Sprint(pending, " pending"), func(t *testing.T) {
			s, _ := newTestStore(t, nil)
			ctx := t.Context()
			if pending > 0 {
				mustEnqueue(t, s, "mail", smalls(pending)...)
			}
			payload := []byte(`{"to":"ann","n":1}`)
			got := testing.AllocsPerRun(100, func() {
				if _, err := s.Enqueue(ctx, "mail", queue.Message{Payload: payload}); err != nil {
					t.Fatal(err)
				}
				c, err := s.Claim(ctx, "mail", queue.ClaimOptions{})
				if err != nil || len(c.Deliveries) != 1 {
					t.Fatal(c, err)
				}
				mustDo(t, s.Ack(ctx, c.Deliveries[0].Receipt))
			})
			t.Logf("%.0f allocations a message", got)
			if got > most {
				t.Errorf("%.0f allocations a message, want at most %d", got, most)
			}
		})
	}
}
