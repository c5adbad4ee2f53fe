//go:build unix

package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// These tests are the list of what Go does otherwise than the package, on purpose. In
// all else the two agree: TestInteropAgree. More of the list is in interop_directory_test.go.

// interopPair gives both sides the same directories: JavaScript one, Go the other.
func interopPair(t *testing.T, p *interopPeer, before func(d interopDirs) error) (js interopJSSide, g interopGoSide) {
	t.Helper()
	a, b := newInteropDirs(t), newInteropDirs(t)
	interopOK(t, before(a), before(b))
	return newInteropJSSide(t, p, a), newInteropGoSide(t, b, HardLink)
}

// halfClaim is a claim cut off between its link and its retirement.
func interopHalfClaim(d interopDirs) error {
	return errors.Join(interopPut(d.pendingFile(), "G1"), os.Link(d.pendingFile(), d.claimFile()))
}

// Go finishes an interrupted claim before it acknowledges or quarantines. The package
// does so at a load only: without one, what it acknowledged comes again, and what
// it set aside stays pending with two names, which nobody may claim.
func TestInteropHalfClaim(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	js, g := interopPair(t, p, interopHalfClaim)
	if code := js.ack(t) + g.ack(t); code != "" {
		t.Fatal(code)
	}
	if gen, code := js.load(t); gen != "G1" || code != "" {
		t.Errorf("javascript, after its acknowledgement: %s %s, want G1 again", gen, code)
	}
	if gen, code := g.load(t); gen+code != "" {
		t.Errorf("go, after its acknowledgement: %s %s, want nothing", gen, code)
	}
	// Cut off one step later, the record stays behind beside no claim: the ID is stuck.
	js, g = interopPair(t, p, func(d interopDirs) error {
		return errors.Join(interopPut(d.claimFile(), "G1"), os.MkdirAll(d.recordDir(), 0o700), os.Link(d.claimFile(), d.recordDir()+"/entry"))
	})
	if code := js.ack(t) + g.ack(t); code != "" {
		t.Fatal(code)
	}
	if gen, code := js.load(t); gen != "" || code != string(ErrPathMismatch) {
		t.Errorf("javascript, after its acknowledgement beside a record: %s %s, want a path mismatch", gen, code)
	}
	if gen, code := g.load(t); gen+code != "" {
		t.Errorf("go, after its acknowledgement beside a record: %s %s, want nothing", gen, code)
	}
	js, g = interopPair(t, p, interopHalfClaim)
	p.must(t, "fail", js.args(), nil) // without the load that js.fail makes first
	if code := g.fail(t); code != "" {
		t.Fatal(code)
	}
	if gen, code := js.load(t); gen != "" || code != string(ErrPathMismatch) {
		t.Errorf("javascript, after its quarantine: %s %s, want a path mismatch", gen, code)
	}
	if gen, code := g.load(t); gen+code != "" {
		t.Errorf("go, after its quarantine: %s %s, want nothing", gen, code)
	}
	// What JavaScript left so, Go does not touch either.
	if gen, code := newInteropGoSide(t, js.d, HardLink).load(t); gen != "" || code != string(ErrPathMismatch) {
		t.Errorf("go, after javascript's quarantine: %s %s, want a path mismatch", gen, code)
	}
}

// Go finishes an interrupted quarantine when it loads, if it knows the failed directory.
// The package does so by its quarantine only, and until then refuses to read the claim;
// Go without the directory refuses too.
func TestInteropHalfQuarantine(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	half := func(d interopDirs) error {
		return errors.Join(interopPut(d.claimFile(), "G1"), os.Link(d.claimFile(), d.failedFile()))
	}
	js, g := interopPair(t, p, half)
	if a := p.call(t, "load", js.args()); a.OK || !strings.Contains(a.Message, "hardlinks are not allowed") {
		t.Errorf("javascript: %v", a)
	}
	without, err := Open(js.d.Queue, nil)
	interopOK(t, err)
	defer without.Close()
	if _, err := without.Load(context.Background(), interopID, nil); !errors.Is(err, ErrPathMismatch) {
		t.Errorf("go without the failed directory: %v, want a path mismatch", err)
	}
	if gen, code := g.load(t); gen+code != "" {
		t.Errorf("go: %s %s, want nothing", gen, code)
	}
	if code := js.fail(t); code != "" {
		t.Errorf("javascript: %s", code)
	}
	if a, b := js.d.withoutRecords(t).picture(t), g.s.dirs().withoutRecords(t).picture(t); a != b {
		t.Errorf("javascript left\n%sgo left\n%s", a, b)
	}
}

func (s *Store) dirs() interopDirs { return interopDirs{s.queue.path, s.fail.path} }

