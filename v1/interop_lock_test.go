//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

var errHadToWait = errors.New("it had to wait")

// interopStore opens a store on d. It may not have to wait unless o says otherwise.
func interopStore(t testing.TB, d interopDirs, o Options) *Store {
	t.Helper()
	o.FailedDir = d.Failed
	if o.sleep == nil {
		o.sleep = func(context.Context, time.Duration) error { return errHadToWait }
	}
	s, err := Open(d.Queue, &o)
	interopOK(t, err)
	t.Cleanup(func() { interopOK(t, s.Close()) })
	return s
}

func interopClock(ahead time.Duration) func() time.Time {
	return func() time.Time { return time.Now().Add(ahead) }
}

var interopRecord = regexp.MustCompile("^\\{\n  \"ownerToken\": \"([0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})\",\n" +
	"  \"createdAt\": \"(\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z)\"\n\\}\n\t{8}[ \t]{128}\n$")

// The record of a lock has one form, and each side reads the other's as its own.
func TestInteropLockRecord(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	d := newInteropDirs(t)
	now := time.Now()
	ours, owner := newRecord(now)
	file := filepath.Join(d.Queue, "lock")
	interopOK(t, os.WriteFile(file, ours, 0o600))
	var r struct {
		Payload struct{ OwnerToken, CreatedAt string }
		Token   string
		Again   bool
	}
	p.must(t, "record", interopArgs{"file": file}, &r)
	if r.Payload.OwnerToken != owner || r.Payload.CreatedAt != now.UTC().Format(createdLayout) || len(r.Token) != 8+128 || !r.Again {
		t.Errorf("javascript reads %+v in %q", r, ours)
	}
	var theirs []byte
	var mode os.FileMode
	p.whilePaused(func(string) {
		lock := d.lock(t)
		theirs, _ = os.ReadFile(lock)
		if info, err := os.Stat(lock); err == nil {
			mode = info.Mode()
		}
	})
	p.must(t, "enqueue", interopArgs{"queue": d.Queue, "id": interopID, "entry": 1}, nil)
	p.must(t, "arm", interopArgs{"how": "pause", "match": "^link"}, nil)
	p.must(t, "load", interopArgs{"queue": d.Queue, "id": interopID}, nil)
	for who, text := range map[string]string{"go": string(ours), "javascript": string(theirs)} {
		form := interopRecord.FindStringSubmatch(text)
		if form == nil {
			t.Fatalf("%s writes %q", who, text)
		}
		owner, created := parseRecord([]byte(text))
		if owner != form[1] || created.Format(createdLayout) != form[2] || created.Before(now.Add(-time.Second)) {
			t.Errorf("%s: go reads %q %v in %q", who, owner, created, text)
		}
	}
	if mode != 0o600 {
		t.Errorf("javascript's lock has mode %v", mode)
	}
}

// A lock that JavaScript holds in the middle of a migration: Go sees whose it is, does
// not touch it however old it seems, waits, and goes on when it is let go.
func TestInteropJavaScriptHoldsLock(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	for _, r := range []Route{HardLink, RenameNoReplace} {
		t.Run(r.String(), func(t *testing.T) {
			d := newInteropDirs(t)
			ctx := context.Background()
			before := interopStore(t, d, Options{ClaimBy: r, now: interopClock(29 * time.Second)})
			stale := interopStore(t, d, Options{ClaimBy: r, now: interopClock(31 * time.Second)})
			_, err := stale.Enqueue(ctx, interopID, interopGen("G1"))
			interopOK(t, err)
			waits, freed := make(chan struct{}, 1000), make(chan struct{})
			s := interopStore(t, d, Options{ClaimBy: r, sleep: func(context.Context, time.Duration) error {
				waits <- struct{}{}
				<-freed
				return nil
			}})
			loaded := make(chan string)
			p.whilePaused(func(string) {
				text, err := os.ReadFile(d.lock(t))
				owner, created := parseRecord(text)
				_, lockErr := stale.Load(ctx, interopID, nil)
				var lock *LockError
				if err != nil || !errors.Is(lockErr, ErrLockStale) || !errors.As(lockErr, &lock) || lock.Lock.Owner != owner || !lock.Lock.Created.Equal(created) {
					t.Errorf("31 s later: %v; the lock is of %s", lockErr, owner)
				}
				if _, err := before.Load(ctx, interopID, nil); !errors.Is(err, errHadToWait) {
					t.Errorf("29 s later: %v", err)
				}
				// A producer needs no lock.
				if _, err := stale.Enqueue(ctx, interopID, interopGen("G2")); err != nil {
					t.Error(err)
				}
				go func() {
					c, err := s.Load(ctx, interopID, nil)
					if err != nil {
						loaded <- err.Error()
						return
					}
					_ = c.Close()
					loaded <- string(c.Payload)
				}()
				<-waits
				if now, err := os.ReadFile(d.lock(t)); err != nil || string(now) != string(text) {
					t.Errorf("the lock changed: %v", err)
				}
			})
			p.must(t, "arm", interopArgs{"how": "pause", "match": `^rename .*tmp m\.processing$`}, nil)
			p.must(t, "load", interopArgs{"queue": d.Queue, "id": interopID, "migrate": map[string]string{"gen": "M1"}}, nil)
			close(freed)
			if got, want := <-loaded, "{\n  \"gen\": \"M1\"\n}"; got != want {
				t.Errorf("then: %s, want %s", got, want)
			}
		})
	}
}

