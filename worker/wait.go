package worker

import (
	"context"
	"slices"
	"time"
)

// The worker rests for vainPause before it waits again once the store said this many
// times in a row that something is due and no claim found it: others were faster, or
// the store errs. It keeps either from becoming a spin.
const (
	maxVain   = 3
	vainPause = 50 * time.Millisecond
)

// A watch is a call of WaitDue under way. It goes on while handlers run and answers
// are settled: what it waits for does not change by that.
type watch struct {
	names  []string
	cancel context.CancelFunc
	ended  bool // by us
}

// watch sees to it that the store tells when something becomes due in the sources
// that had nothing. It is the only way in which the worker learns of new messages.
func (w *worker) watch() {
	var dry []string
	if w.phase == running {
		for _, s := range w.sources {
			if s.dry {
				dry = append(dry, s.name)
			}
		}
	}
	if w.watching != nil {
		for _, name := range dry {
			if !slices.Contains(w.watching.names, name) {
				w.unwatch() // and begin anew when it has returned
			}
		}
		return
	}
	if len(dry) == 0 || !w.due(w.waiting.after) {
		return
	}
	ctx, cancel := context.WithCancel(w.soft)
	w.watching = &watch{names: dry, cancel: cancel}
	go func() { w.woken <- w.store.WaitDue(ctx, dry...) }()
}

func (w *worker) unwatch() {
	if w.watching != nil {
		w.watching.ended = true
		w.watching.cancel()
	}
}

// awake takes what WaitDue returned.
func (w *worker) awake(err error) {
	ended := w.watching
	w.watching = nil
	ended.cancel()
	switch {
	case err == nil:
		w.waiting.reset()
		for _, s := range w.sources {
			if slices.Contains(ended.names, s.name) {
				s.dry = false
			}
		}
		if w.vain++; w.vain > maxVain {
			w.waiting.after = w.now.Add(vainPause)
		}
	case ended.ended || cutOff(w.soft, err):
	default:
		w.failed("wait", &w.waiting, err)
	}
}
