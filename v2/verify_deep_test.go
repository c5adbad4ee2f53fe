//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// mustHaveNoOrphans asks the status, which finds orphans by itself.
func mustHaveNoOrphans(t *testing.T, s *Store) {
	t.Helper()
	st, err := s.Status(t.Context(), queue.StatusOptions{Orphans: true})
	if err != nil || st.Orphans != 0 {
		t.Fatalf("%d orphans, %v", st.Orphans, err)
	}
}

// objectsAreFree reports whether a collection could begin.
func objectsAreFree(t *testing.T, dir string) bool {
	t.Helper()
	d, err := fsguard.OS().OpenRoot(filepath.Join(dir, namespaceDir, objectsDir))
	mustDo(t, err)
	defer d.Close()
	free, err := d.TryLock(fsguard.Exclusive)
	mustDo(t, err)
	return free
}

// While payloads are read the lock is free and work goes on: what is settled meanwhile is
// read all the same and no fault, what is enqueued is not counted, and nobody collects.
func TestVerifyBesideWork(t *testing.T) {
	s, dir := newTestStore(t, nil)
	for i := range 3 {
		mustEnqueue(t, s, "mail", small(fmt.Sprint("m", i)))
	}
	held := mustClaim(t, s, "mail", queue.ClaimOptions{})
	before, err := s.Status(t.Context(), queue.StatusOptions{})
	mustDo(t, err)
	calls := 0
	r, err := s.Verify(t.Context(), VerifyOptions{Progress: func(done, total int64) {
		if calls++; calls > 1 {
			return
		}
		mustDo(t, s.Ack(t.Context(), held[0].Receipt))
		mustEnqueue(t, s, "mail", small("new"))
		if objectsAreFree(t, dir) {
			t.Error("a collection could begin while payloads are read")
		}
	}})
	if err != nil || !r.OK || r.Messages != 3 || r.Processing != 1 || r.Objects != 3 || r.Revision != before.Revision {
		t.Errorf("verify: %+v, %v; want three messages of revision %d", r, err, before.Revision)
	}
	if calls != 3 || !objectsAreFree(t, dir) {
		t.Errorf("%d calls of progress; objects/ is free: %v", calls, objectsAreFree(t, dir))
	}
	pendingAre(3)(t, s)
}

// Each run and each object is opened once, however many messages are in it.
func TestVerifyReadsEachFileOnce(t *testing.T) {
	s, _ := deep(t, 40)
	mustEnqueue(t, s, "batch", smalls(5)...) // in one object
	o, w := watched(t)
	look, err := OpenReadOnly(t.Context(), s.dir, o)
	mustDo(t, err)
	defer look.Close()
	w.Arm(crashtest.Plan{})
	r, err := look.Verify(t.Context(), VerifyOptions{})
	if err != nil || !r.OK || r.Runs < 10 {
		t.Fatalf("verify: %+v, %v", r, err)
	}
	opened := map[string]int{}
	for _, e := range w.Events() {
		if e.Op == fsguard.OpOpen && strings.Contains(e.Path, objectsDir+"/") {
			opened[e.Path]++
		}
	}
	for path, n := range opened {
		if n != 1 {
			t.Errorf("%s was opened %d times", path, n)
		}
	}
	if int64(len(opened)) != r.Objects {
		t.Errorf("%d files were opened, of %d objects", len(opened), r.Objects)
	}
}

