//go:build unix

package holdfast

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// The golden stores are whole store directories under testdata/golden, as programs
// have written them: each must open, verify and show what it showed, or be refused in
// the words of its want.json, for as long as there is a v2. Adding one needs no code:
// put its directory there and run
//
//	go test ./v2 -run Golden -update
//
// which writes every want.json that differs and makes the stores anew that
// goldenStores knows. What git does not keep is not there and is made for the test:
// modes, empty directories, and the reserve.
var update = flag.Bool("update", false, "write the golden stores and what they show")

const goldenDir = "testdata/golden"

// goldenWant is want.json.
type goldenWant struct {
	Refused string        `json:"refused,omitempty"` // the error of opening it
	Is      string        `json:"is,omitempty"`      // which of goldenErrors that is
	Verify  *Report       `json:"verify,omitempty"`
	Status  *queue.Status `json:"status,omitempty"`
	Entries []queue.Entry `json:"entries,omitempty"` // of every queue, then the failed
}

var goldenErrors = map[string]error{
	"ErrNoStore": ErrNoStore, "ErrInterruptedInit": ErrInterruptedInit, "ErrUnsafe": ErrUnsafe,
	"ErrUnsupported": ErrUnsupported, "ErrVersion": ErrVersion, "ErrCorrupt": ErrCorrupt,
}

// goldenNow is when the golden stores are looked at; they were made in the hour before.
var goldenNow = instant{Wall: time.UnixMilli(1_767_323_045_678), BootID: "6f1c2a34-0d1e-4c55-9a77-2d1b8f0e9c11", Boot: 912_345 * time.Millisecond}

func TestGolden(t *testing.T) {
	if *update {
		makeGolden(t)
	}
	cases, err := os.ReadDir(goldenDir)
	mustDo(t, err)
	if len(cases) < 12 {
		t.Errorf("only %d golden stores", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name(), func(t *testing.T) {
			from := filepath.Join(goldenDir, c.Name())
			dir := goldenCopy(t, from)
			got := golden(t, dir)
			text, err := json.MarshalIndent(got, "", "  ")
			mustDo(t, err)
			text = append(text, '\n')
			file := filepath.Join(from, "want.json")
			if *update {
				mustDo(t, os.WriteFile(file, text, 0o644))
			}
			if want := mustRead(t, file); !bytes.Equal(text, want) {
				t.Errorf("shows\n%swant\n%s", text, want)
			}
		})
	}
}

// goldenCopy copies a golden store and gives it what git does not keep.
func goldenCopy(t *testing.T, from string) string {
	t.Helper()
	dir, at := copyOf(t, from)
	mustDo(t, os.Remove(filepath.Join(dir, "want.json")))
	for _, name := range []string{objectsDir, holdersDir} {
		if err := os.Mkdir(at(name), 0o700); !errors.Is(err, fs.ErrExist) {
			mustDo(t, err)
		}
	}
	return dir
}

// golden opens a store, tells what it shows, and checks that nothing of it changes:
// neither by looking nor by encoding again what was decoded.
func golden(t *testing.T, dir string) (w goldenWant) {
	t.Helper()
	ctx := t.Context()
	before := treeOf(t, dir)
	defer unchanged(t, dir, before)
	o := &Options{clock: fixedGolden{}}
	s, err := Open(ctx, dir, o)
	if err != nil {
		w.Refused = strings.ReplaceAll(err.Error(), dir, "ROOT")
		for name, sentinel := range goldenErrors {
			if errors.Is(err, sentinel) {
				w.Is = name
			}
		}
		if _, again := OpenReadOnly(ctx, dir, o); again == nil || again.Error() != err.Error() {
			t.Errorf("open for looking: %v", again)
		}
		return w
	}
	defer s.Close()
	report, err := s.Verify(ctx, VerifyOptions{})
	mustDo(t, err)
	status, err := s.Status(ctx, queue.StatusOptions{Orphans: true})
	mustDo(t, err)
	w.Verify, w.Status = &report, &status
	for _, q := range s.cached.st.queues {
		page, err := s.List(ctx, q.name, queue.ListOptions{Limit: maxClaim})
		mustDo(t, err)
		for _, e := range page.Entries {
			shown, err := s.Show(ctx, q.name, e.ID)
			mustDo(t, err)
			i := slices.IndexFunc(shown, func(x queue.Entry) bool { return x.Generation == e.Generation })
			w.Entries = append(w.Entries, inUTC(shown[i]))
		}
	}
	for _, f := range s.cached.st.failed {
		for _, e := range f.entries {
			shown, err := s.ShowFailed(ctx, e.name, queue.FailedOptions{Namespace: f.name})
			mustDo(t, err)
			w.Entries = append(w.Entries, inUTC(shown))
		}
	}

	text := mustRead(t, filepath.Join(dir, namespaceDir, stateFile))
	st, err := decodeState(text, stateFile, s.id)
	mustDo(t, err)
	for _, q := range st.queues { // what was read is not to be copied but made anew
		for _, sl := range q.slots {
			sl.enc = nil
		}
	}
	for _, f := range st.failed {
		for _, e := range f.entries {
			e.enc = nil
		}
	}
	if again := encodeState(nil, st); !bytes.Equal(again, text) {
		t.Errorf("decoded and encoded again, state.json is\n%swas\n%s", again, text)
	}
	if format := mustRead(t, filepath.Join(dir, namespaceDir, formatFile)); !bytes.Equal(encodeFormat(s.id), format) {
		t.Errorf("format.json is encoded as\n%swas\n%s", encodeFormat(s.id), format)
	}
	return w
}

