//go:build unix

package holdfast

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
)

type migrateKey struct{}

func migrateTo(payload []byte, err error) *LoadOptions {
	return &LoadOptions{Migrate: func(context.Context, string, []byte) ([]byte, error) { return payload, err }}
}

// A migration replaces the claim, which goes on being this Claim's.
func TestMigrate(t *testing.T) {
	eachUnitWay(t, func(t *testing.T, w unitWay) {
		for _, batch := range []bool{false, true} {
			s, d := newUnitStore(t, w)
			ctx := context.WithValue(t.Context(), migrateKey{}, "ours")
			unitPut(t, d.at("a.json"), `{"v":1}`)
			migrate := func(ctx context.Context, id string, payload []byte) ([]byte, error) {
				if ctx.Value(migrateKey{}) != "ours" || id != "a" || string(payload) != `{"v":1}` {
					t.Errorf("called with %v, %s, %s", ctx, id, payload)
				}
				// The lock is not held meanwhile: this entry's own transitions go on.
				d.wantNames(t, `a.processing {"v":1}`, "")
				unitEnqueue(t, s, "a", `"newer"`)
				return []byte(`{"v":2}`), nil
			}
			var c *Claim
			var err error
			if batch {
				var b Batch
				b, err = s.LoadPending(ctx, &BatchOptions{Migrate: migrate})
				if len(b.Claims) == 1 {
					c = b.Claims[0]
				}
			} else {
				c, err = s.Load(ctx, "a", &LoadOptions{Migrate: migrate})
			}
			const want = "{\n  \"v\": 2\n}"
			if err != nil || c == nil || string(c.Payload) != want {
				t.Fatalf("loaded %+v, %v", c, err)
			}
			d.wantNames(t, `a.json "newer", a.processing `+want, "")
			again := unitLoad(t, s, "a", want)
			if again.identity() != c.identity() {
				t.Error("the claim is another file than its Claim's")
			}
			unitOK(t, s.Fail(ctx, c))
			d.wantNames(t, `a.json "newer"`, "a.json "+want)
		}
	})
}

// A migration that gives nothing changes nothing; one that fails is the load's error, and
// the entry stays claimed as it was.
func TestMigrateNothing(t *testing.T) {
	failed := errors.New("too old")
	for _, c := range []struct {
		name string
		o    *LoadOptions
		want error
	}{
		{"no options", nil, nil},
		{"no callback", &LoadOptions{}, nil},
		{"nil", migrateTo(nil, nil), nil},
		{"an error", migrateTo(nil, failed), failed},
		{"an error beside a payload", migrateTo([]byte(`2`), failed), failed},
		{"no JSON", migrateTo([]byte(`{"v":`), nil), ErrMigration},
		{"empty", migrateTo([]byte{}, nil), ErrMigration},
		{"too large", migrateTo([]byte(`"`+strings.Repeat("x", 99)+`"`), nil), ErrMigration},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachUnitWay(t, func(t *testing.T, w unitWay) {
				d := newUnitDirs(t)
				watch := crashtest.Wrap(w.refuseFS(t, nil, nil), crashtest.Plan{})
				s := d.open(t, w, Options{MaxEntryBytes: 100, fs: watch})
				refuseClaimed(t, d, "a", `1`)
				before, open := d.tree(t), len(watch.Open())
				claim, err := s.Load(t.Context(), "a", c.o)
				if errors.Is(err, ErrInvalidJSON) || errors.Is(err, ErrTooLarge) {
					t.Errorf("%v blames the entry", err)
				}
				if !errors.Is(err, c.want) || (claim != nil) != (c.want == nil) {
					t.Errorf("loaded %+v, %v; want %v", claim, err, c.want)
				}
				var batch BatchOptions
				if c.o != nil {
					batch.Migrate = c.o.Migrate
				}
				b, berr := s.LoadPending(t.Context(), &batch)
				if !errors.Is(berr, c.want) || (len(b.Claims) == 1) != (c.want == nil) || len(b.Skipped) > 0 {
					t.Errorf("batch %+v, %v; want %v", b, berr, c.want)
				}
				unitUnchanged(t, before, d.tree(t))
				if c.want != nil {
					if left := watch.Open(); len(left) != open {
						t.Errorf("left open: %q", left)
					}
				}
				unitOK(t, s.Ack(t.Context(), unitLoad(t, s, "a", "1")))
			})
		})
	}
}

