//go:build unix

package holdfast

import (
	"os"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

func TestStatus(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		s, d := newUnitStore(t, w)
		want := func(want Status) {
			t.Helper()
			before := d.tree(t)
			got, err := s.Status(t.Context())
			if err != nil || got != want {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
			unitUnchanged(t, before, d.tree(t))
		}
		want(Status{})
		unitPut(t, d.at("a.json"), `1`)
		unitPut(t, d.at("b.json"), `{`) // no JSON, but an entry
		want(Status{Pending: 2})
		unitPut(t, d.at("c.processing"), `1`)
		unitPut(t, d.at("c.json"), `2`)
		want(Status{Pending: 3, Processing: 1})
		unitOK(t, os.Link(d.at("c.processing"), d.at("d.processing")), os.Link(d.at("c.processing"), d.at("d.json")))
		want(Status{Pending: 4, Processing: 2})
		unitPut(t, d.at("e.delivered"), ``)
		unitPut(t, d.at(namesOf("a").lock), ``)
		unitPut(t, d.at(namesOf("a").lock+reclaimSuffix), ``)
		unitPut(t, d.at("x.1.y.tmp"), ``)
		unitOK(t, os.MkdirAll(d.at(retirementsDir, "a.json"), 0o700))
		unitPut(t, d.at(retirementsDir, "a.json", retiredEntry), ``)
		unitPut(t, d.failed+"/f.json", ``)
		unitPut(t, d.failed+"/g.processing", ``)
		unitPut(t, d.failed+"/h.tmp", ``)
		unitPut(t, d.at(".x.json"), ``)
		want(Status{Pending: 4, Processing: 2, Failed: 1, Delivered: 1, Retirements: true, Locks: 2, Temporary: 1})
	})
}

// What cannot be listed or looked at is an error and not a zero.
func TestStatusFails(t *testing.T) {
	for _, c := range []struct {
		op   fsguard.Op
		path string
		n    int // of the matching operations, the one that fails
	}{
		{fsguard.OpReadDir, ".", 1}, {fsguard.OpReadDir, ".", 2}, {fsguard.OpLstat, "a.json", 1}, {fsguard.OpLstat, "f.json", 1}, {fsguard.OpOpenDir, ".", 1}, {fsguard.OpStat, "", 1}, {fsguard.OpStat, "", 2},
	} {
		d := newUnitDirs(t)
		w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
		s := d.open(t, unitWay{Auto, HardLink}, Options{fs: w})
		unitPut(t, d.at("a.json"), `1`)
		unitPut(t, d.failed+"/f.json", `1`)
		seen := 0
		w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool {
			if op != c.op || c.path != "" && path != c.path {
				return false
			}
			seen++
			return seen == c.n
		}, syscall.EIO, 1))
		st, err := s.Status(t.Context())
		unitIs(t, string(c.op)+" "+c.path, err, syscall.EIO)
		if st.Failed > 0 || !w.Fired() {
			t.Errorf("%s %s: %+v, fired %t", c.op, c.path, st, w.Fired())
		}
		w.Arm(crashtest.Plan{})
		if st, err := s.Status(t.Context()); err != nil || st != (Status{Pending: 1, Failed: 1}) {
			t.Errorf("afterwards %+v, %v", st, err)
		}
		if open := w.Open(); len(open) != 2 {
			t.Errorf("left open: %q", open)
		}
	}
}

// An entry that goes away between the listing and the look counts as the listing has it.
func TestStatusOfWhatGoes(t *testing.T) {
	d := newUnitDirs(t)
	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s := d.open(t, unitWay{Auto, HardLink}, Options{fs: w})
	unitPut(t, d.at("a.json"), `1`)
	unitPut(t, d.at("b.json"), `1`)
	w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		if op == fsguard.OpLstat && path == "a.json" {
			unitOK(t, os.Remove(d.at("b.json")))
		}
		return false
	}, nil, 0))
	if st, err := s.Status(t.Context()); err != nil || st.Pending != 2 {
		t.Errorf("status %+v, %v", st, err)
	}
}
