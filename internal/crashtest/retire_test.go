//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// retireScenario is a toy protocol of links and moves: the message A is claimed by a
// link, the old name moves into a record directory made for it, and then the claim
// and the record are removed. A bug is planted by name; "" is the right one.
func retireScenario(bug string) Scenario {
	return Scenario{
		Name: "retire",
		Setup: func(_ testing.TB, d *Disk) {
			d.MkdirAll("/store/records")
			d.MkdirAll("/store/claims")
			d.WriteRaw("/store/a", []byte("A"))
		},
		Run: func(fs fsguard.FS, j *Journal) {
			if r, err := openRetirer(fs, bug); err == nil {
				_ = r.run(j)
			}
		},
		Check: func(_ testing.TB, fs fsguard.FS, j *Journal) error {
			r, err := openRetirer(fs, bug)
			if err != nil {
				return err
			}
			return r.check(j)
		},
	}
}

type retirer struct {
	bug                   string
	root, records, claims fsguard.Dir
}

func openRetirer(fs fsguard.FS, bug string) (r retirer, err error) {
	r.bug = bug
	if r.root, err = fs.OpenRoot("/store"); err == nil {
		r.records, err = r.root.OpenDir("records")
	}
	if err == nil {
		r.claims, err = r.root.OpenDir("claims")
	}
	return r, err
}

// unless does the step, if it is not left out by the bug of that name.
func (r retirer) unless(bug string, step func() error) error {
	if r.bug == bug {
		return nil
	}
	return step()
}

func (r retirer) run(j *Journal) error {
	var record fsguard.Dir
	for _, step := range []func() error{
		func() error { j.Begin("claimed", nil); return r.root.Link("a", r.claims, "a") },
		func() error { return r.unless("claim not synced", r.claims.Sync) },
		func() error { j.Ack("claimed", nil); return r.records.Mkdir("r") },
		func() (err error) { record, err = r.records.OpenDir("r"); return err },
		func() error { j.Begin("retired", nil); return r.root.MoveNew("a", record, "a") },
		func() error { return r.unless("record's name not synced", r.records.Sync) },
		func() error { return r.unless("source not synced", r.root.Sync) },
		func() error { return record.Sync() },
		func() error { j.Ack("retired", nil); j.Begin("done", nil); return record.Remove("a") },
		func() error { return r.unless("removal from the record not synced", record.Sync) },
		func() error { return r.claims.Remove("a") },
		func() error { return r.unless("removal of the claim not synced", r.claims.Sync) },
		func() error { j.Ack("done", nil); return r.records.RemoveDir("r") },
		func() error { return r.records.Sync() },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// check holds what it finds against the journal.
func (r retirer) check(j *Journal) error {
	there := func(d fsguard.Dir, name string) bool {
		_, err := d.Lstat(name)
		return !errors.Is(err, fs.ErrNotExist)
	}
	retired := false
	if record, err := r.records.OpenDir("r"); err == nil {
		retired = there(record, "a")
	}
	pending, claimed := there(r.root, "a"), there(r.claims, "a")
	acked := func(what string) bool { _, ok := j.Last(what, Acked); return ok }
	begun := func(what string) bool { _, ok := j.Last(what, Begun); return ok }
	switch {
	case acked("claimed") && !begun("done") && !acked("done") && !claimed:
		return errors.New("the claim is lost")
	case acked("retired") && pending:
		return errors.New("the old name is back")
	case !begun("done") && !acked("done") && !pending && !retired:
		return errors.New("the message is lost")
	case acked("done") && (pending || claimed || retired):
		return fmt.Errorf("done, and yet pending %v, claimed %v, retired %v", pending, claimed, retired)
	}
	return nil
}

func TestRightRetirementPasses(t *testing.T) {
	stats := Explore(t, retireScenario(""), Options{})
	if !stats.Exhaustive || stats.Images < stats.Points {
		t.Errorf("too little was explored: %v", stats)
	}
	ExploreErrors(t, retireScenario(""), Options{Persistent: true, MaxImages: 16})
}

func TestPlantedBugsOfRetirementAreFound(t *testing.T) {
	for _, c := range []struct{ bug, want string }{
		{"claim not synced", `image=.*the claim is lost`},
		{"record's name not synced", `image=.*the old name is back`},
		{"source not synced", `image=.*the old name is back`},
		{"removal from the record not synced", `image=.*done, and yet pending false, claimed false, retired true`},
		{"removal of the claim not synced", `image=.*done, and yet pending false, claimed true`},
	} {
		t.Run(c.bug, func(t *testing.T) {
			found := finding(t, func(t testing.TB) { Explore(t, retireScenario(c.bug), Options{}) })
			first, _, _ := strings.Cut(found, "\n")
			if !regexp.MustCompile(c.want).MatchString(first) {
				t.Fatalf("found %q, want %s", first, c.want)
			}
			path := regexp.MustCompile(`CRASHTEST_REPLAY='(.*)' go test`).FindStringSubmatch(found)
			t.Setenv("CRASHTEST_REPLAY", path[1])
			again := finding(t, func(t testing.TB) { Explore(t, retireScenario(c.bug), Options{}) })
			if again != found {
				t.Errorf("the replay says\n%s\nthe exploration said\n%s", again, found)
			}
		})
	}
}