// A claim that is another file by the time that the callback returns is left alone, though
// its bytes may be the same.
func TestMigrateChangedClaim(t *testing.T) {
	for _, c := range []struct {
		name   string
		meddle func(t *testing.T, s *Store, d unitDirs)
	}{
		{"acked", func(t *testing.T, s *Store, d unitDirs) { unitOK(t, s.AckID(t.Context(), "a")) }},
		{"set aside", func(t *testing.T, s *Store, d unitDirs) { unitOK(t, s.FailID(t.Context(), "a")) }},
		{"acked, and a newer one claimed", func(t *testing.T, s *Store, d unitDirs) {
			unitEnqueue(t, s, "a", `1`)
			unitOK(t, s.AckID(t.Context(), "a"))
			unitLoad(t, s, "a", "1")
		}},
		{"migrated by another", func(t *testing.T, s *Store, d unitDirs) {
			c, err := s.Load(t.Context(), "a", migrateTo([]byte(`1`), nil))
			unitOK(t, err)
			unitOK(t, c.Close())
		}},
		{"linked", func(t *testing.T, s *Store, d unitDirs) { unitOK(t, os.Link(d.at("a.processing"), d.at("other"))) }},
		{"a directory", func(t *testing.T, s *Store, d unitDirs) {
			unitOK(t, os.Remove(d.at("a.processing")), os.Mkdir(d.at("a.processing"), 0o700))
		}},
		{"a symlink to what it was", func(t *testing.T, s *Store, d unitDirs) {
			unitOK(t, os.Rename(d.at("a.processing"), d.at("was")), os.Symlink("was", d.at("a.processing")))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachUnitWay(t, func(t *testing.T, w unitWay) {
				s, d := newUnitStore(t, w)
				refuseClaimed(t, d, "a", `1`)
				var before string
				claim, err := s.Load(t.Context(), "a", &LoadOptions{Migrate: func(context.Context, string, []byte) ([]byte, error) {
					c.meddle(t, s, d)
					before = d.tree(t)
					return []byte(`2`), nil
				}})
				unitIs(t, "load", err, ErrPathMismatch, "a.processing")
				if claim != nil {
					t.Error("a claim beside an error")
				}
				unitUnchanged(t, before, d.tree(t))
			})
		})
	}
}

// Whatever fails on the way, either the old payload stands or the new one, and no
// temporary file is left.
func TestMigrateFails(t *testing.T) {
	for n := 1; ; n++ {
		d := newUnitDirs(t)
		w := crashtest.Wrap(fsguard.OS(), crashtest.Plan{})
		s := d.open(t, unitWay{Auto, RenameNoReplace}, Options{fs: w})
		refuseClaimed(t, d, "a", `1`)
		w.Arm(crashtest.FailAt(n, syscall.EIO))
		claim, err := s.Load(t.Context(), "a", migrateTo([]byte(`2`), nil))
		if !w.Fired() {
			if err != nil || n < 8 {
				t.Errorf("after %d operations: %v", n, err)
			}
			unitOK(t, claim.Close())
			return
		}
		unitIs(t, "load", err, syscall.EIO)
		if claim != nil {
			t.Error("a claim beside an error")
		}
		names := unitNames(t, d.queue)
		lock := namesOf("a").lock
		if strings.Contains(names, lock) { // its removal is what failed
			unitOK(t, os.Remove(d.at(lock)))
			names = unitNames(t, d.queue)
		}
		if names != "a.processing 1" && names != "a.processing 2" {
			t.Errorf("operation %d: the queue holds %q\n%s", n, names, w.Trace())
		}
		if v := w.Violations(); len(v) > 0 {
			t.Error(v)
		}
		unitOK(t, s.Ack(t.Context(), unitLoad(t, s, "a", strings.TrimPrefix(names, "a.processing "))))
	}
}
