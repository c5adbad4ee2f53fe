//go:build unix

package holdfast

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A waker wakes the calls of one handle that wait for a change of the store. The
// first to wait posts a sentry, which keeps a watch on the namespace and polls behind
// it; with the last to leave it goes.
//
// Nothing is missed, because each waiter does this in this order:
//
//	join   the watch stands, and what happens from now on is told to the waiter
//	look   through the pipeline, under the lock
//	park   until it is told, or its time has come; then look again
//
// It is told by every commit of this handle once that is durable; by a rename over
// state.json, whoever made it; when the watch was lost, after the next one stands; by
// a poll that finds another file.
type waker struct {
	fs      fsguard.FS
	clock   clock
	space   string // path of the namespace
	pollOff bool   // for tests

	arming chan struct{}  // full while a first watch is made: who comes second waits for it
	posted sync.WaitGroup // sentries

	mu      sync.Mutex
	waiters map[*parked]bool
	recall  chan struct{} // closed, it ends the sentry; nil: none is posted
	shut    chan struct{} // closed by close
	closed  bool

	looks, wakes, polls, watches atomic.Int64 // for tests: what was done, counted
}

// parked is one call that waits.
type parked struct {
	told   chan struct{} // of capacity 1: look again
	commit token         // why: that commit; zero: for another reason, or several
	last   sight
}

// A sight is what a look saw.
type sight struct {
	commit token        // of the committed state
	file   fsguard.Info // state.json
	young  bool         // the file had only just been made
	next   int64        // when a message becomes due, Unix milliseconds; 0: never by itself
}

func newWaker(s *Store) *waker {
	return &waker{
		fs: s.fs, clock: s.clock, space: filepath.Join(s.dir, namespaceDir), pollOff: s.opts.pollOff,
		arming: make(chan struct{}, 1), waiters: map[*parked]bool{}, shut: make(chan struct{}),
	}
}

// join begins to tell a waiter; the watch stands when it returns.
func (w *waker) join() (*parked, error) {
	w.arming <- struct{}{}
	defer func() { <-w.arming }()
	p := &parked{told: make(chan struct{}, 1)}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return nil, queue.ErrClosed
	}
	w.waiters[p] = true
	var recall chan struct{}
	if w.recall == nil {
		recall = make(chan struct{})
		w.recall = recall
		w.posted.Add(1)
	}
	w.mu.Unlock()
	if recall != nil {
		s := &sentry{w: w}
		s.arm()
		go s.stand(recall)
	}
	return p, nil
}

// leave ends what join began.
func (w *waker) leave(p *parked) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiters, p)
	if len(w.waiters) == 0 {
		w.recallSentry()
	}
}

func (w *waker) recallSentry() {
	if w.recall != nil {
		close(w.recall)
		w.recall = nil
	}
}

// close answers everybody who waits with ErrClosed and returns when no sentry stands.
func (w *waker) close() {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.shut)
		w.recallSentry()
	}
	w.mu.Unlock()
	w.posted.Wait()
}

// all lets every waiter look again.
func (w *waker) all() { w.committed(token{}) }

// committed lets every waiter look again that has not seen that commit.
func (w *waker) committed(commit token) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.waiters {
		p.tell(commit)
	}
}

// tell is called under waker.mu.
func (p *parked) tell(commit token) {
	select {
	case p.told <- struct{}{}:
		p.commit = commit
	default:
		if p.commit != commit {
			p.commit = token{}
		}
	}
}

// park waits until p is told to look again.
func (w *waker) park(ctx context.Context, p *parked, saw sight) error {
	w.mu.Lock()
	p.last = saw
	if p.commit == saw.commit {
		select {
		case <-p.told: // of the very commit that it has seen
		default:
		}
	}
	w.mu.Unlock()
	var timer *time.Timer
	var due <-chan time.Time
	if saw.next != 0 {
		timer = time.NewTimer(w.until(saw.next))
		defer timer.Stop()
		due = timer.C
	}
	for {
		select {
		case <-p.told:
			w.wakes.Add(1)
			return nil
		case <-due:
			left := w.until(saw.next)
			if left <= 0 {
				w.wakes.Add(1)
				return nil
			}
			timer.Reset(left) // the clock was set back, or is slower than the timer
		case <-ctx.Done():
			return ctx.Err()
		case <-w.shut:
			return queue.ErrClosed
		}
	}
}

// until gives how far a time, Unix milliseconds, is away by the store's clock.
func (w *waker) until(millis int64) time.Duration {
	return time.UnixMilli(millis).Sub(w.clock.Now().Wall)
}
