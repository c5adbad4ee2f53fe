//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/queue"
)

// onFullableDisk is a store on a simulated disk, without a floor.
func onFullableDisk(t *testing.T, n int) (*crashtest.Disk, *Store) {
	t.Helper()
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	o := crashOptions(d.Process())
	o.MinFreeBytes = -1
	s, err := Create(t.Context(), crashDir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	mustEnqueue(t, s, "mail", smalls(n)...)
	return d, s
}

// After a settlement gave the reserve up, claims go on only for as long as what they
// take can be settled, with the longest labels, and recovered from.
func TestClaimsWithoutAReserveCanBeSettled(t *testing.T) {
	alone(t)
	for _, label := range []string{strings.Repeat("w", queue.MaxNameBytes), strings.Repeat(`"`, queue.MaxNameBytes), ""} {
		for _, most := range []int{20, 900} {
			d, s := onFullableDisk(t, 1000)
			held := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 2})
			d.SetFree(0)
			mustDo(t, s.Ack(t.Context(), held[0].Receipt))
			held = held[1:]
			for {
				c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: most, Label: label})
				held = append(held, c.Deliveries...)
				if err != nil {
					if !errors.Is(err, queue.ErrFull) {
						t.Fatal(err)
					}
					break
				}
				if len(c.Deliveries) == 0 {
					break
				}
			}
			d.WriteRaw(crashDir+"/"+namespaceDir+"/"+lockFile, encodeRecord(newOwner(token{7}, crashClock.at)))
			if _, err := s.Recover(t.Context()); err != nil {
				t.Errorf("recover after %d claims: %v", len(held), err)
			}
			for i, x := range held {
				if err := s.Ack(t.Context(), x.Receipt); err != nil {
					t.Fatalf("label %.3q, ack %d of %d: %v", label, i, len(held), err)
				}
			}
		}
	}
}

// Failures with long causes do not outgrow the reserve, neither before the disk fills
// nor after.
func TestFailuresAndTheReserve(t *testing.T) {
	alone(t)
	for _, cause := range []string{strings.Repeat("c", 1024), strings.Repeat("\x1b", 1024)} {
		for _, before := range []int{0, 150} {
			t.Run(fmt.Sprintf("%.1q after %d", cause, before), func(t *testing.T) {
				d, s := onFullableDisk(t, 250)
				held := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 250})
				for i, x := range held {
					if i == before {
						d.SetFree(0)
					}
					var err error
					if i%2 == 0 || i < before {
						_, err = s.Fail(t.Context(), x.Receipt, queue.FailOptions{Cause: cause})
					} else {
						err = s.Ack(t.Context(), x.Receipt)
					}
					if err != nil {
						t.Fatalf("settling %d of %d: %v", i, len(held), err)
					}
				}
			})
		}
	}
}

// Causes that are written six bytes for one keep to the bound in one commit as in many,
// and what makes a state smaller is never refused for its size.
func TestGroupedFailuresKeepToTheBound(t *testing.T) {
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	o := crashOptions(d.Process())
	o.MaxStateBytes, o.block = leastStateBytes, -1
	s, err := Create(t.Context(), crashDir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	held := fillToTheBound(t, s, "mail", "")
	cause := strings.Repeat("\x1b", 1024)
	fail := func(r queue.Receipt) func() error {
		return func() error {
			_, err := s.Fail(t.Context(), r, queue.FailOptions{Cause: cause})
			return err
		}
	}
	var calls []func() error
	for _, x := range held[:14] {
		calls = append(calls, fail(x.Receipt))
	}
	mustDo(t, errors.Join(together(t, d, s, calls...)...))
	rest := held[14:]
	for i, x := range rest[:len(rest)/2] {
		if err := fail(x.Receipt)(); err != nil {
			t.Fatalf("fail %d: %v", i, err)
		}
	}
	for range maxResolved + 2 {
		d.WriteRaw(crashDir+"/"+namespaceDir+"/"+lockFile, encodeRecord(newOwner(token{7}, crashClock.at)))
		if _, err := s.Recover(t.Context()); err != nil {
			t.Fatalf("recover: %v", err)
		}
	}
	for i, x := range rest[len(rest)/2:] {
		if err := s.Ack(t.Context(), x.Receipt); err != nil {
			t.Fatalf("ack %d: %v", i, err)
		}
	}
}

// An enqueue that finds no room does not take the claims beside it down.
func TestClaimBesideAnEnqueueWithoutRoom(t *testing.T) {
	d, s := onFullableDisk(t, 3)
	d.SetFree(30 << 10)
	var claimed queue.Claimed
	var loaded error
	errs := together(t, d, s,
		func() error {
			_, err := s.Enqueue(t.Context(), "mail", queue.Message{Payload: []byte(`"` + strings.Repeat("x", 50<<10) + `"`)})
			return err
		},
		func() (err error) { claimed, err = s.Claim(t.Context(), "mail", queue.ClaimOptions{}); return err },
		func() error { _, loaded = s.Load(t.Context(), "mail", "none", queue.LoadOptions{}); return nil },
	)
	if !errors.Is(errs[0], queue.ErrFull) {
		t.Errorf("enqueue: %v", errs[0])
	}
	if errs[1] != nil || len(claimed.Deliveries) != 1 || !errors.Is(loaded, queue.ErrNotFound) {
		t.Errorf("claim: %v, %+v; load: %v", errs[1], claimed, loaded)
	}
}
