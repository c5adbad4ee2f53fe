//go:build unix

package holdfast

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
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
var updateGolden = flag.Bool("update", false, "write the golden stores and what they show")

const goldenDir = "testdata/golden"

// goldenWant is want.json, in which whatever is zero or empty is left out: a field that
// is added later is not in the old ones.
type goldenWant struct {
	Refused string        `json:"refused,omitempty"` // the error of opening it
	Is      string        `json:"is,omitempty"`      // which of goldenErrors that is
	Verify  *Report       `json:"verify,omitempty"`
	Status  *queue.Status `json:"status,omitempty"`
	Entries []goldenEntry `json:"entries,omitempty"` // of every queue, then the failed

	Unlisted map[string]string `json:"unlisted,omitempty"` // the error of listing a queue
}

type goldenEntry struct {
	queue.Entry
	Payload string // as text
}

var goldenErrors = map[string]error{
	"ErrNoStore": ErrNoStore, "ErrInterruptedInit": ErrInterruptedInit, "ErrUnsafe": ErrUnsafe,
	"ErrFilesystem": ErrFilesystem, "ErrVersion": ErrVersion, "ErrCorrupt": ErrCorrupt,
}

// goldenNow is when the golden stores are looked at; they were made in the hour before.
var goldenNow = instant{Wall: time.UnixMilli(1_767_323_045_678), BootID: "6f1c2a34-0d1e-4c55-9a77-2d1b8f0e9c11", Boot: 912_345 * time.Millisecond}

func TestGolden(t *testing.T) {
	t.Parallel()
	if *updateGolden {
		makeGolden(t)
	}
	cases, err := os.ReadDir(goldenDir)
	mustDo(t, err)
	if len(cases) < 14 {
		t.Errorf("only %d golden stores", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name(), func(t *testing.T) {
			from := filepath.Join(goldenDir, c.Name())
			dir := goldenCopy(t, from)
			got := golden(t, dir)
			text := compact(t, got)
			file := filepath.Join(from, "want.json")
			if *updateGolden {
				mustDo(t, os.WriteFile(file, text, 0o644))
			}
			if want := mustRead(t, file); !bytes.Equal(text, want) {
				t.Errorf("shows\n%swant\n%s", text, want)
			}
		})
	}
}

// compact gives w as JSON without what is zero or empty.
func compact(t *testing.T, w goldenWant) []byte {
	text, err := json.Marshal(w)
	mustDo(t, err)
	var tree any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	mustDo(t, d.Decode(&tree))
	var without func(any) (any, bool)
	without = func(x any) (any, bool) {
		switch x := x.(type) {
		case map[string]any:
			for key, v := range x {
				v, ok := without(v)
				if x[key] = v; !ok {
					delete(x, key)
				}
			}
			return x, len(x) > 0
		case []any:
			for i := range x {
				x[i], _ = without(x[i])
			}
			return x, len(x) > 0
		case json.Number:
			return x, x != "0"
		case string:
			return x, x != "" && x != "0001-01-01T00:00:00Z" && x != (queue.Receipt{}).String()
		}
		return x, x != nil && x != false
	}
	tree, _ = without(tree)
	text, err = json.MarshalIndent(tree, "", "  ")
	mustDo(t, err)
	return append(text, '\n')
}

