//go:build unix

package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A trialLock is something that stands at a transfer lock's name.
type trialLock struct {
	name string
	make func(t *testing.T, path string, now time.Time)
	want error
	says []string // in the error, beside the file
	slow bool     // the error is given at the end of a wait
}

// trialRecord gives a lock's text with more fields than the protocol's.
func trialRecord(t *testing.T, created time.Time, more map[string]any) string {
	t.Helper()
	r := map[string]any{"ownerToken": "token-of-another", "createdAt": created.Format(createdLayout)}
	for k, v := range more {
		r[k] = v
	}
	text, err := json.MarshalIndent(r, "", "  ")
	unitOK(t, err)
	return string(text) + "\n" + strings.Repeat("\t", 136) + "\n"
}

func trialText(text string) func(t *testing.T, path string, now time.Time) {
	return func(t *testing.T, path string, now time.Time) {
		unitPut(t, path, text)
		unitOK(t, os.Chtimes(path, now, now))
	}
}

func trialOwner(age time.Duration, more map[string]any) func(t *testing.T, path string, now time.Time) {
	return func(t *testing.T, path string, now time.Time) {
		unitPut(t, path, trialRecord(t, now.Add(-age), more))
	}
}

func trialPlain(f func(path string) error) func(t *testing.T, path string, now time.Time) {
	return func(t *testing.T, path string, _ time.Time) { unitOK(t, f(path)) }
}

func trialLocks() []trialLock {
	owner := []string{"owner token-of-another"}
	stale := func(age string) []string {
		return []string{"held by owner token-of-another", "for " + age, "never taken over"}
	}
	unread := []string{"an owner that its record does not tell", "for 30s", "never taken over"}
	return []trialLock{
		{"our own pid, another token", trialOwner(0, map[string]any{"pid": os.Getpid()}), ErrLockStale, stale("30s"), true},
		{"a reused pid", trialOwner(0, map[string]any{"pid": os.Getppid()}), ErrLockStale, stale("30s"), true},
		{"a pid that is not there", trialOwner(0, map[string]any{"pid": 1<<31 - 1}), ErrLockStale, stale("30s"), true},
		{"a pid that is not there, of a month ago", trialOwner(720*time.Hour, map[string]any{"pid": 1<<31 - 1}), ErrLockStale, stale("720h0m0s"), false},
		{"a time to come", trialOwner(-time.Hour, nil), ErrLockTimeout, owner, true},
		{"empty", trialText(""), ErrLockStale, unread, true},
		{"zeros", trialText(strings.Repeat("\x00", 200)), ErrLockStale, unread, true},
		{"cut", trialText("{\n  \"ownerToken\": \"token-of-an"), ErrLockStale, unread, true},
		{"no JSON", trialText("held by me"), ErrLockStale, unread, true},
		{"another JSON", trialText("[1]"), ErrLockStale, unread, true},
		{"no time", trialText(`{"ownerToken":"token-of-another"}`), ErrLockStale, stale("30s"), true},
		{"no time that is one", trialText(`{"ownerToken":"token-of-another","createdAt":"yesterday"}`), ErrLockStale, stale("30s"), true},
		{"no owner", trialText(`{"createdAt":7}`), ErrLockStale, unread, true},
		{"huge", func(t *testing.T, path string, now time.Time) {
			trialText(strings.Repeat(" ", 3<<20))(t, path, now.Add(-time.Hour))
		}, ErrLockStale, []string{"an owner that its record does not tell", "for 1h0m0s"}, false},
		{"directory", trialPlain(func(path string) error { return os.Mkdir(path, 0o700) }), ErrNotFile, nil, false},
		{"symlink", trialPlain(func(path string) error { return os.Symlink("elsewhere", path) }), ErrNotFile, nil, false},
		{"FIFO", trialPlain(func(path string) error { return syscall.Mkfifo(path, 0o600) }), ErrNotFile, nil, false},
		{"reclaim beside no lock", trialReclaim(func(path string) error { return os.WriteFile(path, nil, 0o600) }), ErrLockTimeout, nil, true},
		{"reclaim, a directory", trialReclaim(func(path string) error { return os.Mkdir(path, 0o700) }), ErrLockTimeout, nil, true},
		{"reclaim, a dangling symlink", trialReclaim(func(path string) error { return os.Symlink("nowhere", path) }), ErrLockTimeout, nil, true},
		{"reclaim beside a stale lock", func(t *testing.T, path string, now time.Time) {
			trialOwner(time.Hour, nil)(t, path, now)
			unitPut(t, path+reclaimSuffix, "")
		}, ErrLockTimeout, owner, true},
	}
}

func trialReclaim(f func(path string) error) func(t *testing.T, path string, now time.Time) {
	return trialPlain(func(path string) error { return f(path + reclaimSuffix) })
}

