package queuetest

import (
	"runtime"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// An Engine is one empty store under test.
type Engine struct {
	// Store is the store. The suite closes it only to test Close; whatever else must be
	// cleaned up is the caller's, who should close it again.
	Store queue.Store

	// Now reads the engine's clock, which stands still at a whole millisecond, some time
	// between 1971 and 9000, until Advance moves it.
	Now func() time.Time

	// Advance moves the engine's clock forward, and makes parked calls look again if the
	// engine's own timers do not follow that clock.
	Advance func(d time.Duration)

	// Parked says how many calls of Wait and WaitDue are parked now. Nil: nobody can
	// tell, and the suite cannot be sure that a call parked before what should wake it.
	Parked func() int

	// MaxPayloadBytes is the store's bound of one payload. Zero: the default,
	// [queue.DefaultMaxPayloadBytes].
	MaxPayloadBytes int

	// MaxPayloadDepth is the store's bound of nesting. Zero: the default,
	// [queue.DefaultMaxPayloadDepth].
	MaxPayloadDepth int
}

// A trial is one subtest with a store of its own, which it may share out to subtests.
type trial struct {
	name string
	run  func(s *scene)
}

// groups are the suite, each in the file of its name.
var groups = []struct {
	name   string
	trials []trial
}{
	{"enqueue", enqueueTrials},
	{"replace", replaceTrials},
	{"batch", batchTrials},
	{"claim", claimTrials},
	{"order", orderTrials},
	{"load", loadTrials},
	{"settle", settleTrials},
	{"fence", fenceTrials},
	{"retry", retryTrials},
	{"release", releaseTrials},
	{"extend", extendTrials},
	{"fail", failTrials},
	{"reap", reapTrials},
	{"reprocess", reprocessTrials},
	{"matrix", matrixTrials()},
	{"keys", keyTrials},
	{"lanes", laneTrials},
	{"fair", fairTrials},
	{"update", updateTrials},
	{"joint", jointTrials},
	{"undone", undoneTrials},
	{"cursor", cursorTrials},
	{"namespaces", namespaceTrials},
	{"pause", pauseTrials},
	{"clear", clearTrials},
	{"status", statusTrials},
	{"crowd", crowdTrials},
	{"wait", waitTrials},
	{"due", dueTrials},
	{"contexts", contextTrials},
	{"payloads", payloadTrials},
	{"lists", listTrials},
	{"walk", walkTrials},
	{"close", closeTrials},
}

// Run runs the suite. open gives an empty store for each subtest.
func Run(t *testing.T, open func(t *testing.T) Engine) {
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.trials {
				t.Run(c.name, func(t *testing.T) {
					s := newScene(t, open(t))
					c.run(s)
					s.audit()
				})
			}
		})
	}
}

// newScene checks what the suite needs to know of the engine.
func newScene(t *testing.T, e Engine) *scene {
	t.Helper()
	if e.Store == nil || e.Now == nil || e.Advance == nil {
		t.Fatal("the engine lacks Store, Now or Advance")
	}
	if now := e.Now(); !now.Equal(now.Truncate(time.Millisecond)) || now.Year() < 1971 || now.Year() >= 9000 {
		t.Fatalf("the engine's clock begins at %s: want a whole millisecond between 1971 and 9000", now)
	}
	if e.MaxPayloadBytes == 0 {
		e.MaxPayloadBytes = queue.DefaultMaxPayloadBytes
	}
	if e.MaxPayloadDepth == 0 {
		e.MaxPayloadDepth = queue.DefaultMaxPayloadDepth
	}
	return &scene{T: t, Engine: e, ctx: t.Context(), spaces: map[string]bool{"": true}}
}

// yield lets other goroutines run, for what no channel tells.
func yield() {
	for range 100 {
		runtime.Gosched()
	}
}
