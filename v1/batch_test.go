//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// batchIDs tells what came of a batch.
func batchIDs(b Batch) string {
	var out []string
	for _, c := range b.Claims {
		out = append(out, c.ID)
	}
	for _, s := range b.Skipped {
		out = append(out, "!"+s.ID)
	}
	return strings.Join(out, " ")
}

func batchClose(t testing.TB, b Batch) {
	t.Helper()
	for _, c := range b.Claims {
		unitOK(t, c.Close())
	}
}

// Everything comes, pending and claimed, in the order of the IDs; what cannot be owned or
// read is named and stays.
func TestLoadPending(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		d := newUnitDirs(t)
		s := d.open(t, w, Options{MaxEntryBytes: 100})
		for i, id := range []string{"b", "a-1", "a", "A", "Z"} {
			unitPut(t, d.at(id+".json"), fmt.Sprint(i))
		}
		refuseClaimed(t, d, "c", `"claimed"`)
		refuseClaimed(t, d, "d", `"claimed"`)
		unitPut(t, d.at("d.json"), `"newer"`)
		unitPut(t, d.at("x-json.json"), `{`)
		refuseClaimed(t, d, "x-large", `"`+strings.Repeat("x", 99)+`"`)
		unitPut(t, d.at("x-linked.json"), `1`)
		unitOK(t, os.Link(d.at("x-linked.json"), d.at("linked")))
		b, err := s.LoadPending(t.Context(), nil)
		if got, want := batchIDs(b), "A Z a a-1 b c d !x-json !x-large !x-linked"; err != nil || got != want {
			t.Fatalf("got %s, %v; want %s", got, err, want)
		}
		for i, want := range []error{ErrInvalidJSON, ErrTooLarge, ErrPathMismatch} {
			unitIs(t, b.Skipped[i].ID, b.Skipped[i].Err, want, b.Skipped[i].ID)
		}
		for i, want := range []string{"3", "4", "2", "1", "0", `"claimed"`, `"claimed"`} {
			if got := string(b.Claims[i].Payload); got != want {
				t.Errorf("%s holds %s, want %s", b.Claims[i].ID, got, want)
			}
		}
		for _, c := range b.Claims {
			unitOK(t, s.Ack(t.Context(), c))
		}
		d.wantNames(t, `d.json "newer", linked 1, x-json.processing {, x-large.processing "`+strings.Repeat("x", 99)+`", x-linked.json 1`, "")
	})
}

// Limit counts what comes back, and After goes on behind it: together they page.
func TestLoadPendingPages(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		s, d := newUnitStore(t, w)
		for _, id := range []string{"a", "b", "d", "e"} {
			unitPut(t, d.at(id+".json"), `1`)
		}
		unitPut(t, d.at("c.json"), `{`)
		for _, c := range []struct {
			o    BatchOptions
			want string
		}{
			{BatchOptions{Limit: 2}, "a b"},
			{BatchOptions{After: "b", Limit: 2}, "d e !c"},
			{BatchOptions{After: "b", Limit: 1}, "d !c"},
			{BatchOptions{After: "bb"}, "d e !c"},
			{BatchOptions{After: "e"}, ""},
			{BatchOptions{After: "zz", Limit: 1}, ""},
			{BatchOptions{Limit: 100}, "a b d e !c"},
		} {
			b, err := s.LoadPending(t.Context(), &c.o)
			if got := batchIDs(b); err != nil || got != c.want {
				t.Errorf("%+v: got %s, %v; want %s", c.o, got, err, c.want)
			}
			batchClose(t, b)
		}
	})
}

// What lies behind the limit is not claimed.
func TestLoadPendingLimitClaimsNoMore(t *testing.T) {
	s, d := newUnitStore(t, unitWay{Auto, RenameNoReplace})
	unitPut(t, d.at("a.json"), `1`)
	unitPut(t, d.at("b.json"), `2`)
	b, err := s.LoadPending(t.Context(), &BatchOptions{Limit: 1})
	if batchIDs(b) != "a" || err != nil {
		t.Errorf("got %s, %v", batchIDs(b), err)
	}
	batchClose(t, b)
	d.wantNames(t, "a.processing 1, b.json 2", "")
}