// A lock that Go holds in the middle of a claim, likewise.
func TestInteropGoHoldsLock(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	for _, r := range []Route{HardLink, RenameNoReplace} {
		t.Run(r.String(), func(t *testing.T) {
			d := newInteropDirs(t)
			ctx := context.Background()
			w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
			s := interopStore(t, d, Options{ClaimBy: r, fs: w})
			_, err := s.Enqueue(ctx, interopID, interopGen("G1"))
			interopOK(t, err)
			held, free := make(chan struct{}), make(chan struct{})
			once := false
			w.Arm(crashtest.FailMatching(func(_ fsguard.Op, path string) bool {
				if strings.HasSuffix(path, processingSuffix) && !once && d.lock(t) != "" {
					once = true
					close(held)
					<-free
				}
				return false
			}, nil, 0))
			loaded := make(chan error)
			go func() {
				c, err := s.Load(ctx, interopID, nil)
				loaded <- err
				if err == nil {
					_ = c.Close()
				}
			}()
			<-held
			args := interopArgs{"queue": d.Queue, "id": interopID, "entry": map[string]string{"gen": "G2"}}
			text, err := os.ReadFile(d.lock(t))
			interopOK(t, err)
			p.must(t, "shift", interopArgs{"wall": 31000}, nil)
			if a := p.call(t, "load", args); a.Code != string(ErrLockStale) {
				t.Errorf("31 s later: %v", a)
			}
			p.must(t, "shift", nil, nil)
			// It tries a third time: it waits. Then Go lets go.
			p.whilePaused(func(string) {
				if now, err := os.ReadFile(d.lock(t)); err != nil || string(now) != string(text) {
					t.Errorf("the lock changed: %v", err)
				}
				close(free)
				if err := <-loaded; err != nil {
					t.Error(err)
				}
			})
			p.must(t, "arm", interopArgs{"how": "pause", "match": "^create .*lock$", "nth": 3}, nil)
			a := p.call(t, "load", args)
			if !a.OK || genOf(t, a.Value) != "G1" {
				t.Errorf("then: %v, want G1", a)
			}
			p.must(t, "arm", nil, nil)
			p.must(t, "ack", args, nil)
		})
	}
}