// T07: whatever stands at a transfer lock's name, no evidence of a pid takes it away.
// Whoever waits for it ends within the deadline and learns whose it is, and how old.
func TestTrial07(t *testing.T) {
	t.Parallel()
	for _, lock := range trialLocks() {
		t.Run(lock.name, func(t *testing.T) {
			for i, w := range unitWays {
				clock := newUnitClock()
				d := newUnitDirs(t)
				s := d.open(t, w, clock.on(Options{}))
				unitPut(t, d.at("a.json"), `1`)
				refuseClaimed(t, d, "c", `2`)
				c := unitLoad(t, s, "c", "2")
				for _, id := range []string{"a", "c"} {
					lock.make(t, d.at(namesOf(id).lock), clock.now())
				}
				before := d.tree(t)
				calls := []struct {
					name string
					do   func(ctx context.Context) error
				}{
					{"load", func(ctx context.Context) error { _, err := s.Load(ctx, "a", nil); return err }},
					{"batch", func(ctx context.Context) error {
						b, err := s.LoadPending(ctx, &BatchOptions{Limit: 1})
						if len(b.Claims)+len(b.Skipped) > 0 {
							err = fmt.Errorf("%d claims and %d skipped beside %w", len(b.Claims), len(b.Skipped), err)
						}
						return err
					}},
					{"ack", func(ctx context.Context) error { return s.Ack(ctx, c) }},
					{"ack by ID", func(ctx context.Context) error { return s.AckID(ctx, "c") }},
					{"fail", func(ctx context.Context) error { return s.Fail(ctx, c) }},
					{"fail by ID", func(ctx context.Context) error { return s.FailID(ctx, "a") }},
				}
				call := calls[i] // each way has another call: together they make the matrix's diagonal
				began := clock.now()
				err := call.do(t.Context())
				unitIs(t, call.name, err, lock.want, append([]string{lockPrefix}, lock.says...)...)
				var held *LockError
				if lock.want != ErrNotFile && (!errors.As(err, &held) || held.Lock.Stale() != (lock.want == ErrLockStale || strings.Contains(lock.name, "stale"))) {
					t.Errorf("%s: the lock is %+v", call.name, held)
				}
				// A batch waits for all its IDs together.
				if took := clock.now().Sub(began); took > lockPatience || (took > 0) != lock.slow {
					t.Errorf("%s took %v, %d pauses", call.name, took, len(clock.slept))
				}
				unitUnchanged(t, before, d.tree(t))
				if i > 0 {
					continue
				}
				unitEnqueue(t, s, "a", `4`) // a producer is not held up, nor are other IDs
				unitEnqueue(t, s, "b", `3`)
				unitOK(t, s.Ack(t.Context(), unitLoad(t, s, "b", "3")))
				for _, id := range []string{"a", "c"} { // the operator's word: that file is removed
					unitOK(t, os.RemoveAll(d.at(namesOf(id).lock)), os.RemoveAll(d.at(namesOf(id).lock+reclaimSuffix)))
				}
				unitOK(t, s.AckID(t.Context(), "c"), s.Ack(t.Context(), unitLoad(t, s, "a", "4")))
				d.wantNames(t, "", "")
			}
		})
	}
}

// T24, IDs: what can be a file's name everywhere, as the npm package has it.
func TestTrial24IDs(t *testing.T) {
	t.Parallel()
	s, d := newUnitStore(t, unitWay{Auto, HardLink})
	for id, why := range map[string]string{
		"":                                "empty", // of Load; Enqueue makes one
		".":                               "begin with a dot",
		"..":                              "begin with a dot",
		".x":                              "begin with a dot",
		".fs-safe-retirements":            "begin with a dot",
		"a/b":                             "only A-Z",
		`a\b`:                             "only A-Z",
		"/a":                              "only A-Z",
		"a b":                             "only A-Z",
		"a\x00":                           "only A-Z",
		"a\n":                             "only A-Z",
		"C:a":                             "only A-Z",
		"a:b":                             "only A-Z",
		"a*":                              "only A-Z",
		"\u00e9":                          "only A-Z",
		"e\u0301":                         "only A-Z",
		"\xff":                            "only A-Z",
		"CON":                             "device",
		"con":                             "device",
		"nul.txt":                         "device",
		"NUL.":                            "device",
		"Aux.a.b":                         "device",
		"prn":                             "device",
		"com1":                            "device",
		"LPT9.x":                          "device",
		strings.Repeat("x", maxIDBytes+1): "at most 244",
	} {
		for what, err := range map[string]error{
			"enqueue": func() error {
				if id == "" {
					return checkID(id)
				}
				_, err := s.Enqueue(t.Context(), id, []byte(`1`))
				return err
			}(),
			"load": func() error { _, err := s.Load(t.Context(), id, nil); return err }(),
			"ack":  s.AckID(t.Context(), id),
			"fail": s.FailID(t.Context(), id),
		} {
			unitIs(t, what+" "+id, err, ErrInvalidPath, why)
		}
	}
	d.wantNames(t, "", "")
	accepted := []string{
		"a", "A", "x.", "a.json", "a.processing", "a.delivered", "a.tmp", "-", "_", "-a", "0", "COM0", "com10", "lpt", "CONx", "conin", "a.con",
		"state", "format", "status", "entry", strings.Repeat("x", maxIDBytes),
	}
	names := map[string]string{}
	for _, id := range accepted {
		if err := checkID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
		n := namesOf(id)
		for _, name := range []string{n.pending, n.processing, n.delivered, n.lock, n.failed()} {
			if other, taken := names[name]; taken && other != id {
				t.Errorf("%q and %q meet at %s", id, other, name)
			}
			names[name] = id
			if len(name) > 255 {
				t.Errorf("%s has %d bytes", name, len(name))
			}
		}
	}
	for i, id := range accepted {
		unitEnqueue(t, s, id, fmt.Sprint(i))
	}
	for i, id := range accepted {
		c := unitLoad(t, s, id, fmt.Sprint(i))
		if i%2 == 0 {
			unitOK(t, s.Ack(t.Context(), c))
		} else {
			unitOK(t, s.Fail(t.Context(), c))
		}
	}
	d.wantNames(t, "", unitNames(t, d.failed))
	if st, err := s.Status(t.Context()); err != nil || st.Failed != len(accepted)/2 {
		t.Errorf("status %+v, %v", st, err)
	}
}

