//go:build unix

package holdfast

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The life of an entry is the same in every way, down to the names.
func TestLife(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		s, d := newUnitStore(t, w)
		ctx := t.Context()
		unitEnqueue(t, s, "a", `{"n":1}`)
		unitEnqueue(t, s, "b", `2`)
		d.wantNames(t, "a.json {\n  \"n\": 1\n}, b.json 2", "")
		c := unitLoad(t, s, "a", "{\n  \"n\": 1\n}")
		unitEnqueue(t, s, "a", `"newer"`)
		d.wantNames(t, `a.json "newer", a.processing {`+"\n  \"n\": 1\n}, b.json 2", "")
		unitIs(t, "ack of nothing", s.AckID(ctx, "nothing"), nil)
		unitIs(t, "ack of what is only pending", s.AckID(ctx, "b"), ErrPathMismatch, "b.json")
		unitOK(t, s.Ack(ctx, c))
		d.wantNames(t, `a.json "newer", b.json 2`, "")
		unitOK(t, s.FailID(ctx, "b"))
		d.wantNames(t, `a.json "newer"`, "b.json 2")
		unitOK(t, s.Fail(ctx, unitLoad(t, s, "a", `"newer"`)))
		d.wantNames(t, "", `a.json "newer", b.json 2`)
		for what, err := range map[string]error{
			"load":   func() error { _, err := s.Load(ctx, "a", nil); return err }(),
			"fail":   s.FailID(ctx, "c"),
			"load c": func() error { _, err := s.Load(ctx, "c", nil); return err }(),
		} {
			unitIs(t, what, err, ErrNotFound, ".json")
		}
		unitIs(t, "fail again", s.FailID(ctx, "a"), nil) // evidence, and nothing left to move
	})
}