// Several workers find what one finds, and tell it in the same order.
func TestVerifyInParallel(t *testing.T) {
	s, dir := newTestStore(t, nil)
	big := func(i int) queue.Message {
		return queue.Message{ID: fmt.Sprintf("big%d", i), Payload: fmt.Appendf(nil, `"%d%s"`, i, strings.Repeat("x", 2*smallPayload))}
	}
	for i := range 12 {
		mustEnqueue(t, s, "mail", big(i))
	}
	for _, i := range []int{3, 7, 8} {
		path := filepath.Join(dir, namespaceDir, objectsDir, objectOf(t, dir, fmt.Sprint("big", i)), payloadFile)
		text := mustRead(t, path)
		defer func() { mustDo(t, os.WriteFile(path, text, 0o600)) }()
		mustDo(t, os.WriteFile(path, text[:100], 0o600))
	}
	var reports []Report
	for _, n := range []int{1, 3, 64} {
		last := int64(0)
		r, err := s.Verify(t.Context(), VerifyOptions{Workers: n, Progress: func(done, total int64) {
			if done <= last || done > total {
				t.Errorf("%d workers: progress went from %d to %d of %d", n, last, done, total)
			}
			last = done
		}})
		mustDo(t, err)
		if last != r.PayloadBytes {
			t.Errorf("%d workers: progress ended at %d, of %d", n, last, r.PayloadBytes)
		}
		reports = append(reports, r)
	}
	if len(reports[0].Faults) != 3 || reports[0].Faults[0].ID != "big3" || !reflect.DeepEqual(reports[0], reports[1]) || !reflect.DeepEqual(reports[0], reports[2]) {
		t.Errorf("reports: %+v", reports)
	}
	for _, n := range []int{-1, 65} {
		if _, err := s.Verify(t.Context(), VerifyOptions{Workers: n}); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%d workers: %v", n, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Verify(ctx, VerifyOptions{Workers: 1, Progress: func(int64, int64) { cancel() }})
	if !errors.Is(err, context.Canceled) || !objectsAreFree(t, dir) {
		t.Errorf("cancelled: %v", err)
	}
}

// What is harmless but of interest is counted: claims, those that are over, what failed and
// when, open imports, orphans with their ages, temps.
func TestVerifyCounts(t *testing.T) {
	clock := &fixedClock{crashClock.at}
	s, dir := newTestStore(t, &Options{clock: clock, prepare: -1})
	ctx := t.Context()
	for i := range 4 {
		mustEnqueue(t, s, "mail", small(fmt.Sprint("m", i)))
	}
	claims := mustClaim(t, s, "mail", queue.ClaimOptions{Max: 3, Lease: time.Minute})
	failedAt := clock.at.Wall
	_, err := s.Fail(ctx, claims[0].Receipt, queue.FailOptions{})
	mustDo(t, err)
	_, err = s.Extend(ctx, claims[1].Receipt, time.Hour)
	mustDo(t, err)
	clock.at.Wall, clock.at.Boot = clock.at.Wall.Add(2*time.Minute), clock.at.Boot+2*time.Minute
	mustEnqueue(t, s, "mail", small("gone"))
	d, err := s.Load(ctx, "mail", "gone", queue.LoadOptions{})
	mustDo(t, err, s.Ack(ctx, d.Receipt))
	i := mustImport(t, s, "old", namedToken("import"))

	at := func(names ...string) string {
		return filepath.Join(append([]string{dir, namespaceDir}, names...)...)
	}
	older := namedToken("older").String()
	mustDo(t, os.Mkdir(at(objectsDir, older), 0o700), os.WriteFile(at(objectsDir, older, payloadFile), make([]byte, 77), 0o600),
		os.WriteFile(at(stateTemp(namedToken("x"))), []byte("cut o"), 0o600))
	age := time.Unix(1_700_000_000, 0).UTC()
	mustDo(t, os.Chtimes(at(objectsDir, older), age, age))

	r, err := s.Verify(ctx, VerifyOptions{})
	if err != nil || !r.OK || r.Messages != 3 || r.Processing != 2 || r.Overdue != 1 || r.Failed != 1 || r.OpenImports != 1 ||
		r.Orphans != 2 || r.OrphanBytes != 77+13 || r.Temps != 1 || r.TempBytes != 5 {
		t.Errorf("verify: %+v, %v", r, err)
	}
	if r.OldestFailed == nil || !r.OldestFailed.Equal(failedAt) {
		t.Errorf("the oldest failed: %v, want %v", r.OldestFailed, failedAt)
	}
	if len(r.Orphaned) != 2 || r.Orphaned[0] != (Orphan{older, 77, age}) || !r.Orphaned[1].Modified.After(age) || r.Orphaned[1].Bytes != 13 {
		t.Errorf("orphaned: %+v", r.Orphaned)
	}
	mustDo(t, i.Abandon(ctx), os.Remove(at(stateTemp(namedToken("x")))))
}

// A look without the lock that a commit overtakes is taken again, for a collection may have
// come between; beside a collection it is told to come back.
func TestHoldWithoutTheLock(t *testing.T) {
	s, dir := newTestStore(t, nil)
	mustEnqueue(t, s, "mail", small("a"))
	hold := func(meanwhile func()) error {
		return s.glance(func(v *view) error {
			meanwhile()
			h, err := v.hold()
			h.release()
			return err
		})
	}
	mustDo(t, hold(func() {}))
	if err := hold(func() { mustEnqueue(t, s, "mail", small("b")) }); !errors.Is(err, errMoved) {
		t.Errorf("overtaken: %v", err)
	}
	d, err := fsguard.OS().OpenRoot(filepath.Join(dir, namespaceDir, objectsDir))
	mustDo(t, err)
	defer d.Close()
	mustDo(t, d.Lock(fsguard.Exclusive))
	if err := hold(func() {}); !errors.Is(err, ErrBusy) {
		t.Errorf("beside a collection: %v", err)
	}
}

// docs/verify.md tells every name of the report, and every code.
func TestVerifyPage(t *testing.T) {
	page := string(mustRead(t, filepath.FromSlash("../docs/verify.md")))
	for _, of := range []reflect.Type{reflect.TypeFor[Report](), reflect.TypeFor[Fault](), reflect.TypeFor[Orphan]()} {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name == "" || !strings.Contains(page, "`"+name+"`") {
				t.Errorf("%s.%s, %q, is not on the page", of.Name(), of.Field(i).Name, name)
			}
		}
	}
	for _, code := range []string{"state", "run", "payload", "counters", "file", "lock"} {
		if !strings.Contains(page, "\n| `"+code+"` |") {
			t.Errorf("code %s is not on the page", code)
		}
	}
}

