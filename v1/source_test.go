//go:build unix

package holdfast

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// openSource opens a source on d.
func (d unitDirs) openSource(t testing.TB, o Options) *Source {
	t.Helper()
	if o.FailedDir == "" {
		o.FailedDir = d.failed
	}
	x, err := OpenSource(d.queue, &o)
	unitOK(t, err)
	t.Cleanup(func() { unitOK(t, x.Close()) })
	return x
}

// sourceText tells a survey in lines.
func sourceText(v Survey) string {
	var b strings.Builder
	for _, e := range v.Entries {
		fmt.Fprintf(&b, "%v %s %s size %d links %d plain %v\n", e.State, e.ID, filepath.Base(e.File), e.Size, e.Links, e.Plain)
	}
	for _, l := range v.Locks {
		fmt.Fprintf(&b, "lock %s of %q by %q, reclaim %v, stale %v\n", l.File, l.ID, l.Owner, l.Reclaim, l.Stale())
	}
	for _, r := range v.Records {
		fmt.Fprintf(&b, "record %s of %q: %s\n", r.File, r.ID, r.Why)
	}
	for _, names := range [][]string{v.Delivered, v.Temps, v.Strays} {
		for i := range names {
			names[i] = filepath.Base(names[i])
		}
		fmt.Fprintln(&b, names)
	}
	return b.String()
}

