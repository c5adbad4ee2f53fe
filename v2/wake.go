//go:build unix

package holdfast

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// How often state.json is looked at by its path while somebody waits: one system
// call, no lock, nothing read.
const (
	// pollBehindEvents is for what a watch cannot tell: that the store was moved away
	// or changed through another mount, and that the clock was set.
	pollBehindEvents = 30 * time.Second

	// pollWithoutEvents is for where there is no watch: the filesystem or the system
	// has none, or its limits are used up.
	pollWithoutEvents = time.Second
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

// A parked is one call that waits.
type parked struct {
	told   chan struct{} // of capacity 1: look again
	commit token         // why: that commit; zero: for another reason, or several
	last   sight
}

// A sight is what a look saw.
type sight struct {
	commit token        // of the state; zero: it was not committed yet
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

// join begins to tell a waiter.
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
	first := w.recall == nil
	recall := w.recall
	if first {
		recall = make(chan struct{})
		w.recall = recall
		w.posted.Add(1)
	}
	w.mu.Unlock()
	if first {
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
	if !p.commit.zero() && p.commit == saw.commit {
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

// A sentry tells the waiters of a waker what happens outside this handle.
type sentry struct {
	w      *waker
	watch  fsguard.Watch // nil: there is none
	never  bool          // there is no use in trying again
	missed int           // polls since a watch could not be made
}

// arm makes a watch, or notes that there is none.
func (s *sentry) arm() {
	s.w.watches.Add(1)
	s.missed = 0
	var err error
	if s.watch, err = s.w.fs.Watch(s.w.space, stateFile); err != nil {
		s.watch = nil
		s.never = errors.Is(err, errors.ErrUnsupported)
	}
}

func (s *sentry) disarm() {
	if s.watch != nil {
		_ = s.watch.Close() // nothing is lost by its failing
		s.watch = nil
	}
}

func (s *sentry) interval() time.Duration {
	if s.watch != nil && s.watch.Sure() {
		return pollBehindEvents
	}
	return pollWithoutEvents
}

// stand is the sentry's goroutine, until it is recalled.
func (s *sentry) stand(recall <-chan struct{}) {
	defer s.w.posted.Done()
	defer s.disarm()
	var poll *time.Timer
	var ticks <-chan time.Time
	if !s.w.pollOff {
		poll = time.NewTimer(s.interval())
		defer poll.Stop()
		ticks = poll.C
	}
	for {
		var events <-chan struct{}
		if s.watch != nil {
			events = s.watch.C()
		}
		select {
		case <-recall:
			return
		case <-events:
			s.renew()
			s.w.all()
		case <-ticks:
			s.poll()
		}
		if poll != nil {
			poll.Reset(s.interval())
		}
	}
}

// renew puts another watch in the place of one that was lost.
func (s *sentry) renew() bool {
	if s.watch == nil || !s.watch.Lost() {
		return false
	}
	s.disarm()
	s.arm()
	return true
}

// poll tells the waiters that have seen another state.json than the one that stands
// there now, and those whose time has come by the clock, which may have been set.
func (s *sentry) poll() {
	w := s.w
	w.polls.Add(1)
	renewed := s.renew()
	if s.watch == nil && !s.never {
		if s.missed++; time.Duration(s.missed)*pollWithoutEvents >= pollBehindEvents {
			s.arm()
			renewed = s.watch != nil
		}
	}
	file, err := w.fs.Stat(filepath.Join(w.space, stateFile))
	now := w.clock.Now().millis()
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.waiters {
		saw := p.last
		// A young file may have been replaced twice within one tick of the filesystem's
		// clock, the second time by one that was given its inode number: the two look the
		// same. Where a watch has told of both that is no matter.
		blind := saw.young && (s.watch == nil || !s.watch.Sure())
		if renewed || err != nil || blind || !sameFile(file, saw.file) || saw.next != 0 && now >= saw.next {
			p.tell(token{})
		}
	}
}

func sameFile(a, b fsguard.Info) bool {
	return a.Identity == b.Identity && a.CtimeNanos == b.CtimeNanos && a.Size == b.Size
}

// youngFile is more than one tick of any filesystem's clock.
const youngFile = 2 * time.Second

// young reports whether file had only just been made by the filesystem's clock.
func young(file fsguard.Info) bool {
	return time.Since(time.Unix(0, file.CtimeNanos)).Abs() < youngFile
}