// T24, strays: what is no entry is passed over and stays as it is.
func TestTrial24Strays(t *testing.T) {
	kinds := map[string]func(path string) error{
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"symlink":   func(path string) error { return os.Symlink("../target", path) },
		"FIFO":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
	}
	foreign := []string{
		"notes.txt", "README", ".hidden", ".x.json", "a b.json", "\u00e9.json", "con.json", "json", ".json", "processing", ".processing",
		lockPrefix + "short.lock", lockPrefix + strings.Repeat("g", 32) + ".lock", "x.json.bak", "x.JSON",
	}
	for kind, mk := range kinds {
		t.Run(kind, func(t *testing.T) {
			eachUnitWay(t, func(t *testing.T, w unitWay) {
				d := newUnitDirs(t)
				ctx := t.Context()
				unitPut(t, d.at("..", "target"), `7`)
				strays := []string{d.at("p.json"), d.at("c.processing"), d.at("d.delivered"), d.at("old.tmp"), filepath.Join(d.failed, "f.json")}
				for _, path := range strays {
					unitOK(t, mk(path))
				}
				for _, name := range foreign {
					unitPut(t, d.at(name), `8`)
				}
				s := d.open(t, w, Options{})
				unitEnqueue(t, s, "f", `1`)
				before := d.tree(t)
				load := func(id string) error { _, err := s.Load(ctx, id, nil); return err }
				unitIs(t, "load p", load("p"), ErrNotFound)
				unitIs(t, "fail p", s.FailID(ctx, "p"), ErrNotFound)
				unitIs(t, "ack p", s.AckID(ctx, "p"), ErrNotFile, "p.json")
				unitIs(t, "load c", load("c"), ErrNotFile, "c.processing")
				unitIs(t, "ack c", s.AckID(ctx, "c"), ErrNotFile, "c.processing")
				unitIs(t, "fail c", s.FailID(ctx, "c"), ErrNotFile, "c.processing")
				unitIs(t, "ack d", s.AckID(ctx, "d"), ErrNotFile, "d.delivered")
				unitIs(t, "fail f", s.FailID(ctx, "f"), ErrNotFile, "f.json")
				unitUnchanged(t, before, d.tree(t))
				st, err := s.Status(ctx)
				st.Retirements = false
				if want := (Status{Pending: 1, Temporary: 1}); err != nil || st != want {
					t.Errorf("status %+v, %v; want %+v", st, err, want)
				}
				b, err := s.LoadPending(ctx, &BatchOptions{TempMaxAge: 1})
				if err != nil || len(b.Claims) != 1 || b.Claims[0].ID != "f" {
					t.Fatalf("batch %+v, %v", b, err)
				}
				if len(b.Skipped) != 1 || b.Skipped[0].ID != "c" {
					t.Errorf("skipped %+v, want c", b.Skipped)
				} else {
					unitIs(t, "skipped", b.Skipped[0].Err, ErrNotFile, "c.processing")
				}
				unitOK(t, s.Ack(ctx, b.Claims[0]), os.RemoveAll(d.at(retirementsDir)))
				// All as before, but for the entry.
				var kept []string
				for line := range strings.Lines(before) {
					if !strings.HasPrefix(line, d.at("f.json")) && !strings.HasPrefix(line, d.at(retirementsDir)) {
						kept = append(kept, line)
					}
				}
				unitUnchanged(t, strings.Join(kept, ""), d.tree(t))
			})
		})
	}
}
