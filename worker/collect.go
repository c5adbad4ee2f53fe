package worker

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// collecting lets Collect be called every CollectEvery, beside the loop: it may take its
// time, and renewals must not wait for it. The function it gives begins the drain's end of
// it, and waits for one that is under way.
func (w *worker) collecting() (end func()) {
	var calls sync.WaitGroup
	if w.o.CollectEvery > 0 {
		calls.Go(w.collect)
	}
	return func() {
		w.stop()
		calls.Wait()
	}
}

// collect ends when the drain begins.
func (w *worker) collect() {
	for {
		spread := w.o.CollectEvery / 10
		timer := time.NewTimer(w.o.CollectEvery - spread + w.o.seams.draw(2*spread))
		select {
		case <-w.soft.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		if err := w.collectOnce(); err != nil && !cutOff(w.soft, err) {
			w.o.Logger.WarnContext(w.base, "collecting failed: it is tried again when its time comes", "error", err)
		}
	}
}

var errCollectPanicked = errors.New("the collection panicked")

func (w *worker) collectOnce() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errCollectPanicked, p, debug.Stack())
		}
	}()
	return w.o.Collect(w.soft)
}