// A consumer takes the entry at once, before its producer has looked at it again. The
// package then reports a failure although the entry was written, and may be done. Go
// does not look again.
func TestInteropTakenAtOnce(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	d := newInteropDirs(t)
	consumer := newInteropGoSide(t, d, RenameNoReplace)
	args := interopArgs{"queue": d.Queue, "id": interopID, "entry": json.RawMessage(interopGen("G1"))}
	p.must(t, "arm", interopArgs{"how": "pause", "match": "^sync q$"}, nil)
	p.whilePaused(func(string) {
		if gen, code := consumer.load(t); gen != "G1" || code != "" {
			t.Errorf("taken: %s %s", gen, code)
		}
	})
	if a := p.call(t, "enqueue", args); a.Code != string(ErrPathMismatch) {
		t.Errorf("javascript: %v, want a path mismatch", a)
	}
	if code := consumer.ack(t); code != "" {
		t.Error(code)
	}

	w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
	s := interopStore(t, d, Options{fs: w})
	took := ""
	w.Arm(crashtest.FailMatching(func(op fsguard.Op, _ string) bool {
		if op == fsguard.OpSyncDir && took == "" {
			took, _ = consumer.load(t)
		}
		return false
	}, nil, 0))
	if _, err := s.Enqueue(context.Background(), interopID, interopGen("G2")); err != nil || took != "G2" {
		t.Errorf("go: %v, and %s was taken", err, took)
	}
}

// A claim in Go knows its file: it never ends a newer claim of the same ID. The package
// ends whatever stands, as AckID and FailID do.
func TestInteropStaleClaim(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	ctx := context.Background()
	claims := func() (*Store, *Claim, interopDirs) {
		d := newInteropDirs(t)
		s := interopStore(t, d, Options{})
		interopPending("G1")(t, s, d)
		old, err := s.Load(ctx, interopID, nil)
		interopOK(t, err)
		args := interopArgs{"queue": d.Queue, "id": interopID, "entry": json.RawMessage(interopGen("G2"))}
		p.must(t, "ack", args, nil)
		p.must(t, "enqueue", args, nil)
		p.must(t, "load", args, nil)
		return s, old, d
	}
	s, old, d := claims()
	defer old.Close()
	if err := s.Ack(ctx, old); !errors.Is(err, ErrPathMismatch) {
		t.Errorf("ack: %v, want a path mismatch", err)
	}
	if err := s.Fail(ctx, old); !errors.Is(err, ErrPathMismatch) {
		t.Errorf("fail: %v, want a path mismatch", err)
	}
	if gen, _ := newInteropJSSide(t, p, d).load(t); gen != "G2" {
		t.Errorf("the newer claim: %q, want G2", gen)
	}
	p.must(t, "ack", interopArgs{"queue": d.Queue, "id": interopID}, nil)
	if _, err := os.Lstat(d.claimFile()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("javascript's ack, of a claim that it had loaded or not: %v", err)
	}
}

// Another consumer's migration is another file: a claim in Go that was loaded before it is
// refused, and loaded again ends it. The package ends what stands.
func TestInteropMigratedMeanwhile(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	d := newInteropDirs(t)
	ctx := context.Background()
	s := interopStore(t, d, Options{})
	interopPending("G1")(t, s, d)
	old, err := s.Load(ctx, interopID, nil)
	interopOK(t, err)
	defer old.Close()
	p.must(t, "load", interopArgs{"queue": d.Queue, "id": interopID, "migrate": json.RawMessage(interopGen("M1"))}, nil)
	if err := s.Ack(ctx, old); !errors.Is(err, ErrPathMismatch) {
		t.Errorf("ack: %v, want a path mismatch", err)
	}
	now, err := s.Load(ctx, interopID, nil)
	if err != nil || genOf(t, now.Payload) != "M1" {
		t.Fatalf("loaded again: %v", err)
	}
	interopOK(t, s.Ack(ctx, now))
}

// One entry that cannot be moved on: the package's batch fails with it, Go's has the
// others and names it. What cannot be read both pass over; Go tells of it.
func TestInteropBatch(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	ctx := context.Background()
	batch := func(d interopDirs) (Batch, error) {
		s := interopStore(t, d, Options{})
		b, err := s.LoadPending(ctx, nil)
		for _, c := range b.Claims {
			interopOK(t, c.Close())
		}
		return b, err
	}
	d := newInteropDirs(t)
	interopOK(t, os.MkdirAll(d.recordDir(), 0o700), interopPut(d.recordDir()+"/other", "G0"), interopPut(d.pendingFile(), "G1"),
		interopPut(d.Queue+"/a.json", "G2"), interopPut(d.Queue+"/z.json", "G3"))
	js := p.call(t, "pending", interopArgs{"queue": d.Queue})
	if js.Code != string(ErrPathMismatch) {
		t.Errorf("javascript: %v, want a path mismatch", js)
	}
	b, err := batch(d)
	if !errors.Is(err, ErrPathMismatch) || len(b.Claims) != 2 || !strings.Contains(err.Error(), interopID+pendingSuffix) {
		t.Errorf("go: %d claims, %v", len(b.Claims), err)
	}

	d = newInteropDirs(t)
	interopOK(t, interopPut(d.Queue+"/z.json", "G1"), interopPut(d.Queue+"/a.json", "G2"), os.WriteFile(d.Queue+"/bad.json", []byte("{"), 0o600),
		interopPut(d.Queue+"/two.json", "G3"), os.Link(d.Queue+"/two.json", d.Failed+"/x"))
	var got []struct{ Gen string }
	p.must(t, "pending", interopArgs{"queue": d.Queue}, &got)
	b, err = batch(d)
	if len(got) != 2 || err != nil || len(b.Claims) != 2 || b.Claims[0].ID != "a" || len(b.Skipped) != 2 ||
		!errors.Is(b.Skipped[0].Err, ErrInvalidJSON) || !errors.Is(b.Skipped[1].Err, ErrPathMismatch) {
		t.Errorf("javascript: %v; go: %+v %v", got, b, err)
	}
}