// goldenCopy copies a golden store and gives it what git does not keep.
func goldenCopy(t *testing.T, from string) string {
	t.Helper()
	dir, at := copyOf(t, from)
	mustDo(t, os.RemoveAll(filepath.Join(dir, "want.json")))
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
	// What reports did not tell when these stores were made, and TestVerify looks at.
	report.Processing, report.Overdue, report.OpenImports, report.OldestFailed = 0, 0, 0, nil
	report.Orphaned, report.TempBytes = nil, 0
	status, err := s.Status(ctx, queue.StatusOptions{Orphans: report.Orphans >= 0})
	mustDo(t, err)
	w.Verify, w.Status = &report, &status
	for _, q := range s.cached.st.queues {
		page, err := s.List(ctx, q.name, queue.ListOptions{Limit: maxClaim})
		if errors.Is(err, ErrCorrupt) {
			w.Unlisted = map[string]string{q.name: err.Error()}
			continue
		}
		mustDo(t, err)
		for _, e := range page.Entries {
			shown, err := s.Show(ctx, q.name, e.ID)
			mustDo(t, err)
			i := slices.IndexFunc(shown, func(x queue.Entry) bool { return x.Generation == e.Generation })
			w.Entries = append(w.Entries, goldenEntryOf(shown[i]))
		}
	}
	for _, f := range s.cached.st.failed {
		page, err := s.ListFailed(ctx, queue.FailedOptions{Namespace: f.name}, queue.ListOptions{Limit: maxClaim})
		mustDo(t, err)
		for _, e := range page.Entries {
			shown, err := s.ShowFailed(ctx, e.FailedName, queue.FailedOptions{Namespace: f.name})
			mustDo(t, err)
			w.Entries = append(w.Entries, goldenEntryOf(shown))
		}
	}

	text := mustRead(t, filepath.Join(dir, namespaceDir, stateFile))
	st, err := decodeState(text, stateFile, s.id)
	mustDo(t, err)
	clearTexts(st) // what was read is not to be copied but made anew
	if again := encodeState(nil, st); !bytes.Equal(again, withoutPadding(text)) {
		t.Errorf("decoded and encoded again, state.json is\n%swas\n%s", again, text)
	}
	if format := mustRead(t, filepath.Join(dir, namespaceDir, formatFile)); !bytes.Equal(encodeFormat(s.id), format) {
		t.Errorf("format.json is encoded as\n%swas\n%s", encodeFormat(s.id), format)
	}
	return w
}

func goldenEntryOf(e queue.Entry) goldenEntry {
	for _, at := range []*time.Time{&e.EnqueuedAt, &e.NotBefore, &e.Deadline, &e.FailedAt} {
		*at = at.UTC()
	}
	return goldenEntry{e, string(e.Payload)}
}

type fixedGolden struct{}

func (fixedGolden) Now() instant { return goldenNow }

