//go:build linux

package holdfast

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// expected reports whether rivals explain that a call failed. A lock of a dead process
// does where one was killed.
func (e interopEvent) expected(kills bool) bool {
	if kills && (e.Code == string(ErrLockStale) || e.What == "pending" && strings.Contains(e.Message, string(ErrLockStale))) {
		return true
	}
	switch e.What {
	case "enqueue":
		// The package looks again at what it wrote: it may be claimed, or gone.
		return strings.HasPrefix(e.by, "javascript") && (e.Code == string(ErrPathMismatch) || e.Code == "hardlink")
	case "load":
		// Set aside between the claim and the reading, or settled before its migration.
		return e.Code == string(ErrPathMismatch) || e.Code == ErrChanged.Error() ||
			strings.Contains(e.Message, "hardlinks are not allowed") || strings.Contains(e.Message, "changed during read") ||
			strings.Contains(e.Message, ErrChanged.Error())
	case "ack":
		// Somebody else settled it, and a newer one has come; or it was migrated.
		return e.Code == string(ErrPathMismatch)
	case "fail":
		return e.Code == string(ErrPathMismatch) || e.Code == string(ErrAlreadyExists) || e.Code == "ENOENT"
	}
	return false
}

// An interopLife is what became of a generation.
type interopLife struct {
	enqueues, loads, settled []interopEvent
}

// judge puts the journals together. killed: how many consumers were killed, each in the
// middle of one call at most.
func (r *interopRun) judge(killed int) {
	t := r.t
	lives := map[int]*interopLife{}
	for gen := range r.written {
		lives[gen] = &interopLife{}
	}
	counts := map[string]int{}
	for _, e := range r.events {
		what := e.by + ": " + e.What
		if e.Code != "" {
			what += ", " + e.Code
			if !e.expected(*interopKills > 0) {
				t.Errorf("%s of %s: %s: %s", what, e.ID, e.Code, e.Message)
			}
		}
		counts[what]++
		life := lives[e.Gen]
		switch {
		case e.What == "pending", e.Gen == 0, e.Code != "" && e.What != "enqueue":
			continue
		case life == nil || r.written[e.Gen] != e.ID:
			t.Errorf("%s of %s: generation %d, which nobody wrote there", what, e.ID, e.Gen)
			continue
		}
		switch e.What {
		case "enqueue":
			life.enqueues = append(life.enqueues, e)
		case "load":
			life.loads = append(life.loads, e)
		default:
			life.settled = append(life.settled, e)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%5d  %s", counts[what], what)
	}
	failed := r.evidence()
	outcomes, unknown := map[string]int{}, 0
	for gen, life := range lives {
		id := r.written[gen]
		what := life.outcome(failed[gen])
		if what == "" && len(life.loads) == 0 && r.first[gen] {
			what = "superseded" // by the second of its pair
		}
		if what == "" && len(life.loads) > 0 && unknown < killed {
			unknown++ // settled by the call in which its consumer died
			what = "settled by a process that was killed"
		}
		if what == "" {
			t.Errorf("generation %d of %s is lost: %+v", gen, id, life)
		}
		outcomes[what]++
		for _, s := range life.settled {
			for _, l := range life.loads {
				if l.Begin > s.End {
					t.Errorf("generation %d of %s: loaded by %s after it was settled by %s", gen, id, l.by, s.by)
				}
			}
		}
	}
	r.exclusive(lives, killed > 0)
	t.Logf("of %d written: %v", len(lives), outcomes)
	for _, side := range []string{"javascript 0", "javascript 1", "go by links", "go by renames"} {
		if counts[side+": load"] == 0 {
			t.Errorf("%s loaded nothing: the test proves little", side)
		}
	}
}

// outcome is how a generation ended, if that is known.
func (l *interopLife) outcome(failed bool) string {
	switch {
	case failed:
		return "failed"
	case len(l.settled) > 0:
		return "acknowledged"
	case len(l.enqueues) == 0 && len(l.loads) == 0:
		return "not written" // its producer was killed
	case len(l.loads) == 0 && l.enqueues[0].Code != "":
		return "not known to be written"
	}
	return ""
}

// evidence lists the generations in the failed directory.
func (r *interopRun) evidence() map[int]bool {
	list, err := os.ReadDir(r.d.Failed)
	interopOK(r.t, err)
	failed := map[int]bool{}
	for _, e := range list {
		text, err := os.ReadFile(filepath.Join(r.d.Failed, e.Name()))
		interopOK(r.t, err)
		var entry interopEntry
		if err := json.Unmarshal(text, &entry); err != nil || entry.ID+pendingSuffix != e.Name() || r.written[entry.Gen] != entry.ID {
			r.t.Errorf("failed: %s holds %q: %v", e.Name(), text, err)
		}
		failed[entry.Gen] = true
	}
	return failed
}

// exclusive checks that no ID was claimed as two generations at a time: between loads of
// one and of another somebody began to settle the first.
func (r *interopRun) exclusive(lives map[int]*interopLife, kills bool) {
	loads := map[string][]interopEvent{}
	for _, l := range lives {
		for _, e := range l.loads {
			loads[e.ID] = append(loads[e.ID], e)
		}
	}
	changes := 0
	for id, list := range loads {
		for _, a := range list {
			for _, b := range list {
				if a.Gen == b.Gen || a.End >= b.Begin {
					continue
				}
				changes++
				settled := lives[a.Gen].settled
				if !slices.ContainsFunc(settled, func(s interopEvent) bool { return s.Begin < b.End }) && !(kills && len(settled) == 0) {
					r.t.Errorf("%s: %s loaded %d, then %s loaded %d, and nobody had settled the first: %s", id, a.by, a.Gen, b.by, b.Gen, fmt.Sprint(settled))
				}
			}
		}
	}
	if changes == 0 {
		r.t.Error("no ID was ever loaded as two generations: the test proves little")
	}
}
