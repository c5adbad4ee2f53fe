//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

func init() { roles["read by path"] = readByPath }

// A halt stops one process at its next commit point until it is let go.
type halt struct {
	reached, on chan struct{}
	once        sync.Once
}

func (h *halt) plan() crashtest.Plan {
	return crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		if isCommitPoint(op, path) {
			h.once.Do(func() {
				close(h.reached)
				<-h.on
			})
		}
		return false
	}, errors.New("never"), 0)
}

// T21, the crowd: a collector in a loop beside eight that enqueue, ack and replace, of which
// one stands still between its payload and its commit. The collector waits for him, and
// can be called off; nothing that anybody refers to goes, and in the end nothing else is there.
func TestTrial21CollectBesideEnqueuers(t *testing.T) {
	t.Parallel()
	const enqueuers = 8
	each := 12
	if testing.Short() || raceDetector() {
		each = 4
	}
	s, dir := newTestStore(t, nil)
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	stopped := &halt{reached: make(chan struct{}), on: make(chan struct{})}

	done := make(chan struct{})
	var enqueuing, collecting sync.WaitGroup
	for i := range enqueuers {
		o := &Options{holders: &holderSet{}, prepare: 1}
		if i == 0 {
			o.fs = w
		}
		h, err := Open(t.Context(), dir, o)
		mustDo(t, err)
		if i == 0 {
			w.Arm(stopped.plan())
		}
		enqueuing.Go(func() {
			defer h.Close()
			for n := range each {
				id := fmt.Sprintf("e%d-%d", i, n)
				if _, err := h.Enqueue(context.Background(), "mail", queue.Message{ID: id, Payload: payloadOf(id)}); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				switch n % 3 {
				case 1:
					if err := ackOf(h, id); err != nil {
						t.Errorf("%s: %v", id, err)
					}
				case 2:
					_, err := h.Enqueue(context.Background(), "mail", queue.Message{ID: id, Payload: payloadOf(id), IfExists: queue.Replace})
					if err != nil {
						t.Errorf("%s: %v", id, err)
					}
				}
			}
		})
	}
	<-stopped.reached
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan error)
	go func() {
		r, err := s.Collect(ctx, CollectOptions{})
		if r.Objects > 0 {
			err = fmt.Errorf("%+v, %w", r, err)
		}
		called <- err
	}()
	cancel()
	if err := <-called; !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "{") {
		t.Errorf("collect beside one that stands still: %v", err)
	}
	var freed int64
	collecting.Go(func() {
		for last := false; ; {
			r, err := s.Collect(t.Context(), CollectOptions{StepEntries: 4})
			if err != nil || r.kept(KeptAhead) > 0 || len(r.Kept) > 0 {
				t.Errorf("collect: %+v, %v", r, err)
				return
			}
			if freed += r.Objects; last {
				return
			}
			select {
			case <-done:
				last = true
			default:
			}
		}
	})
	close(stopped.on)
	enqueuing.Wait()
	close(done)
	collecting.Wait()
	mustBeClean(t, s, 0, 0)
	want := 0
	for n := range each {
		if n%3 != 1 {
			want += enqueuers
		}
	}
	got := mustClaim(t, s, "mail", queue.ClaimOptions{Max: enqueuers * each})
	for _, d := range got {
		if string(d.Payload) != string(payloadOf(d.Receipt.ID)) {
			t.Errorf("%s: %s", d.Receipt.ID, d.Payload)
		}
	}
	if len(got) != want || freed == 0 {
		t.Errorf("%d messages, want %d; %d objects freed", len(got), want, freed)
	}
}

// readByPath takes a directory. It tells when it shares the lock of objects/, and holds it
// until its input ends.
func readByPath(args []string) error {
	s, err := Open(context.Background(), args[0], nil)
	if err != nil {
		return err
	}
	var shared fsguard.Dir
	if err := s.look(context.Background(), func(v *view) (err error) {
		shared, err = v.pins.shareObjects()
		return err
	}); err != nil {
		return err
	}
	fmt.Println("shared")
	_, err = io.Copy(io.Discard, os.Stdin)
	return errors.Join(err, shared.Close(), s.Close())
}

// A real process that reads by path defers a collection of another for as long as it lives,
// and no longer.
func TestCollectIsDeferredByAProcess(t *testing.T) {
	s, dir := newTestStore(t, nil)
	mustEnqueue(t, s, "mail", small("a"), small("b"))
	_, err := s.Clear(t.Context(), "mail", queue.ClearOptions{})
	mustDo(t, err)
	reader := start(t, "read by path", dir)
	if line := reader.Line(t); line != "shared" {
		t.Fatalf("the reader says %q", line)
	}
	if r, err := s.Collect(t.Context(), CollectOptions{}); !errors.Is(err, ErrDeferred) || r.Objects > 0 {
		t.Errorf("beside the reader: %+v, %v", r, err)
	}
	reader.Kill(t)
	if r, err := s.Collect(t.Context(), CollectOptions{}); err != nil || r.Objects != 1 {
		t.Errorf("after its death: %+v, %v", r, err)
	}
}