// An old store goes on: what is due in it is claimed and settled, and it verifies.
func TestGoldenStoresGoOn(t *testing.T) {
	for _, name := range []string{"fresh", "busy", "later-fields", "dead-owner", "spares", "runs"} {
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

// An import that an older program left open is gone on with and closed.
func TestGoldenImportGoesOn(t *testing.T) {
	dir := goldenCopy(t, filepath.Join(goldenDir, "import-open"))
	s, err := Open(t.Context(), dir, &Options{clock: fixedGolden{}})
	mustDo(t, err)
	i, err := s.OpenImport(t.Context(), "mail", ImportToken(namedToken("import")))
	mustDo(t, err)
	n, err := i.Add(t.Context(), foreign("twice", ImportedClaimed), foreign("new", ImportedPending), foreign("bad", ImportedFailed))
	if err != nil || n != 1 {
		t.Errorf("added %d, %v; want 1", n, err)
	}
	mustDo(t, i.Close(t.Context()))
	var got []string
	for _, d := range mustClaim(t, s, "mail", queue.ClaimOptions{Max: 100, WithoutHolder: true}) {
		got = append(got, d.Receipt.ID)
		mustDo(t, s.Ack(t.Context(), d.Receipt))
	}
	if want := []string{"old", "both", "twice", "waits", "new"}; !slices.Equal(got, want) {
		t.Errorf("claimed %v, want %v", got, want)
	}
	mustDo(t, s.Close())
	mustVerify(t, dir)
}

// makeGolden writes the stores that this program knows how to make.
func makeGolden(t *testing.T) {
	for name, build := range goldenStores {
		dir := filepath.Join(t.TempDir(), name)
		now := &handClock{goldenNow}
		now.Wall, now.Boot = now.Wall.Add(-10*time.Minute), now.Boot-10*time.Minute
		var seed [32]byte
		copy(seed[:], name)
		s, err := Create(t.Context(), dir, &Options{clock: now, rand: rand.NewChaCha8(seed), plain: name != "spares"})
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
	"import-open": func(t *testing.T, s *Store, now *handClock) {
		makeImport(t, s, now)
	},
	"failed-runs": makeFailedRuns,
	"import-closed": func(t *testing.T, s *Store, now *handClock) {
		mustDo(t, makeImport(t, s, now).Close(t.Context()))
		mustDo(t, s.Ack(t.Context(), mustClaim(t, s, "mail", queue.ClaimOptions{Max: 2, WithoutHolder: true})[1].Receipt))
		mustImport(t, s, "mail", namedToken("another import"), foreign("later", ImportedPending))
	},
	"spares": func(t *testing.T, s *Store, _ *handClock) {
		mustEnqueue(t, s, "mail", small("a"), small("b"))
		mustDo(t, s.Ack(t.Context(), mustClaim(t, s, "mail", queue.ClaimOptions{WithoutHolder: true})[0].Receipt))
	},
	"refused-padding": spoilt(stateFile, "\"}\n", "\"}\n  "),
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
	"runs":         makeRuns,
	"runs-missing": spoiltRun(func(t *testing.T, at string) { mustDo(t, os.RemoveAll(filepath.Dir(at))) }),
	"runs-cut":     spoiltRun(func(t *testing.T, at string) { mustDo(t, os.Truncate(at, 200)) }),
	"runs-flipped": spoiltRun(func(t *testing.T, at string) {
		text := mustRead(t, at)
		text[len(text)/2] ^= 1
		mustDo(t, os.WriteFile(at, text, 0o600))
	}),
	"refused-runs-feature": func(t *testing.T, s *Store, now *handClock) {
		makeRuns(t, s, now)
		spoilt(stateFile, `"features":["runs"]`, `"features":[]`)(t, s, now)
	},
	"interrupted": func(t *testing.T, s *Store, _ *handClock) {
		mustDo(t, os.Remove(filepath.Join(s.dir, namespaceDir, stateFile)))
	},
	"refused-version":        spoilt(stateFile, `"version":2`, `"version":3`),
	"refused-format-version": spoilt(formatFile, `"version":2`, `"version":3`),
	"refused-feature":        spoilt(stateFile, `"features":[]`, `"features":["wings"],"wings":[]`),
	"refused-protocol":       spoilt(stateFile, protocol, "fs-safe-xml-queue"),
	"refused-foreign":        spoilt(stateFile, "", "{\n  \"jobs\": []\n}\n"),
	"refused-duplicate-key":  spoilt(stateFile, `"fence":0`, `"fence":0,"fence":1`),
	"refused-case-variant":   spoilt(stateFile, `"fence":0`, `"FENCE":0`),
	"refused-white-space":    spoilt(stateFile, `"fence":0`, `"fence": 0`),
	"refused-number":         spoilt(stateFile, `"fence":0`, `"fence":9007199254740992`),
	"refused-revision":       spoilt(stateFile, `"revision":"`, `"revision":"+`),
	"refused-half-written":   spoilt(stateFile, "\"}\n", ""),
	"refused-half-overwritten": spoiltBy(func(t *testing.T, at func(...string) string) {
		text := mustRead(t, at(stateFile))
		copy(text, `{"commit":"`+namedToken("later").String())
		mustDo(t, os.WriteFile(at(stateFile), text, 0o600))
	}),
	"refused-escaping-token": spoiltBy(climb),
	"refused-other-store": func(t *testing.T, s *Store, now *handClock) {
		spoilt(stateFile, s.ID(), namedToken("other").String())(t, s, now)
	},
	"refused-overlapping-range": spoiltBy(overlap),
}

// makeBusy leaves something of everything that this version's calls can leave.
func makeBusy(t *testing.T, s *Store, now *handClock) {
	ctx := t.Context()
	pass := func(d time.Duration) { now.Wall, now.Boot = now.Wall.Add(d), now.Boot+d }
	claim := func(lease time.Duration, label string) queue.Receipt {
		pass(time.Second)
		return mustClaim(t, s, "mail", queue.ClaimOptions{Lease: lease, Label: label})[0].Receipt
	}
	mustEnqueue(t, s, "mail",
		queue.Message{ID: "acked", Payload: []byte(`1`)},
		queue.Message{ID: "failed", Payload: []byte(`{"why":"\ud83d\ude00"}`)},
		queue.Message{ID: "failed-elsewhere", Payload: []byte(`[]`)},
		queue.Message{ID: "overdue", Payload: []byte(`{"chat":9007199254740993}`)},
		queue.Message{ID: "leased", Payload: []byte(`{"a":{"b":[1,2,{"c":null}]}}`)},
		queue.Message{ID: "for-ever", Payload: []byte(`"😀  "`)},
		queue.Message{ID: "replaced", Payload: []byte(`"old"`)},
		queue.Message{ID: "migrated", Payload: []byte(`"old"`)},
		queue.Message{ID: "released", Payload: []byte(`1e400`)})
	pass(time.Second)
	mustEnqueue(t, s, "mail", queue.Message{ID: "alone", Payload: []byte(" {\n\t\"b\": 1.0, \"b\": -0\n} ")})
	mustDo(t, s.Ack(ctx, claim(time.Minute, "")))
	_, err := s.Fail(ctx, claim(time.Minute, ""), queue.FailOptions{Cause: "550 no such user ünknown\n\"quoted\" \x00"})
	mustDo(t, err)
	_, err = s.Fail(ctx, claim(time.Minute, ""), queue.FailOptions{As: "elsewhere"})
	mustDo(t, err)
	claim(time.Minute, "worker 1")
	claim(time.Hour, "worker 2")
	claim(queue.NoDeadline, "shell")
	mustEnqueue(t, s, "mail", queue.Message{ID: "replaced", Payload: []byte(`"new"`), IfExists: queue.Replace})
	mustDo(t, s.ReplacePayload(ctx, claim(time.Hour, ""), []byte(`"new"`)), s.Release(ctx, claim(time.Hour, ""), queue.ReleaseOptions{}))
	mustEnqueue(t, s, "mail", queue.Message{ID: "leased", Payload: []byte(`"newer"`), IfExists: queue.Replace})
	mustEnqueue(t, s, "mail", queue.Message{ID: "scheduled", Payload: []byte(`{}`), NotBefore: goldenNow.Wall.Add(time.Hour)})
	mustEnqueue(t, s, "mail/intake", queue.Message{ID: "A", Payload: []byte(`"A"`)}, queue.Message{ID: "a", Payload: []byte(`"a"`)})
	mustEnqueue(t, s, "bin", small("x"), small("y"))
	if _, err := s.Clear(ctx, "bin", queue.ClearOptions{}); err != nil {
		t.Fatal(err)
	}
	mustDo(t, s.Set(ctx, Settings{OnDeadOwner: AutoRecover}))
}

// makeImport leaves an import open that has brought one message of each kind into a queue
// that was there.
func makeImport(t *testing.T, s *Store, now *handClock) *Import {
	mustEnqueue(t, s, "mail", small("old"), small("both"))
	mustDo(t, s.SetFailedNamespace(t.Context(), "mail", "mail-failed"))
	now.Wall, now.Boot = now.Wall.Add(time.Second), now.Boot+time.Second
	return mustImport(t, s, "mail", namedToken("import"),
		foreign("both", ImportedClaimed), foreign("twice", ImportedClaimed), foreign("twice", ImportedPending),
		foreign("waits", ImportedPending), foreign("bad", ImportedFailed))
}

// makeFailedRuns makes runs of failed messages in two namespaces, with members that left.
func makeFailedRuns(t *testing.T, s *Store, now *handClock) {
	s.opts.block = 2
	for i, name := range []string{"mail", "notes"} {
		mustEnqueue(t, s, name, small("first"))
		mustDo(t, s.SetFailedNamespace(t.Context(), name, []string{"", "aside"}[i]))
		for j := range 11 {
			mustEnqueue(t, s, name, small(fmt.Sprint("m", (j*7)%11)))
			d := mustClaim(t, s, name, queue.ClaimOptions{WithoutHolder: true})[0]
			mustDo(t, second(s.Fail(t.Context(), d.Receipt, queue.FailOptions{Cause: fmt.Sprint("the cause of ", j)})))
			now.Wall = now.Wall.Add(time.Second)
		}
	}
	mustEnqueue(t, s, "mail", small("seals"))
	mustDo(t, s.Purge(t.Context(), "m7", queue.PurgeOptions{}), s.Reprocess(t.Context(), "m3", queue.ReprocessOptions{}),
		s.Purge(t.Context(), "m0", queue.PurgeOptions{Namespace: "aside"}))
}

// makeLater fills the fields that the format has room for and this version's calls do
// not set.
func makeLater(t *testing.T, s *Store, now *handClock) {
	ids := []string{"reaped", "retried", "released", "reprocessed", "held", "failed", "keyed"}
	mustEnqueue(t, s, "mail", small("reaped"), small("retried"), small("released"), small("reprocessed"), small("held"), small("failed"))
	mustEnqueue(t, s, "intake", small("x"), small("y"))
	mustClaim(t, s, "mail", queue.ClaimOptions{Max: len(ids)})
	mustEnqueue(t, s, "mail", small("keyed"))
	x := mustClaim(t, s, "intake", queue.ClaimOptions{})[0].Receipt
	for range 2 {
		d, err := s.Load(t.Context(), "mail", "failed", queue.LoadOptions{})
		if errors.Is(err, queue.ErrLeased) { // the first one: under a deadline still
			now.Wall, now.Boot = now.Wall.Add(queue.DefaultLease), now.Boot+queue.DefaultLease
			d, err = s.Load(t.Context(), "mail", "failed", queue.LoadOptions{})
		}
		mustDo(t, err)
		as := d.Receipt.ID
		if s.cached.st.failedEntry("", as) != nil {
			as = "failed2"
		}
		_, err = s.Fail(t.Context(), d.Receipt, queue.FailOptions{As: as, Cause: "twenty times"})
		mustDo(t, err)
		mustEnqueue(t, s, "mail", small("failed"))
	}
	_, err := s.Fail(t.Context(), x, queue.FailOptions{})
	mustDo(t, err)
	if _, err := s.Clear(t.Context(), "none", queue.ClearOptions{}); err != nil {
		t.Fatal(err)
	}

	st, err := decodeState(mustRead(t, filepath.Join(s.dir, namespaceDir, stateFile)), stateFile, s.id)
	mustDo(t, err)
	st.revision, st.recoveries = 1<<63, 2
	st.resolved = []outcome{{namedToken("lost"), 41}, {namedToken("found"), 42}}
	intake, mail := st.queues[0], st.queues[1]
	intake.paused, intake.cursor, intake.turn, intake.failedNS = true, "offset=18\n", "chat-42", "intake-failed"
	for _, s := range mail.slots {
		s.enc = nil
		switch c := s.claimed; s.id {
		case "keyed":
			s.pending.key = "chat-42"
		case "reaped":
			c.returned, c.lapses = reaped, 1
			mail.counters.Reaped++
		case "retried":
			c.returned, c.attempts, c.lastError, c.notBefore, c.key = retried, 3, "connection refused", goldenNow.Wall.UnixMilli()-1, "chat-43"
			mail.counters.Retried += 3
		case "released":
			c.returned, c.excused = released, 1
			mail.counters.Released++
		case "reprocessed":
			c.returned, c.attempts, c.excused, c.lapses = reprocessed, 9, 7, 2
			mail.counters.Reprocessed++
			mail.counters.Failed++
		case "held":
			c.lease.holder, c.lease.label = namedToken("holder"), "worker 3"
		}
	}
	failed := st.failed[0].entries
	for _, e := range failed {
		e.enc = nil
	}
	i := slices.IndexFunc(failed, func(e *failedEntry) bool { return e.name == "failed2" })
	failed[i].name = "failed~" + failed[i].ref.gen.String()
	j := slices.IndexFunc(failed, func(e *failedEntry) bool { return e.queue == "intake" })
	st.failed = []*failedSpace{{entries: slices.Delete(slices.Clone(failed), j, j+1)}, {name: "intake-failed", entries: failed[j : j+1]}}
	mustDo(t, os.WriteFile(filepath.Join(s.dir, namespaceDir, stateFile), encodeState(nil, st), 0o600))
}

// makeRuns leaves a queue with runs of both kinds, one of which has lost a member and is
// half due.
func makeRuns(t *testing.T, s *Store, now *handClock) {
	s.opts.block = 2
	mustEnqueue(t, s, "mail", smalls(12)...)
	for i := range 8 {
		m := small(fmt.Sprintf("s%03d", i))
		m.NotBefore = goldenNow.Wall.Add(time.Duration(5-i) * time.Minute)
		mustEnqueue(t, s, "mail", m)
	}
	now.Wall, now.Boot = now.Wall.Add(time.Second), now.Boot+time.Second
	mustEnqueue(t, s, "mail", queue.Message{ID: "m005", Payload: []byte(`"newer"`), IfExists: queue.Replace})
	mustDo(t, s.Ack(t.Context(), mustClaim(t, s, "mail", queue.ClaimOptions{Max: 1, WithoutHolder: true})[0].Receipt))
}

// spoiltRun is makeRuns with something done to the file of the first run.
func spoiltRun(spoil func(t *testing.T, at string)) func(t *testing.T, s *Store, now *handClock) {
	return func(t *testing.T, s *Store, now *handClock) {
		makeRuns(t, s, now)
		r := s.cached.st.queue("mail").runs[0]
		spoil(t, filepath.Join(s.dir, namespaceDir, filepath.FromSlash(runPath(r.name))))
	}
}
