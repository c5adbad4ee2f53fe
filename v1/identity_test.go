//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

// Which file an entry is, is told by its device and inode, never by its ID or bytes.
// Every rule that rests on it has a test here, by both routes.

// identityScene is a store over a wrapper, on a simulated disk, which uses the numbers
// of inodes again as soon as it can.
type identityScene struct {
	*Store
	disk *crashtest.Disk
	w    *crashtest.Wrapper
}

func identityStore(t *testing.T, route Route, st crashState) identityScene {
	t.Helper()
	d := crashtest.NewDisk()
	plantDirs(d)
	plantState(d, crashID, st)
	w := crashtest.Wrap(d.Process(), crashtest.Plan{})
	s := mustOpen(t, w, route)
	s.link.proven = true
	return identityScene{s, d, w}
}

// other is another process's store on the same disk.
func (s identityScene) other(t *testing.T, route Route) *Store {
	t.Helper()
	return mustOpen(t, s.disk.Process(), route)
}

func (s identityScene) is(t *testing.T, want crashState) {
	t.Helper()
	if got, err := lookAt(s.Store, crashID); err != nil || got != want {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

func mustLoad(t *testing.T, s *Store, want string) *Claim {
	t.Helper()
	c, err := s.Load(t.Context(), crashID, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.drop)
	if string(c.Payload) != want {
		t.Fatalf("loaded %s, want %s", c.Payload, want)
	}
	return c
}

func mustPut(t *testing.T, s *Store, payload string) {
	t.Helper()
	if _, err := s.Enqueue(t.Context(), crashID, []byte(payload)); err != nil {
		t.Fatal(err)
	}
}

func byRoute(t *testing.T, f func(t *testing.T, route Route)) {
	for _, route := range bothRoutes {
		t.Run(route.String(), func(t *testing.T) { f(t, route) })
	}
}

// Before any operation of a load: whichever has the pending name at the call that
// claims is the claimed one, and the other waits or was replaced.
func TestNewerEntryDuringALoad(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		seen := map[string]int{}
		for k := 1; ; k++ {
			s := identityStore(t, route, crashState{pending: genA})
			o := s.other(t, route)
			n := 0
			s.w.Arm(watchOps(func(fsguard.Op, string) {
				if n++; n == k {
					mustPut(t, o, genB)
				}
			}))
			c, err := s.Load(t.Context(), crashID, nil)
			if err != nil {
				t.Fatalf("before operation %d: %v", k, err)
			}
			defer c.drop()
			s.w.Arm(crashtest.Plan{})
			if n < k {
				break
			}
			want := crashState{claimed: genB}
			if string(c.Payload) == genA {
				want = crashState{claimed: genA, pending: genB}
			}
			seen[string(c.Payload)]++
			s.is(t, want)
		}
		if seen[genA] == 0 || seen[genB] == 0 {
			t.Errorf("claimed: %v; both should have been", seen)
		}
	})
}

// One newer entry comes after the claim and is taken by the retirement, another before
// any operation from then on: the last one waits, whichever was put back meanwhile.
func TestNewestEntryDuringARestore(t *testing.T) {
	for k := 1; ; k++ {
		s := identityStore(t, HardLink, crashState{pending: genA})
		o := s.other(t, HardLink)
		n := 0
		s.w.Arm(watchOps(func(op fsguard.Op, _ string) {
			if n == 0 && op == fsguard.OpMove {
				mustPut(t, o, genB)
				n = 1
			} else if n > 0 {
				if n++; n == k+1 {
					mustPut(t, o, genC)
				}
			}
		}))
		c, err := s.Load(t.Context(), crashID, nil)
		if err != nil {
			t.Fatalf("before operation %d of the retirement: %v", k, err)
		}
		s.w.Arm(crashtest.Plan{})
		c.drop()
		if n < k+1 {
			s.is(t, crashState{claimed: genA, pending: genB})
			break
		}
		s.is(t, crashState{claimed: genA, pending: genC})
	}
}

// The source of the claim is replaced just before the call, after it was looked at.
func TestSourceReplacedJustBeforeTheClaim(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		s := identityStore(t, route, crashState{pending: genA})
		o := s.other(t, route)
		s.w.Arm(watchOps(func(op fsguard.Op, path string) {
			if path == "a.processing" && (op == fsguard.OpLink || op == fsguard.OpMoveNew) {
				mustPut(t, o, genB)
			}
		}))
		mustLoad(t, s.Store, genB)
		s.is(t, crashState{claimed: genB})
	})
}

// Equal bytes under one ID are two generations all the same.
func TestEqualBytesAreTwoGenerations(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		s := identityStore(t, route, crashState{pending: genA})
		o := s.other(t, route)
		claimed, put := afterClaim(route), false
		s.w.Arm(watchOps(func(op fsguard.Op, path string) {
			if !put && claimed(op, path) {
				put = true
				mustPut(t, o, genA)
			}
		}))
		c := mustLoad(t, s.Store, genA)
		s.is(t, crashState{claimed: genA, pending: genA})
		if err := s.Ack(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		s.is(t, crashState{pending: genA})
	})
}

// Another consumer settled the claim and a newer one of equal bytes stands: it is left
// alone.
func TestSwappedClaimIsRefused(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		for _, end := range settlings {
			s := identityStore(t, route, crashState{pending: genA})
			c := mustLoad(t, s.Store, genA)
			swap(t, s.other(t, route), genA)
			if err := end.call(s.Store, t.Context(), c); !errors.Is(err, ErrPathMismatch) {
				t.Errorf("%s: %v, want %v", end.name, err, ErrPathMismatch)
			}
			s.is(t, crashState{claimed: genA})
			if err := s.AckID(t.Context(), crashID); err != nil {
				t.Error(err)
			}
		}
	})
}