func inUTC(e queue.Entry) queue.Entry {
	for _, at := range []*time.Time{&e.EnqueuedAt, &e.NotBefore, &e.Deadline, &e.FailedAt} {
		*at = at.UTC()
	}
	return e
}

type fixedGolden struct{}

func (fixedGolden) Now() instant { return goldenNow }

// An old store goes on: what is due in it is claimed and settled, and it verifies.
func TestGoldenStoresGoOn(t *testing.T) {
	for _, name := range []string{"fresh", "busy", "later-fields", "dead-owner"} {
		t.Run(name, func(t *testing.T) {
			dir := goldenCopy(t, filepath.Join(goldenDir, name))
			s, err := Open(t.Context(), dir, &Options{clock: fixedGolden{}})
			mustDo(t, err)
			if _, err := s.Recover(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustEnqueue(t, s, "mail", small("brand-new"))
			d := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 100})
			if !slices.ContainsFunc(d, func(d queue.Delivery) bool { return d.Receipt.ID == "brand-new" }) {
				t.Errorf("claimed %d, not the new one", len(d))
			}
			for _, d := range d {
				mustDo(t, s.Ack(t.Context(), d.Receipt))
			}
			mustDo(t, s.Close())
			mustVerify(t, dir)
		})
	}
}

// makeGolden writes the stores that this program knows how to make.
func makeGolden(t *testing.T) {
	for name, build := range goldenStores {
		dir := filepath.Join(t.TempDir(), name)
		now := &handClock{goldenNow}
		now.Wall, now.Boot = now.Wall.Add(-10*time.Minute), now.Boot-10*time.Minute
		var seed [32]byte
		copy(seed[:], name)
		s, err := Create(t.Context(), dir, &Options{clock: now, rand: rand.NewChaCha8(seed)})
		mustDo(t, err)
		build(t, s, now)
		mustDo(t, s.Close())
		to := filepath.Join(goldenDir, name, namespaceDir)
		mustDo(t, os.RemoveAll(to), os.MkdirAll(filepath.Dir(to), 0o755),
			os.Remove(filepath.Join(dir, namespaceDir, reserveFile)), os.CopyFS(to, os.DirFS(filepath.Join(dir, namespaceDir))))
	}
}

// goldenStores are made with a clock and a randomness that are the same in every run.
var goldenStores = map[string]func(t *testing.T, s *Store, now *handClock){
	"fresh":        func(*testing.T, *Store, *handClock) {},
	"busy":         makeBusy,
	"later-fields": makeLater,
	"dead-owner": func(t *testing.T, s *Store, _ *handClock) {
		mustEnqueue(t, s, "mail", small("a"))
		plantRecord(t, s.dir, encodeRecord(queue.Owner{Token: namedToken("dead").String(), PID: 4711, Host: "localhost", Boot: goldenNow.BootID, Since: goldenNow.Wall}))
	},
	"damaged": func(t *testing.T, s *Store, _ *handClock) {
		mustEnqueue(t, s, "mail", small("a"), small("b"))
		mustEnqueue(t, s, "mail", small("c"))
		st := s.cached.st.queues[0].slots
		mustDo(t, os.WriteFile(filepath.Join(s.dir, namespaceDir, objectsDir, st[0].pending.object.String(), payloadFile), []byte(`[{"id":"a"},{"id":"B"}]`), 0o600))
		mustDo(t, os.RemoveAll(filepath.Join(s.dir, namespaceDir, objectsDir, st[2].pending.object.String())))
	},
	"interrupted": func(t *testing.T, s *Store, _ *handClock) {
		mustDo(t, os.Remove(filepath.Join(s.dir, namespaceDir, stateFile)))
	},
	"refused-version":           spoilt(stateFile, `"version":2`, `"version":3`),
	"refused-format-version":    spoilt(formatFile, `"version":2`, `"version":3`),
	"refused-feature":           spoilt(stateFile, `"features":[]`, `"features":["runs"],"runs":[]`),
	"refused-protocol":          spoilt(stateFile, protocol, "fs-safe-xml-queue"),
	"refused-foreign":           spoilt(stateFile, "", "{\n  \"jobs\": []\n}\n"),
	"refused-duplicate-key":     spoilt(stateFile, `"fence":0`, `"fence":0,"fence":1`),
	"refused-case-variant":      spoilt(stateFile, `"fence":0`, `"FENCE":0`),
	"refused-white-space":       spoilt(stateFile, `"fence":0`, `"fence": 0`),
	"refused-number":            spoilt(stateFile, `"fence":0`, `"fence":9007199254740992`),
	"refused-revision":          spoilt(stateFile, `"revision":"`, `"revision":"+`),
	"refused-half-written":      spoilt(stateFile, `"failed":[`, `"failed`),
	"refused-escaping-token":    func(t *testing.T, s *Store, now *handClock) { climb(t, s) },
	"refused-other-store":       func(t *testing.T, s *Store, now *handClock) { spoilt(stateFile, s.ID(), namedToken("other").String())(t, s, now) },
	"refused-overlapping-range": func(t *testing.T, s *Store, now *handClock) { overlapping(t, s) },
}