func TestSourceSurvey(t *testing.T) {
	d := newUnitDirs(t)
	began := time.Now()
	for i, name := range []string{"late.json", "early.json", "c.processing", "s.processing"} {
		unitPut(t, d.at(name), "1")
		at := began.Add(-time.Duration(i) * time.Minute)
		unitOK(t, os.Chtimes(d.at(name), at, at))
	}
	record := func(id string) string { return d.at(retirementsDir, id+".json") }
	for _, id := range []string{"c", "none", "more", "link", "s"} {
		unitOK(t, os.MkdirAll(record(id), 0o700))
	}
	unitPut(t, d.at(retirementsDir, "plain.json"), "1")
	unitPut(t, d.at(retirementsDir, "x"), "1")
	unitPut(t, filepath.Join(record("c"), "entry"), "1")
	unitPut(t, filepath.Join(record("none"), "entry"), "1")
	unitPut(t, filepath.Join(record("more"), "entry"), "1")
	unitPut(t, filepath.Join(record("more"), "other"), "1")
	unitOK(t, os.Symlink("x", filepath.Join(record("link"), "entry")))
	old := namesOf("c").lock
	unitPut(t, d.at(old), "{\"ownerToken\":\"me\",\"createdAt\":\"2020-01-01T00:00:00.000Z\"}")
	fresh := lockPrefix + strings.Repeat("ab", 16) + lockSuffix
	unitPut(t, d.at(fresh), "{")
	unitOK(t, os.Mkdir(d.at(fresh+reclaimSuffix), 0o700), os.Mkdir(d.at("dir.json"), 0o700), os.Symlink("late.json", d.at("sym.json")))
	unitOK(t, os.Link(d.at("late.json"), filepath.Join(d.failed, "late.json")))
	for _, name := range []string{"gone.delivered", "a.1.x.tmp", "notes", "ä.json", markerFile} {
		unitPut(t, d.at(name), "1")
	}
	unitPut(t, filepath.Join(d.failed, "junk"), "1")

	v, err := d.openSource(t, Options{}).Survey()
	unitOK(t, err)
	want := fmt.Sprintf(`claimed s s.processing size 1 links 1 plain true
claimed c c.processing size 1 links 1 plain true
pending early early.json size 1 links 1 plain true
pending late late.json size 1 links 2 plain true
failed late late.json size 1 links 2 plain true
lock %[1]s of "c" by "me", reclaim false, stale true
lock %[2]s of "" by "", reclaim false, stale false
lock %[2]s.reclaim of "" by "", reclaim true, stale false
record .fs-safe-retirements/c.json of "c": 
record .fs-safe-retirements/link.json of "link": its entry is not a plain file
record .fs-safe-retirements/more.json of "more": it holds something else than one entry
record .fs-safe-retirements/none.json of "none": it stands beside no claim
record .fs-safe-retirements/plain.json of "plain": it is no directory
record .fs-safe-retirements/s.json of "s": 
record .fs-safe-retirements/x of "": its name is no entry's
[gone.delivered]
[a.1.x.tmp]
[dir.json notes sym.json ä.json junk]
`, old, fresh)
	if old > fresh { // by name
		lines := strings.SplitAfter(want, "\n")
		lines[5], lines[6], lines[7] = lines[6], lines[7], lines[5]
		want = strings.Join(lines, "")
	}
	if got := sourceText(v); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Recover finishes whatever was cut off, by either route, and by RenameNoReplace without
// a link.
func TestSourceRecover(t *testing.T) {
	for name, c := range map[string]struct {
		set           func(d unitDirs)
		queue, failed string
	}{
		"a claim with two names": {func(d unitDirs) {
			unitPut(t, d.at("a.processing"), "1")
			unitOK(t, os.Link(d.at("a.processing"), d.at("a.json")))
		}, "a.processing=1", ""},
		"a record that holds the claim": {func(d unitDirs) {
			unitPut(t, d.at("a.processing"), "1")
			unitOK(t, os.MkdirAll(d.at(retirementsDir, "a.json"), 0o700), os.Link(d.at("a.processing"), d.at(retirementsDir, "a.json", "entry")))
		}, "a.processing=1", ""},
		"a record that holds a newer entry": {func(d unitDirs) {
			unitPut(t, d.at("a.processing"), "1")
			unitOK(t, os.MkdirAll(d.at(retirementsDir, "a.json"), 0o700))
			unitPut(t, d.at(retirementsDir, "a.json", "entry"), "2")
		}, "a.json=2 a.processing=1", ""},
		"an empty record": {func(d unitDirs) {
			unitPut(t, d.at("a.json"), "1")
			unitOK(t, os.MkdirAll(d.at(retirementsDir, "a.json"), 0o700))
		}, "a.json=1", ""},
		"a quarantine with two names": {func(d unitDirs) {
			unitPut(t, d.at("a.processing"), "1")
			unitOK(t, os.Link(d.at("a.processing"), filepath.Join(d.failed, "a.json")))
		}, "", "a.json=1"},
		"nothing": {func(d unitDirs) { unitPut(t, d.at("a.json"), "1") }, "a.json=1", ""},
	} {
		for _, route := range []Route{HardLink, RenameNoReplace} {
			t.Run(name+" by "+route.String(), func(t *testing.T) {
				d := newUnitDirs(t)
				c.set(d)
				noLink := crashtest.FailMatching(func(op fsguard.Op, _ string) bool { return op == fsguard.OpLink && route == RenameNoReplace }, syscall.EACCES, 0)
				x := d.openSource(t, Options{ClaimBy: route, fs: crashtest.Wrap(fsguard.OS(), noLink)})
				for range 2 {
					unitOK(t, x.Recover(context.Background(), "a"), x.Sync())
					if got := strings.TrimSuffix(sourceFiles(t, d.queue), " "); got != c.queue {
						t.Errorf("queue: %q, want %q", got, c.queue)
					}
					if got := sourceFiles(t, d.failed); got != c.failed {
						t.Errorf("failed: %q, want %q", got, c.failed)
					}
				}
			})
		}
	}
}

// sourceFiles lists the plain files of a directory and what is in them.
func sourceFiles(t testing.TB, dir string) string {
	t.Helper()
	listed, err := os.ReadDir(dir)
	unitOK(t, err)
	var out []string
	for _, e := range listed {
		if e.Type().IsRegular() {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			unitOK(t, err)
			out = append(out, e.Name()+"="+string(text))
		}
	}
	return strings.Join(out, " ")
}

// Reading and removing are of the very file that was found.
func TestSourceReadAndRemove(t *testing.T) {
	for name, swap := range map[string]func(path string) error{
		"another file of the same bytes": func(path string) error {
			return errors.Join(os.WriteFile(path+"2", []byte("1"), 0o600), os.Rename(path+"2", path))
		},
		"other bytes in it": func(path string) error { return os.WriteFile(path, []byte("22"), 0o600) },
		"a symlink":         func(path string) error { return errors.Join(os.Remove(path), os.Symlink("b", path)) },
		"a second link":     func(path string) error { return os.Link(path, path+"2") },
	} {
		for _, state := range []EntryState{EntryPending, EntryClaimed, EntryFailed} {
			t.Run(name+", "+state.String(), func(t *testing.T) {
				d := newUnitDirs(t)
				x := d.openSource(t, Options{})
				path := filepath.Join(d.queue, x.File("a", state))
				if state == EntryFailed {
					path = x.File("a", state)
				}
				unitPut(t, path, "1")
				v, err := x.Survey()
				unitOK(t, err)
				e := v.Entries[0]
				if e.File != x.File("a", state) || e.State != state {
					t.Fatalf("found %+v", e)
				}
				got, err := x.Read(e)
				if unitOK(t, err); string(got) != "1" {
					t.Errorf("read %q", got)
				}
				if removed, err := x.Remove(e, sha256.Sum256([]byte("2"))); removed || !errors.Is(err, ErrChanged) {
					t.Errorf("removed %v with another sum: %v", removed, err)
				}
				unitOK(t, swap(path))
				before := d.tree(t)
				if got, err := x.Read(e); err == nil {
					t.Errorf("read %q", got)
				}
				if removed, err := x.Remove(e, sha256.Sum256([]byte("1"))); removed || err == nil {
					t.Errorf("removed %v", removed)
				}
				if after := d.tree(t); after != before {
					t.Errorf("changed to\n%s", after)
				}
			})
		}
	}
	d := newUnitDirs(t)
	x := d.openSource(t, Options{})
	unitPut(t, d.at("a.json"), "1")
	v, err := x.Survey()
	unitOK(t, err)
	for i, want := range []bool{true, false} {
		if removed, err := x.Remove(v.Entries[0], sha256.Sum256([]byte("1"))); removed != want || err != nil {
			t.Errorf("try %d: removed %v, %v", i, removed, err)
		}
	}
	d.wantNames(t, "", "")
}

func TestSourceRemoveLock(t *testing.T) {
	d := newUnitDirs(t)
	x := d.openSource(t, Options{})
	name := namesOf("a").lock
	unitPut(t, d.at(name), "{\"ownerToken\":\"me\",\"createdAt\":\"2020-01-01T00:00:00.000Z\"}")
	unitOK(t, os.Mkdir(d.at(name+reclaimSuffix), 0o700))
	unitPut(t, d.at("a.json"), "1")
	for _, bad := range []string{"a.json", "", ".fs-safe-transfer-x.lock", "../" + name, name + ".x"} {
		if _, err := x.RemoveLock(bad); !errors.Is(err, ErrInvalidPath) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	v, err := x.Survey()
	unitOK(t, err)
	l, err := x.RemoveLock(name)
	if unitOK(t, err); l.Owner != "me" || !l.Stale() || l.ID != "a" || v.Locks[0].ID != "a" {
		t.Errorf("removed %+v of %+v", l, v.Locks)
	}
	l, err = x.RemoveLock(name + reclaimSuffix)
	if unitOK(t, err); !l.Reclaim || l.Stale() || l.ID != "a" {
		t.Errorf("removed %+v", l)
	}
	if _, err := x.RemoveLock(name); !errors.Is(err, ErrNotFound) {
		t.Errorf("again: %v", err)
	}
	d.wantNames(t, "a.json 1", "")
}

// One importer at a time; v1's own programs are kept off by the marker alone.
func TestSourceMarker(t *testing.T) {
	d := newUnitDirs(t)
	x := d.openSource(t, Options{})
	if _, there, err := x.Marker(); there || err != nil {
		t.Errorf("none: %v, %v", there, err)
	}
	for _, text := range []string{"one", "another"} {
		unitOK(t, x.SetMarker([]byte(text)))
		if got, there, err := x.Marker(); string(got) != text || !there || err != nil {
			t.Errorf("got %q, %v, %v", got, there, err)
		}
	}
	if _, err := Open(d.queue, nil); !errors.Is(err, ErrImported) {
		t.Errorf("opened: %v", err)
	}
	other := d.openSource(t, Options{})
	unitOK(t, x.Hold())
	if err := other.Hold(); !errors.Is(err, ErrSourceBusy) {
		t.Errorf("held twice: %v", err)
	}
	unitOK(t, x.RemoveMarker(), x.RemoveMarker())
	s, err := Open(d.queue, nil)
	unitOK(t, err, s.Close())
	d.wantNames(t, "", "")
}

// The failed directory has a marker of its own, which keeps no program off it.
func TestSourceFailedMarker(t *testing.T) {
	d := newUnitDirs(t)
	none, err := OpenSource(d.queue, nil)
	unitOK(t, err)
	if err := none.SetFailedMarker([]byte("x")); !errors.Is(err, ErrNoFailedDir) {
		t.Errorf("without a failed directory: %v", err)
	}
	_, there, err := none.FailedMarker()
	if unitOK(t, err, none.RemoveFailedMarker(), none.Close()); there {
		t.Error("a marker without a failed directory")
	}
	x := d.openSource(t, Options{FailedDir: d.failed})
	if _, there, err := x.FailedMarker(); there || err != nil {
		t.Errorf("none: %v, %v", there, err)
	}
	unitOK(t, x.SetFailedMarker([]byte("one")))
	got, there, err := x.FailedMarker()
	if unitOK(t, err); string(got) != "one" || !there {
		t.Errorf("got %q, %v", got, there)
	}
	if _, there, err := x.Marker(); there || err != nil {
		t.Errorf("of the queue directory: %v, %v", there, err)
	}
	s, err := Open(d.queue, &Options{FailedDir: d.failed})
	unitOK(t, err, s.Close())
	v, err := x.Survey()
	if unitOK(t, err); len(v.Strays)+len(v.Misplaced) > 0 {
		t.Errorf("the marker is told as %v, %v", v.Strays, v.Misplaced)
	}
	other := unitDirs{t.TempDir(), d.failed}.openSource(t, Options{})
	unitOK(t, x.Hold())
	if err := other.Hold(); !errors.Is(err, ErrSourceBusy) {
		t.Errorf("the failed directory was held twice: %v", err)
	}
	unitOK(t, x.RemoveFailedMarker(), x.RemoveFailedMarker())
	d.wantNames(t, "", "")
}

func TestSourceTellsDirectoriesApart(t *testing.T) {
	lock := namesOf("a").lock
	for _, try := range []struct {
		names  []string
		queue  bool // only a queue directory has one of them
		looks  bool
		inFail int // names that are in the way in a failed directory
	}{
		{nil, false, false, 0},
		{[]string{"a.json"}, false, true, 0},
		{[]string{"a.json", "b.1.2.tmp"}, false, true, 0},
		{[]string{"b.1.2.tmp"}, false, false, 0},
		{[]string{"package.json", "README"}, false, false, 0},
		{[]string{"a.processing", "README"}, true, true, 1},
		{[]string{"a.delivered"}, true, true, 1},
		{[]string{lock}, true, true, 1},
		{[]string{lock + reclaimSuffix}, true, true, 1},
		{[]string{retirementsDir}, true, true, 1},
		{[]string{markerFile}, false, true, 0},
		{[]string{".processing", "x.lock"}, false, false, 0},
	} {
		t.Run(strings.Join(try.names, " "), func(t *testing.T) {
			d := newUnitDirs(t)
			for _, name := range try.names {
				for _, path := range []string{d.at(name), filepath.Join(d.failed, name)} {
					if name == retirementsDir {
						unitOK(t, os.Mkdir(path, 0o700))
					} else {
						unitPut(t, path, "1")
					}
				}
			}
			v, err := d.openSource(t, Options{FailedDir: d.failed}).Survey()
			if unitOK(t, err); v.Queue != try.queue || len(v.Misplaced) != try.inFail {
				t.Errorf("queue %v, misplaced %v; want %v, %d", v.Queue, v.Misplaced, try.queue, try.inFail)
			}
			if got := LooksLikeQueue(try.names); got != try.looks {
				t.Errorf("looks %v, want %v", got, try.looks)
			}
		})
	}
}