// swap settles the claim that stands and claims a newer one.
func swap(t *testing.T, o *Store, newer string) {
	t.Helper()
	if err := o.AckID(t.Context(), crashID); err != nil {
		t.Fatal(err)
	}
	mustPut(t, o, newer)
	mustLoad(t, o, newer)
}

// The claim is swapped during the callback of a migration: its payload is not written
// over the newer one.
func TestLateMigrationIsRefused(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		s := identityStore(t, route, crashState{pending: genA})
		o := s.other(t, route)
		c, err := s.Load(t.Context(), crashID, &LoadOptions{Migrate: func(context.Context, string, []byte) ([]byte, error) {
			swap(t, o, genA)
			return []byte(genM), nil
		}})
		if !errors.Is(err, ErrPathMismatch) || c != nil {
			t.Errorf("%v, %v; want %v", c, err, ErrPathMismatch)
		}
		s.is(t, crashState{claimed: genA})
		if err := noLitter(s.Store); err != nil {
			t.Error(err)
		}
	})
}

// A number is not used again while the claim is held, and is once it is not: the
// descriptor is what tells the two files apart.
func TestHeldClaimKeepsItsInodeNumber(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		for _, held := range []bool{true, false} {
			s := identityStore(t, route, crashState{claimed: genA})
			c := mustLoad(t, s.Store, genA)
			o := s.other(t, route)
			if !held {
				c.drop()
			}
			if err := o.AckID(t.Context(), crashID); err != nil {
				t.Fatal(err)
			}
			s.disk.WriteRaw(inQueue("a.processing"), []byte(genA)) // takes the lowest free number
			info, _, err := lstat(s.queue.dir, "a.processing")
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Identity == c.identity(); got == held {
				t.Fatalf("held %v, and the number is used again: %v", held, got)
			}
			want := ErrPathMismatch
			if err := s.Ack(t.Context(), c); held && !errors.Is(err, want) || !held && !errors.Is(err, ErrSettled) {
				t.Errorf("held %v: %v", held, err)
			}
			s.is(t, crashState{claimed: genA})
		}
	})
}

// A rival without the lock claims between the look and the call: its claim is taken as
// this one's, whole, and the entry that it left pending stays.
func TestRivalClaimIsTaken(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		s := identityStore(t, route, crashState{pending: genA})
		s.w.Arm(watchOps(func(op fsguard.Op, path string) {
			if path == "a.processing" && (op == fsguard.OpLink || op == fsguard.OpMoveNew) {
				s.disk.WriteRaw(inQueue("a.processing"), []byte(genC))
			}
		}))
		mustLoad(t, s.Store, genC)
		if n := s.w.Syncs(); n != 1 {
			t.Errorf("%d syncs, want 1: the rival may not have synced its claim", n)
		}
		s.is(t, crashState{claimed: genC, pending: genA})
	})
}

// A claim whose pending file has another name is nobody's alone: refused, and nothing
// changed.
func TestLinkedEntryIsNotClaimed(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		s := identityStore(t, route, crashState{pending: genA})
		s.disk.HardLink(inQueue("a.json"), inQueue("second"))
		before := s.disk.Tree()
		if _, err := s.Load(t.Context(), crashID, nil); !errors.Is(err, ErrPathMismatch) {
			t.Errorf("load: %v, want %v", err, ErrPathMismatch)
		}
		if after := s.disk.Tree(); after != before {
			t.Errorf("before:\n%safter:\n%s", before, after)
		}
	})
}

// A power loss may undo a producer's rename and not the link that a consumer made of the
// new file: the claim and the producer's temporary file are one then. Nobody was answered.
// It is refused, not guessed at, until the batch loader removes the old temporary file.
func TestClaimOfATemporaryFile(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		s := identityStore(t, route, crashState{pending: genA, claimed: genB})
		s.disk.HardLink(inQueue("a.processing"), inQueue("holdfast.1.x.tmp"))
		if _, err := s.Load(t.Context(), crashID, nil); !errors.Is(err, ErrPathMismatch) {
			t.Errorf("load: %v, want %v", err, ErrPathMismatch)
		}
		b, err := s.LoadPending(t.Context(), &BatchOptions{TempMaxAge: time.Minute})
		if err != nil || len(b.Claims) != 1 || string(b.Claims[0].Payload) != genB {
			t.Fatalf("%+v, %v; want the claim of %s", b, err, genB)
		}
		t.Cleanup(b.Claims[0].drop)
		s.is(t, crashState{pending: genA, claimed: genB})
	})
}

// A store that was swapped for another directory at its path is refused.
func TestSwappedDirectoryIsRefused(t *testing.T) {
	byRoute(t, func(t *testing.T, route Route) {
		s := identityStore(t, route, crashState{claimed: genA})
		c := mustLoad(t, s.Store, genA)
		s.disk.Remove(simPlace.queue)
		s.disk.MkdirAll(simPlace.queue)
		for name, call := range map[string]func() error{
			"ack":     func() error { return s.Ack(t.Context(), c) },
			"fail":    func() error { return s.Fail(t.Context(), c) },
			"enqueue": func() error { _, err := s.Enqueue(t.Context(), crashID, []byte(genB)); return err },
			"load":    func() error { _, err := s.Load(t.Context(), crashID, nil); return err },
		} {
			if err := call(); !errors.Is(err, ErrPathMismatch) {
				t.Errorf("%s: %v, want %v", name, err, ErrPathMismatch)
			}
		}
		if got := fmt.Sprint(s.disk.Exists(inQueue("a.json"))); got != "false" {
			t.Error("something was enqueued in the other directory")
		}
	})
}