// One failure does not keep the others from coming, and each is named.
func TestLoadPendingFailures(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		clock := newUnitClock()
		d := newUnitDirs(t)
		s := d.open(t, w, clock.on(Options{}))
		for _, id := range []string{"a", "b", "c", "d"} {
			unitPut(t, d.at(id+".json"), `1`)
		}
		unitPut(t, d.at(namesOf("a").lock), trialRecord(t, clock.now().Add(-time.Hour), nil))
		unitPut(t, d.at("e.delivered"), "")
		unitPut(t, d.at(namesOf("e").lock), trialRecord(t, clock.now().Add(-time.Hour), nil))
		failed := errors.New("too old")
		b, err := s.LoadPending(t.Context(), &BatchOptions{Migrate: func(_ context.Context, id string, _ []byte) ([]byte, error) {
			if id == "c" {
				return nil, failed
			}
			return nil, nil
		}})
		if got := batchIDs(b); got != "b d" {
			t.Errorf("got %s, want b d", got)
		}
		unitIs(t, "batch", err, ErrLockStale, "a.json", namesOf("a").lock, namesOf("e").lock)
		unitIs(t, "batch", err, failed, "c.json", "too old")
		for _, word := range []string{"b.json", "d.json"} {
			if strings.Contains(err.Error(), word) {
				t.Errorf("%q tells of %s", err, word)
			}
		}
		batchClose(t, b)
		unitOK(t, os.Remove(d.at(namesOf("a").lock)), os.Remove(d.at(namesOf("e").lock)))
		b, err = s.LoadPending(t.Context(), nil)
		if got := batchIDs(b); got != "a b c d" || err != nil {
			t.Errorf("got %s, %v", got, err)
		}
		batchClose(t, b)
		d.wantNames(t, "a.processing 1, b.processing 1, c.processing 1, d.processing 1", "")
	})
}

// A context that ends on the way gives what came so far, and its error.
func TestLoadPendingCancelled(t *testing.T) {
	s, d := newUnitStore(t, unitWay{Auto, RenameNoReplace})
	for _, id := range []string{"a", "b", "c"} {
		unitPut(t, d.at(id+".json"), `1`)
	}
	ctx, cancel := context.WithCancel(t.Context())
	b, err := s.LoadPending(ctx, &BatchOptions{Migrate: func(_ context.Context, id string, _ []byte) ([]byte, error) {
		if id == "b" {
			cancel()
		}
		return nil, nil
	}})
	unitIs(t, "batch", err, context.Canceled)
	if got := batchIDs(b); got != "a b" {
		t.Errorf("got %s, want a b", got)
	}
	batchClose(t, b)
	d.wantNames(t, "a.processing 1, b.processing 1, c.json 1", "")
}

// Temporary files go by age, whoever made them, and only if that is asked for.
func TestLoadPendingTemporary(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		const age = time.Hour
		clock := newUnitClock()
		d := newUnitDirs(t)
		s := d.open(t, w, clock.on(Options{}))
		for name, old := range map[string]time.Duration{
			tempName("holdfast"): age, "other.123.x.tmp": age + time.Nanosecond, "x.tmp": 24 * time.Hour, ".hidden.tmp": age,
			"young.tmp": age - time.Nanosecond, "to-come.tmp": -age, "old.txt": 24 * time.Hour, "tmp": 24 * time.Hour, "x.tmp.json.bak": 24 * time.Hour,
		} {
			unitPut(t, d.at(name), "")
			at := clock.now().Add(-old)
			unitOK(t, os.Chtimes(d.at(name), at, at))
		}
		unitPut(t, d.at("a.tmp.json"), `1`) // an entry, whatever its name
		before := d.tree(t)
		b, err := s.LoadPending(t.Context(), &BatchOptions{After: "z"})
		if err != nil || len(b.Claims) > 0 {
			t.Errorf("batch %+v, %v", b, err)
		}
		unitUnchanged(t, before, d.tree(t))
		b, err = s.LoadPending(t.Context(), &BatchOptions{After: "z", TempMaxAge: age})
		if err != nil || len(b.Claims) > 0 {
			t.Errorf("batch %+v, %v", b, err)
		}
		d.wantNames(t, "a.tmp.json 1, old.txt, tmp, to-come.tmp, x.tmp.json.bak, young.tmp", "")
	})
}

// Delivered markers that an interrupted ack left are taken away, and are no entries.
func TestLoadPendingMarkers(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		s, d := newUnitStore(t, w)
		unitPut(t, d.at("a.delivered"), `"done"`)
		unitPut(t, d.at("b.delivered"), `"done"`)
		unitPut(t, d.at("b.json"), `"newer"`)
		refuseClaimed(t, d, "c", `"claimed"`)
		unitPut(t, d.at("c.delivered"), `"done"`)
		unitPut(t, d.at("not an ID.delivered"), "")
		if st, err := s.Status(t.Context()); err != nil || st != (Status{Pending: 1, Processing: 1, Delivered: 3}) {
			t.Errorf("status %+v, %v", st, err)
		}
		b, err := s.LoadPending(t.Context(), &BatchOptions{Limit: 1})
		if got := batchIDs(b); err != nil || got != "b" || string(b.Claims[0].Payload) != `"newer"` {
			t.Errorf("got %s, %v", got, err)
		}
		batchClose(t, b)
		d.wantNames(t, `b.processing "newer", c.processing "claimed", not an ID.delivered`, "")
		// An ack over a marker, and one that finds nothing else.
		unitPut(t, d.at("c.delivered"), `"done"`)
		unitPut(t, d.at("d.delivered"), `"done"`)
		unitOK(t, s.AckID(t.Context(), "c"), s.AckID(t.Context(), "d"))
		d.wantNames(t, `b.processing "newer", not an ID.delivered`, "")
	})
}
