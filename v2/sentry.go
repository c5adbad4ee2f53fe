//go:build unix

package holdfast

import (
	"errors"
	"path/filepath"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// How often state.json is looked at by its path while somebody waits: one system
// call, no lock, nothing read.
const (
	// pollBehindEvents is for what a watch cannot tell: that the store was moved away
	// or changed through another mount, and that the clock was set.
	pollBehindEvents = 30 * time.Second

	// pollWithoutEvents is for where there is no watch, because the filesystem or the
	// system has none or its limits are used up, or one that is not sure. One that
	// could not be made is tried again every pollBehindEvents.
	pollWithoutEvents = time.Second
)

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
	if !renewed && s.watch == nil && !s.never {
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