// A run whose object has payloads too is told, and stops a backup.
func TestVerifyTwoUsesOfAnObject(t *testing.T) {
	dir, runs := deepIn(t, 40)
	at := func(name string) string { return filepath.Join(dir, namespaceDir, filepath.FromSlash(name)) }
	st := stateIn(t, dir)
	b, err := decodeRun(mustRead(t, at(runPath(runs[0].name))), runs[0], "")
	mustDo(t, err)
	object := b.slots[0].pending.object
	mustDo(t, os.Rename(at(runPath(runs[1].name)), at(runPath(object))), os.Remove(filepath.Dir(at(runPath(runs[1].name)))))
	run := st.queues[0].runs[1]
	run.name, run.enc = object, nil
	mustDo(t, os.WriteFile(at(stateFile), encodeState(nil, st), 0o600))
	r, err := VerifyDir(t.Context(), dir, nil, VerifyOptions{})
	if err != nil || len(r.Faults) != 1 || r.Faults[0].Code != "run" || r.Faults[0].File != payloadPath(object) || r.Faults[0].ID != b.slots[0].id {
		t.Errorf("%+v, %v", r.Faults, err)
	}
	s, err := OpenReadOnly(t.Context(), dir, nil)
	mustDo(t, err)
	defer s.Close()
	_, err = s.Backup(t.Context(), dir+"-copy", BackupOptions{})
	refusal(t, "backup", err, ErrCorrupt, payloadPath(object)+" (mail "+b.slots[0].id+")")
}
