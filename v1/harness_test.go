//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A unitWay is a mechanism and a route.
type unitWay struct {
	mechanism Mechanism
	route     Route
}

func (w unitWay) String() string { return string(w.mechanism) + ", " + w.route.String() }

// unitWays are all of them: what they do and refuse is the same.
var unitWays = []unitWay{
	{Off, HardLink}, {Auto, HardLink}, {Require, HardLink},
	{Off, RenameNoReplace}, {Auto, RenameNoReplace}, {Require, RenameNoReplace},
}

// eachUnitWay runs a test in every way.
func eachUnitWay(t *testing.T, f func(t *testing.T, w unitWay)) {
	t.Helper()
	t.Parallel()
	for _, w := range unitWays {
		t.Run(w.String(), func(t *testing.T) { f(t, w) })
	}
}

// unitDirs are the directories of a store.
type unitDirs struct{ queue, failed string }

func newUnitDirs(t testing.TB) unitDirs {
	t.Helper()
	base := t.TempDir()
	d := unitDirs{filepath.Join(base, "queue"), filepath.Join(base, "failed")}
	unitOK(t, os.Mkdir(d.queue, 0o700), os.Mkdir(d.failed, 0o700))
	return d
}

// open opens a store on d. Its clock is the system's and it may not have to wait, unless
// o says otherwise.
func (d unitDirs) open(t testing.TB, w unitWay, o Options) *Store {
	t.Helper()
	o.Mechanism, o.ClaimBy = w.mechanism, w.route
	if o.FailedDir == "" {
		o.FailedDir = d.failed
	}
	if o.sleep == nil {
		o.sleep = func(context.Context, time.Duration) error {
			t.Error("waited for a transfer lock")
			return errors.New("waited")
		}
	}
	s, err := Open(d.queue, &o)
	unitOK(t, err)
	t.Cleanup(func() { unitOK(t, s.Close()) })
	return s
}

// newUnitStore opens a store on fresh directories.
func newUnitStore(t testing.TB, w unitWay) (*Store, unitDirs) {
	t.Helper()
	d := newUnitDirs(t)
	return d.open(t, w, Options{}), d
}

// at gives the path of a name in the queue directory.
func (d unitDirs) at(names ...string) string {
	return filepath.Join(append([]string{d.queue}, names...)...)
}

func unitOK(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// unitIs checks that err is want and that its text has each of the words.
func unitIs(t testing.TB, what string, err, want error, words ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %q does not say %q", what, err, word)
		}
	}
}

// unitTree tells everything below the directories but times: what must not change is
// compared by it.
func unitTree(t testing.TB, dirs ...string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil {
				return err
			}
			st := info.Sys().(*syscall.Stat_t)
			fmt.Fprintf(&b, "%s %v ino %d", path, info.Mode(), st.Ino)
			switch {
			case info.Mode().IsRegular():
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, " links %d %.1000q", st.Nlink, text)
			case info.Mode().Type() == fs.ModeSymlink:
				to, err := os.Readlink(path)
				if err != nil {
					return err
				}
				fmt.Fprintf(&b, " -> %s", to)
			}
			b.WriteByte('\n')
			return nil
		})
		unitOK(t, err)
	}
	return b.String()
}

func (d unitDirs) tree(t testing.TB) string {
	t.Helper()
	return unitTree(t, d.queue, d.failed)
}

// unitNames lists a directory with what is in its files.
func unitNames(t testing.TB, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	unitOK(t, err)
	var out []string
	for _, e := range entries {
		if e.Name() == retirementsDir {
			inside, err := os.ReadDir(filepath.Join(dir, e.Name()))
			unitOK(t, err)
			if len(inside) == 0 {
				continue // may stay for ever
			}
		}
		var text []byte
		if e.Type().IsRegular() {
			text, err = os.ReadFile(filepath.Join(dir, e.Name()))
			unitOK(t, err)
		}
		out = append(out, strings.TrimSpace(e.Name()+" "+string(text)))
	}
	return strings.Join(out, ", ")
}

// wantNames checks what both directories hold.
func (d unitDirs) wantNames(t testing.TB, queue, failed string) {
	t.Helper()
	if got := unitNames(t, d.queue); got != queue {
		t.Errorf("the queue holds %q, want %q", got, queue)
	}
	if got := unitNames(t, d.failed); got != failed {
		t.Errorf("the failed directory holds %q, want %q", got, failed)
	}
}

func unitUnchanged(t testing.TB, before, after string) {
	t.Helper()
	if before != after {
		t.Errorf("changed: is\n%swas\n%s", after, before)
	}
}

func unitPut(t testing.TB, path, text string) {
	t.Helper()
	unitOK(t, os.WriteFile(path, []byte(text), 0o600))
}

func unitEnqueue(t testing.TB, s *Store, id, payload string) {
	t.Helper()
	got, err := s.Enqueue(t.Context(), id, []byte(payload))
	if err != nil || got != id {
		t.Fatalf("enqueued %q, %v", got, err)
	}
}

// unitLoad loads an entry that must be there with that payload.
func unitLoad(t testing.TB, s *Store, id, payload string) *Claim {
	t.Helper()
	c, err := s.Load(t.Context(), id, nil)
	unitOK(t, err)
	t.Cleanup(func() { c.Close() })
	if string(c.Payload) != payload || c.ID != id {
		t.Fatalf("loaded %s %q, want %s %q", c.ID, c.Payload, id, payload)
	}
	return c
}

// A unitClock is moved by those who wait on it.
type unitClock struct {
	mu    sync.Mutex
	at    time.Time
	slept []time.Duration
	slow  time.Duration                // every pause takes so much longer
	while func(n int, d time.Duration) // runs in the n-th pause, from 1
}

func newUnitClock() *unitClock {
	return &unitClock{at: time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC)}
}

func (c *unitClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *unitClock) sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	c.at = c.at.Add(d + c.slow)
	c.slept = append(c.slept, d)
	n, while := len(c.slept), c.while
	c.mu.Unlock()
	if while != nil {
		while(n, d)
	}
	return nil
}

// on puts the clock into options.
func (c *unitClock) on(o Options) Options {
	o.now, o.sleep = c.now, c.sleep
	return o
}
