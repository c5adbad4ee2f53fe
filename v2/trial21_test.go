//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/history"
	"example.com/holdfast/queue"
)

// trial21Operations are more than an enqueue has, so that some are not killed.
const trial21Operations = 18

// T21, the kills: two hundred enqueues into one store, each killed at a step of its own,
// before and after each in turn. Nothing that is referenced is gone; of what was cut off
// there is an object too many at most, and collecting takes these and nothing else.
func TestTrial21KilledEnqueues(t *testing.T) {
	t.Parallel()
	kills := 8 // fewer would meet no commit
	if testrun.Thorough() && !testing.Short() && !raceDetector() {
		kills = 200
	}
	s, dir := newTestStore(t, nil)
	var there, cut []string
	died := 0
	for i := 0; died < kills; i++ {
		id := fmt.Sprint("k", i)
		step := history.Step{Op: history.Enqueue, Queue: "mail", IDs: []string{id}}
		when := []string{"before", "after"}[i%2]
		p := start(t, "die at", dir, when, fmt.Sprint(1+(i*7/2)%trial21Operations), jsonOf(step))
		lines, err := p.Rest()
		switch {
		case err == nil && len(lines) == 1:
		case killedBy(err) == syscall.SIGKILL && len(lines) == 0:
			died++
		default:
			t.Fatalf("enqueue %d: %v %q", i, err, lines)
		}
		if killedBy(err) == syscall.SIGKILL {
			afterDeath(t, s, p.Cmd.Process.Pid)
		}
		_, shown := s.Show(t.Context(), "mail", id)
		switch {
		case shown == nil:
			there = append(there, id)
		case errors.Is(shown, queue.ErrNotFound) && err != nil:
			cut = append(cut, id)
		default:
			t.Fatalf("enqueue %d: answered %v, show %v", i, err == nil, shown)
		}
	}
	r, err := s.Verify(t.Context(), VerifyOptions{})
	if err != nil || !r.OK || r.Orphans > int64(len(cut)) {
		t.Errorf("verify after %d that were cut off: %+v %v", len(cut), r, err)
	}
	if len(there) == 0 || len(cut) == 0 || r.Orphans == 0 {
		t.Errorf("%d there, %d cut off, %d orphans: too few", len(there), len(cut), r.Orphans)
	}
	c, err := s.Collect(t.Context(), CollectOptions{})
	if err != nil || c.Objects != r.Orphans || c.Bytes != r.OrphanBytes || c.Named != r.Objects || len(c.Kept) > 0 {
		t.Errorf("collect: %+v, %v; want the orphans of %+v", c, err, r)
	}
	mustBeClean(t, s, 0, 0)
	for _, id := range cut { // the same call again
		if _, err := history.Perform(t.Context(), s, history.Step{Op: history.Enqueue, Queue: "mail", IDs: []string{id}}); err != nil {
			t.Error(err)
		}
	}
	got := map[string]bool{}
	for _, d := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: len(there) + len(cut) + 1}) {
		if got[d.Receipt.ID] = true; string(d.Payload) != string(payloadOf(d.Receipt.ID)) {
			t.Errorf("%s: %s", d.Receipt.ID, d.Payload)
		}
	}
	for _, id := range append(there, cut...) {
		if !got[id] {
			t.Errorf("%s is gone", id)
		}
	}
	t.Logf("%d killed: %d had happened or were answered, %d not, %d orphans", died, len(there), len(cut), r.Orphans)
}
