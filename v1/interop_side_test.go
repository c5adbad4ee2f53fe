//go:build unix

package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// interopDirs are the directories that both sides work on.
type interopDirs struct{ Queue, Failed string }

func newInteropDirs(t testing.TB) interopDirs {
	t.Helper()
	base := t.TempDir()
	d := interopDirs{filepath.Join(base, "q"), filepath.Join(base, "f")}
	interopOK(t, errors.Join(os.Mkdir(d.Queue, 0o700), os.Mkdir(d.Failed, 0o700)))
	return d
}

// clone copies both directories, what has two names included.
func (d interopDirs) clone(t testing.TB) interopDirs {
	t.Helper()
	base, to := filepath.Dir(d.Queue), t.TempDir()
	var links []struct {
		info os.FileInfo
		path string
	}
	err := filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == base {
			return err
		}
		rel, err := filepath.Rel(base, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if e.IsDir() {
			return os.Mkdir(target, 0o700)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		for _, l := range links {
			if os.SameFile(l.info, info) {
				return os.Link(l.path, target)
			}
		}
		links = append(links, struct {
			info os.FileInfo
			path string
		}{info, target})
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
	interopOK(t, err)
	return interopDirs{filepath.Join(to, "q"), filepath.Join(to, "f")}
}

// names lists what stands in the queue directory and the record of retirements.
func (d interopDirs) names(t testing.TB) (names []string) {
	t.Helper()
	err := filepath.WalkDir(d.Queue, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == d.Queue {
			return err
		}
		rel, err := filepath.Rel(d.Queue, path)
		names = append(names, rel)
		return err
	})
	interopOK(t, err)
	return names
}

// picture tells what is seen in both directories, with other names for what has a new
// one every time: two pictures are the same if nobody could tell which was which.
func (d interopDirs) picture(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	var inodes []os.FileInfo
	err := filepath.WalkDir(filepath.Dir(d.Queue), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() && path == filepath.Dir(d.Queue) {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		number := slices.IndexFunc(inodes, func(other os.FileInfo) bool { return os.SameFile(info, other) })
		if number < 0 {
			number = len(inodes)
			inodes = append(inodes, info)
		}
		rel, err := filepath.Rel(filepath.Dir(d.Queue), path)
		content := ""
		switch {
		case e.IsDir():
		case e.Type() == fs.ModeSymlink:
			content = "a symlink"
		case isTemp(e.Name()):
			rel, content = filepath.Join(filepath.Dir(rel), "temporary"), fmt.Sprint(info.Size(), " bytes")
		case isLock(e.Name()):
			content = fmt.Sprint(info.Size(), " bytes")
		default:
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(text)
		}
		fmt.Fprintf(&b, "%s, file %d: %q\n", rel, number, content)
		return err
	})
	interopOK(t, err)
	return b.String()
}

// lock is the one transfer lock that stands, or empty.
func (d interopDirs) lock(t testing.TB) string {
	t.Helper()
	found := slices.DeleteFunc(d.names(t), func(name string) bool { return !isLock(name) })
	switch len(found) {
	case 0:
		return ""
	case 1:
		return filepath.Join(d.Queue, found[0])
	}
	t.Fatalf("several locks: %q", found)
	return ""
}

// halfClaimed reports whether a claim's retirement is not finished.
func (d interopDirs) halfClaimed(t testing.TB) bool {
	t.Helper()
	if _, err := os.Lstat(filepath.Join(d.Queue, retirementsDir, interopID+pendingSuffix)); err == nil {
		return true
	}
	pending, err := os.Lstat(filepath.Join(d.Queue, interopID+pendingSuffix))
	claim, err2 := os.Lstat(filepath.Join(d.Queue, interopID+processingSuffix))
	return err == nil && err2 == nil && os.SameFile(pending, claim)
}

// interopID is the ID of most tests, interopGen makes its payloads.
const interopID = "m"

func interopGen(gen string) []byte { return []byte(`{"id":"` + interopID + `","gen":"` + gen + `"}`) }

// genOf is the generation that a payload says.
func genOf(t testing.TB, payload []byte) string {
	t.Helper()
	var p struct{ Gen string }
	if err := json.Unmarshal(payload, &p); err != nil || p.Gen == "" {
		t.Errorf("payload %q: %v", payload, err)
	}
	return p.Gen
}

// An interopSide is Go by a route, or JavaScript: one that goes on where another was
// stopped. Its clock is an hour ahead: what was left is old.
type interopSide interface {
	name() string
	load(t testing.TB) (gen, code string)          // both empty: there is nothing
	ack(t testing.TB) (code string)                // whatever claim stands
	fail(t testing.TB) (code string)               // likewise
	enqueue(t testing.TB, gen string) string       // gives a code too
	sweep(t testing.TB)                            // LoadPending, with temporary files by age
	staleOwner(t testing.TB, d interopDirs) string // who the stale lock is said to be of
}

// codeOf gives the package's code of an error, or else its text.
func codeOf(err error) string {
	var code Code
	switch {
	case err == nil:
		return ""
	case errors.As(err, &code):
		return string(code)
	}
	return err.Error()
}

// interopAhead is what the clock of one that goes on is ahead.
const interopAhead = time.Hour

type interopGoSide struct{ s *Store }

func newInteropGoSide(t testing.TB, d interopDirs, r Route) interopGoSide {
	t.Helper()
	s, err := Open(d.Queue, &Options{FailedDir: d.Failed, ClaimBy: r, now: func() time.Time { return time.Now().Add(interopAhead) }})
	interopOK(t, err)
	t.Cleanup(func() { interopOK(t, s.Close()) })
	return interopGoSide{s}
}

func (g interopGoSide) name() string { return "go by " + g.s.opts.ClaimBy.String() }

func (g interopGoSide) load(t testing.TB) (gen, code string) {
	c, err := g.s.Load(context.Background(), interopID, nil)
	if errors.Is(err, ErrNotFound) {
		return "", ""
	}
	if err != nil {
		return "", codeOf(err)
	}
	interopOK(t, c.Close())
	return genOf(t, c.Payload), ""
}

func (g interopGoSide) ack(testing.TB) string {
	return codeOf(g.s.AckID(context.Background(), interopID))
}

func (g interopGoSide) fail(testing.TB) string {
	err := g.s.FailID(context.Background(), interopID)
	if errors.Is(err, ErrNotFound) {
		return "ENOENT" // what the package says
	}
	return codeOf(err)
}

func (g interopGoSide) enqueue(_ testing.TB, gen string) string {
	_, err := g.s.Enqueue(context.Background(), interopID, interopGen(gen))
	return codeOf(err)
}

func (g interopGoSide) sweep(t testing.TB) {
	t.Helper()
	b, err := g.s.LoadPending(context.Background(), &BatchOptions{TempMaxAge: interopAhead / 2})
	if err != nil || len(b.Claims)+len(b.Skipped) > 0 {
		t.Errorf("%s: the last batch: %+v %v", g.name(), b, err)
	}
}

func (g interopGoSide) staleOwner(t testing.TB, d interopDirs) string {
	t.Helper()
	_, err := g.s.Load(context.Background(), interopID, nil)
	var lock *LockError
	if !errors.Is(err, ErrLockStale) || !errors.As(err, &lock) || lock.Lock.File != filepath.Base(d.lock(t)) {
		t.Errorf("%s: load past a lock that was left: %v", g.name(), err)
		return ""
	}
	return lock.Lock.Owner
}

type interopJSSide struct {
	p *interopPeer
	d interopDirs

	// hardlinked counts loads that the package refused because a quarantine was cut off
	// between its two names. It finishes that by its own quarantine only.
	hardlinked *int
}

// newInteropJSSide uses the peer, whose clock it advances, for d.
func newInteropJSSide(t testing.TB, p *interopPeer, d interopDirs) interopJSSide {
	t.Helper()
	p.must(t, "shift", interopArgs{"wall": interopAhead.Milliseconds()}, nil)
	return interopJSSide{p, d, new(int)}
}

func (j interopJSSide) name() string { return "javascript" }

func (j interopJSSide) args() interopArgs {
	return interopArgs{"queue": j.d.Queue, "failed": j.d.Failed, "id": interopID}
}

func (j interopJSSide) load(t testing.TB) (gen, code string) {
	t.Helper()
	a := j.p.call(t, "load", j.args())
	switch {
	case a.OK && string(a.Value) == "null":
		return "", ""
	case a.OK:
		return genOf(t, a.Value), ""
	case strings.Contains(a.Message, "hardlinks are not allowed"):
		*j.hardlinked++
		if code := j.fail(t); code != "" {
			t.Errorf("javascript: quarantine of a claim with two links: %s", code)
		}
		return j.load(t)
	}
	return "", a.codeOrText()
}

// codeOrText is empty if the call succeeded.
func (a interopAnswer) codeOrText() string {
	switch {
	case a.OK:
		return ""
	case a.Code != "":
		return a.Code
	}
	return a.String()
}

func (j interopJSSide) ack(t testing.TB) string {
	return j.p.call(t, "ack", j.args()).codeOrText()
}

// fail lets the package load first what is claimed by halves: its quarantine and its
// acknowledgement go on without recovery. See TestInteropHalfClaim.
func (j interopJSSide) fail(t testing.TB) string {
	t.Helper()
	if j.d.halfClaimed(t) {
		if _, code := j.load(t); code != "" {
			return code
		}
	}
	return j.p.call(t, "fail", j.args()).codeOrText()
}

func (j interopJSSide) enqueue(t testing.TB, gen string) string {
	args := j.args()
	args["entry"] = json.RawMessage(interopGen(gen))
	return j.p.call(t, "enqueue", args).codeOrText()
}

func (j interopJSSide) sweep(t testing.TB) {
	t.Helper()
	var got []json.RawMessage
	j.p.must(t, "pending", interopArgs{"queue": j.d.Queue, "maxAge": (interopAhead / 2).Milliseconds()}, &got)
	if len(got) > 0 {
		t.Errorf("javascript: the last batch: %s", got)
	}
}

func (j interopJSSide) staleOwner(t testing.TB, d interopDirs) string {
	t.Helper()
	if a := j.p.call(t, "load", j.args()); a.Code != string(ErrLockStale) {
		t.Errorf("javascript: load past a lock that was left: %v", a)
	}
	var r struct{ Payload struct{ OwnerToken string } }
	j.p.must(t, "record", interopArgs{"file": d.lock(t)}, &r)
	return r.Payload.OwnerToken
}