// What else may stand at a lock's name: both sides judge it alike.
func TestInteropOddLocks(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	at := func(when time.Time) string {
		text, _ := newRecord(when)
		return string(text)
	}
	now := time.Now()
	for _, c := range []struct {
		name string
		text string
		age  time.Duration // of the file
		make func(lock string) error
		want Code
	}{
		{name: "old", text: at(now.Add(-time.Minute)), want: ErrLockStale},
		{name: "old by its record, young by its file", text: `{"createdAt":"2020-01-02T03:04:05.678Z"}`, want: ErrLockStale},
		{name: "young by its record, old by its file", text: at(now), age: time.Hour, want: ErrLockTimeout},
		{name: "from the future", text: at(now.Add(time.Hour)), want: ErrLockTimeout},
		{name: "empty and old", age: time.Hour, want: ErrLockStale},
		{name: "empty and young", want: ErrLockTimeout},
		{name: "cut and old", text: at(now)[:20], age: time.Hour, want: ErrLockStale},
		{name: "no object", text: `["2020-01-02T03:04:05.678Z"]`, want: ErrLockTimeout},
		{name: "a time that is none", text: `{"createdAt":"yesterday"}`, age: time.Hour, want: ErrLockStale},
		{name: "a directory", make: func(lock string) error { return os.Mkdir(lock, 0o700) }, want: ErrNotFile},
		{name: "a symlink", make: func(lock string) error { return os.Symlink("elsewhere", lock) }, want: ErrNotFile},
		{name: "being reclaimed", make: func(lock string) error { return os.Mkdir(lock+reclaimSuffix, 0o700) }, want: ErrLockTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newInteropDirs(t)
			interopPending("G1")(t, interopStore(t, d, Options{}), d)
			lock := filepath.Join(d.Queue, namesOf(interopID).lock)
			if c.make != nil {
				interopOK(t, c.make(lock))
			} else {
				interopOK(t, os.WriteFile(lock, []byte(c.text), 0o600))
				interopOK(t, os.Chtimes(lock, time.Time{}, time.Now().Add(-c.age)))
			}
			// Patience runs out at once, and no lock grows old meanwhile.
			p.must(t, "shift", interopArgs{"rate": 1e6}, nil)
			args := interopArgs{"queue": d.Queue, "id": interopID}
			if a := p.call(t, "load", args); a.Code != string(c.want) {
				t.Errorf("javascript: %v, want %s", a, c.want)
			}
			p.must(t, "shift", nil, nil)
			tries := 0
			s := interopStore(t, d, Options{sleep: func(context.Context, time.Duration) error { tries++; return nil }})
			if _, err := s.Load(context.Background(), interopID, nil); !errors.Is(err, c.want) {
				t.Errorf("go: %v, want %s", err, c.want)
			}
			if wantTries := map[Code]int{ErrLockTimeout: lockTries}[c.want]; tries != wantTries {
				t.Errorf("go waited %d times, want %d", tries, wantTries)
			}
			info, err := os.Lstat(lock)
			if c.want != ErrLockTimeout && (err != nil || info.Size() < int64(len(c.text))) {
				t.Errorf("the lock was touched: %v", err)
			}
		})
	}
}

// A lock that somebody took away and made anew while it was held: neither side removes
// what is not its own. Go says that it happened, the package does not.
func TestInteropLockOfAnother(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	other, _ := newRecord(time.Now())
	d := newInteropDirs(t)
	swap := func() {
		lock := d.lock(t)
		if err := errors.Join(os.Remove(lock), os.WriteFile(lock, other, 0o600)); err != nil {
			t.Error(err)
		}
	}
	still := func(who string) {
		t.Helper()
		text, err := os.ReadFile(d.lock(t))
		if err != nil || string(text) != string(other) {
			t.Fatalf("%s removed the lock of another: %v", who, err)
		}
		interopOK(t, os.Remove(d.lock(t)))
	}
	args := interopArgs{"queue": d.Queue, "id": interopID, "entry": 1}
	p.must(t, "enqueue", args, nil)
	p.whilePaused(func(string) { swap() })
	p.must(t, "arm", interopArgs{"how": "pause", "match": "^link"}, nil)
	p.must(t, "load", args, nil)
	still("javascript")

	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s := interopStore(t, d, Options{fs: w})
	w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool {
		if op == fsguard.OpRename && strings.HasSuffix(path, deliveredSuffix) {
			swap()
		}
		return false
	}, nil, 0))
	if err := s.AckID(context.Background(), interopID); !errors.Is(err, ErrPathMismatch) {
		t.Errorf("go: %v, want a path mismatch", err)
	}
	still("go")
	if names := fmt.Sprint(d.names(t)); names != "["+retirementsDir+"]" {
		t.Errorf("left: %s", names)
	}
}
