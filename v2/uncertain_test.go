//go:build unix

package holdfast

import (
	"path/filepath"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/testrun"
)

func isCommit(path string) bool { return filepath.Base(path) == stateFile }

// Every kind of commit whose last sync fails, whether it had made the rename durable or
// not. The process is told and goes on: it asks Resolve, and calls again what did not
// happen. Or it is told and ends, with the doubt left to the next; or it dies before it
// was told, before and after it has left word. In each case what the next process finds,
// what every one after it finds, and what Resolve says are the same.
func TestUncertain(t *testing.T) {
	for _, ends := range []struct {
		name         string
		leave, quiet bool
	}{{"told, and goes on", false, false}, {"told, and ends", true, false}, {"told, and the next only looks", true, true}} {
		t.Run(ends.name, func(t *testing.T) {
			for _, c := range crashScenarios {
				if ends.quiet && !testrun.Thorough() || raceDetector() && c.name != "enqueue" && c.name != "update" {
					continue // explored in CI, or without the race detector
				}
				if ofRuns(c) && c.name != "run-seal" && c.name != "run-claim" && c.name != "run-update" {
					continue // their commits name runs as these do
				}
				c.leave, c.quiet, c.named = ends.leave, ends.quiet, true
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					o := crashtest.Options{MaxImages: 16, AfterCheck: 4, Uneven: true, Errnos: []syscall.Errno{syscall.EIO}}
					stats := crashtest.ExploreUncertain(t, c.scenario(t), smaller(o), isCommit)
					if least := 1 + 2*len(c.steps); stats.Points < least && !replaying() && !raceDetector() {
						t.Errorf("%d points in %d steps, want %d at least: a commit was not met", stats.Points, len(c.steps), least)
					}
				})
			}
		})
	}
}