// A claim that stands is the same for everybody: in one process without a pause,
// whichever handle asks.
func TestTwoHandles(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		d := newUnitDirs(t)
		one, two := d.open(t, w, Options{}), d.open(t, w, Options{})
		unitEnqueue(t, one, "a", `1`)
		var wg sync.WaitGroup
		claims := make(chan *Claim, 16)
		for i := range 16 {
			s := one
			if i%2 == 1 {
				s = two
			}
			wg.Go(func() {
				c, err := s.Load(t.Context(), "a", nil)
				if err != nil {
					t.Error(err)
					return
				}
				claims <- c
			})
		}
		wg.Wait()
		close(claims)
		var all []*Claim
		for c := range claims {
			if len(all) > 0 && c.identity() != all[0].identity() {
				t.Errorf("two generations are claimed: %v and %v", c.identity(), all[0].identity())
			}
			all = append(all, c)
		}
		if len(all) != 16 {
			t.Fatalf("%d claims", len(all))
		}
		for i, c := range all {
			s := []*Store{one, two}[i/8]
			wg.Go(func() {
				if err := s.Ack(t.Context(), c); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		d.wantNames(t, "", "")
	})
}

// Two routes work on one directory at once.
func TestMixedRoutes(t *testing.T) {
	t.Parallel()
	d := newUnitDirs(t)
	ctx := t.Context()
	links, renames := d.open(t, unitWay{Auto, HardLink}, Options{}), d.open(t, unitWay{Auto, RenameNoReplace}, Options{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	for n := range 40 {
		unitEnqueue(t, links, fmt.Sprintf("m%02d", n), fmt.Sprint(n))
	}
	for _, s := range []*Store{links, renames, links, renames} {
		wg.Go(func() {
			b, err := s.LoadPending(ctx, nil)
			if err != nil || len(b.Skipped) > 0 {
				t.Error(err, b.Skipped)
			}
			for i, c := range b.Claims {
				if want := fmt.Sprintf("m%s", strings.Repeat("0", 2-len(c.Payload))+string(c.Payload)); c.ID != want {
					t.Errorf("%s holds %s", c.ID, c.Payload)
				}
				mu.Lock()
				seen[c.ID]++
				mu.Unlock()
				if i%2 == 0 {
					err = s.Ack(ctx, c)
				} else if err = s.Fail(ctx, c); errors.Is(err, ErrNotFound) {
					err = c.Close() // settled by another consumer of the same claim
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(seen) != 40 {
		t.Errorf("%d of 40 entries were delivered", len(seen))
	}
	st, err := links.Status(ctx)
	if err != nil || st.Pending+st.Processing+st.Delivered+st.Locks+st.Temporary != 0 {
		t.Errorf("left: %+v, %v", st, err)
	}
}

// What a Claim may do ends with its Close, its Ack and its Fail, not with the Store.
func TestClosedClaim(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		s, d := newUnitStore(t, w)
		ctx := t.Context()
		unitEnqueue(t, s, "a", `1`)
		c := unitLoad(t, s, "a", "1")
		unitOK(t, c.Close(), c.Close())
		before := d.tree(t)
		unitIs(t, "ack", s.Ack(ctx, c), ErrSettled, "a.processing")
		unitIs(t, "fail", s.Fail(ctx, c), ErrSettled, "a.processing")
		unitUnchanged(t, before, d.tree(t))
		again := unitLoad(t, s, "a", "1")
		unitOK(t, s.Ack(ctx, again))
		unitIs(t, "ack after the ack", s.Ack(ctx, again), ErrSettled)

		other, err := Open(d.queue, &Options{FailedDir: d.failed, ClaimBy: w.route, Mechanism: w.mechanism})
		unitOK(t, err)
		unitEnqueue(t, s, "b", `2`)
		kept := unitLoad(t, other, "b", "2")
		unitOK(t, other.Close())
		if _, err := other.Load(ctx, "b", nil); err == nil {
			t.Error("a closed store loads")
		}
		unitOK(t, s.Ack(ctx, kept)) // any store of the directory settles it
	})
}

// An older Claim of an ID is told from the newer one that stands, and from a newer entry.
func TestStaleClaim(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		s, d := newUnitStore(t, w)
		ctx := t.Context()
		unitEnqueue(t, s, "a", `1`)
		stale := unitLoad(t, s, "a", "1")
		unitOK(t, s.AckID(ctx, "a"))
		unitIs(t, "fail of what is settled", s.Fail(ctx, stale), ErrNotFound, "a.processing")
		unitEnqueue(t, s, "a", `1`) // the same bytes
		before := d.tree(t)
		unitIs(t, "ack before a newer entry", s.Ack(ctx, stale), ErrPathMismatch, "a.json")
		unitUnchanged(t, before, d.tree(t))
		newer := unitLoad(t, s, "a", "1")
		before = d.tree(t)
		unitIs(t, "ack beside a newer claim", s.Ack(ctx, stale), ErrPathMismatch, "a.processing")
		unitIs(t, "fail beside a newer claim", s.Fail(ctx, stale), ErrPathMismatch, "a.processing")
		unitUnchanged(t, before, d.tree(t))
		unitOK(t, s.Ack(ctx, newer))
		unitOK(t, s.Ack(ctx, stale)) // nothing is left of its ID: as good as its own
		d.wantNames(t, "", "")
	})
}

// A quarantine that was cut off between its two names is finished by whoever asks again,
// with the Claim or by ID; other evidence is never taken for its own.
func TestInterruptedQuarantine(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		s, d := newUnitStore(t, w)
		for _, by := range []string{"claim", "ID"} {
			refuseClaimed(t, d, "a", `1`)
			unitPut(t, d.at("a.json"), `"newer"`)
			c := unitLoad(t, s, "a", "1")
			evidence := filepath.Join(d.failed, "a.json")
			unitPut(t, evidence, `1`) // the same bytes
			before := d.tree(t)
			unitIs(t, by, s.Fail(t.Context(), c), ErrAlreadyExists, "a.json")
			unitUnchanged(t, before, d.tree(t))
			unitOK(t, os.Remove(evidence), os.Link(d.at("a.processing"), evidence))
			if by == "claim" {
				unitOK(t, s.Fail(t.Context(), c))
			} else {
				unitOK(t, s.FailID(t.Context(), "a"))
				unitOK(t, s.Fail(t.Context(), c)) // its own evidence stands already
			}
			d.wantNames(t, `a.json "newer"`, "a.json 1")
			unitOK(t, os.Remove(evidence), os.Remove(d.at("a.json")))
		}
	})
}