// A read callback that fails: the package's batch passes over its entry, Go's says so.
// A load of that entry alone fails with it on both sides.
func TestInteropFailingCallback(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	d := newInteropDirs(t)
	interopOK(t, interopPut(d.pendingFile(), "G1"))
	args := interopArgs{"queue": d.Queue, "id": interopID, "fails": "no such form"}
	if a := p.call(t, "pending", args); !a.OK || string(a.Value) != "[]" {
		t.Errorf("javascript's batch: %v", a)
	}
	if a := p.call(t, "load", args); a.Message != "no such form" {
		t.Errorf("javascript's load: %v", a)
	}
	s := interopStore(t, d, Options{})
	failure := errors.New("no such form")
	migrate := func(context.Context, string, []byte) ([]byte, error) { return nil, failure }
	if b, err := s.LoadPending(context.Background(), &BatchOptions{Migrate: migrate}); !errors.Is(err, failure) || len(b.Claims) > 0 {
		t.Errorf("go's batch: %+v %v", b, err)
	}
	if _, err := s.Load(context.Background(), interopID, &LoadOptions{Migrate: migrate}); !errors.Is(err, failure) {
		t.Errorf("go's load: %v", err)
	}
}

// Files that only one side reads or writes.
func TestInteropContents(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	d := newInteropDirs(t)
	g := interopStore(t, d, Options{MaxEntryBytes: 100})
	args := interopArgs{"queue": d.Queue, "failed": d.Failed, "id": interopID, "maxBytes": 100}
	for _, c := range []struct {
		name, text string
		js         string // the value, or part of the message
		want       error  // Go's; nil: the same value
	}{
		{"not UTF-8", "{\"gen\":\"a\xffb\"}", "{\"gen\":\"a\ufffdb\"}", ErrInvalidJSON},
		{"a byte order mark", "\ufeff{\"gen\":\"G1\"}", "is not valid JSON", ErrInvalidJSON},
		{"cut", "{\"gen\":", "Unexpected end", ErrInvalidJSON},
		{"two values", "1 2", "Unexpected", ErrInvalidJSON},
		{"empty", "", "Unexpected end", ErrInvalidJSON},
		{"as large as may be", `"` + strings.Repeat("x", 98) + `"`, `"` + strings.Repeat("x", 98) + `"`, nil},
		{"too large", `"` + strings.Repeat("x", 99) + `"`, "exceeds 100 bytes", ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			interopOK(t, os.WriteFile(d.claimFile(), []byte(c.text), 0o600))
			a := p.call(t, "load", args)
			if a.OK && string(a.Value) != c.js || !a.OK && !strings.Contains(a.Message, c.js) {
				t.Errorf("javascript: %v, want %s", a, c.js)
			}
			claim, err := g.Load(context.Background(), interopID, nil)
			if !errors.Is(err, c.want) || err == nil && string(claim.Payload) != c.text {
				t.Errorf("go: %v, want %v", err, c.want)
			}
			if err == nil {
				interopOK(t, claim.Close())
			}
		})
	}
	// A producer of the package writes what no consumer takes; Go's is refused at once.
	interopOK(t, os.Remove(d.claimFile()))
	long := strings.Repeat("x", maxIDBytes+1)
	p.must(t, "enqueue", interopArgs{"queue": d.Queue, "id": long, "entry": 1}, nil)
	if a := p.call(t, "load", interopArgs{"queue": d.Queue, "id": long}); a.Code != "ENAMETOOLONG" {
		t.Errorf("javascript: %v", a)
	}
	if _, err := g.Enqueue(context.Background(), long, []byte("1")); !errors.Is(err, ErrInvalidPath) {
		t.Errorf("go: %v", err)
	}
	if _, err := g.Enqueue(context.Background(), interopID, []byte(`"`+strings.Repeat("x", 99)+`"`)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("go: %v", err)
	}
	b, err := g.LoadPending(context.Background(), nil)
	if err != nil || len(b.Claims) > 0 || len(b.Skipped) != 1 || b.Skipped[0].ID != long || !errors.Is(b.Skipped[0].Err, ErrInvalidPath) {
		t.Errorf("go's batch: %+v %v", b, err)
	}
}
