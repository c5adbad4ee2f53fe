//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// fillToTheBound enqueues until the state refuses, and claims everything.
func fillToTheBound(t *testing.T, s *Store, name string, label string) []queue.Delivery {
	t.Helper()
	ctx := t.Context()
	for step := 64; step > 0; {
		ms := make([]queue.Message, step)
		for i := range ms {
			ms[i].Payload = []byte(`1`)
		}
		_, err := s.EnqueueBatch(ctx, name, ms)
		switch {
		case errors.Is(err, queue.ErrFull):
			step /= 2
		case err != nil:
			t.Fatal(err)
		}
	}
	c, err := s.Claim(ctx, name, queue.ClaimOptions{Max: maxClaim, Label: label})
	if err != nil {
		t.Fatal(err)
	}
	return c.Deliveries
}

// A state that was filled to its bound lets everything in it be claimed and failed,
// under long names and with causes that are written six bytes for one, and after all
// that a dead owner can still be recovered from.
func TestEverythingAcceptedCanBeSettled(t *testing.T) {
	for _, name := range []string{"m", strings.TrimSuffix(strings.Repeat(strings.Repeat("q", 100)+"/", 5), "/")} {
		t.Run(fmt.Sprint(len(name)), func(t *testing.T) {
			o := &Options{MaxStateBytes: leastStateBytes, block: -1} // everything stands inline
			s, dir := newTestStore(t, o)
			held := fillToTheBound(t, s, name, strings.Repeat("w", queue.MaxNameBytes))
			if len(held) < 50 {
				t.Fatalf("only %d messages were accepted", len(held))
			}
			for _, d := range held {
				as := d.Receipt.ID + strings.Repeat("x", queue.MaxNameBytes-len(d.Receipt.ID))
				if _, err := s.Fail(t.Context(), d.Receipt, queue.FailOptions{Cause: strings.Repeat("\x1b", 2000), As: as}); err != nil {
					t.Fatalf("fail: %v", err)
				}
			}
			for range 3 {
				if err := leaveDeadOwner(dir); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Recover(t.Context()); err != nil {
					t.Fatalf("recover: %v", err)
				}
			}
			if _, err := Open(t.Context(), dir, o); err != nil {
				t.Error(err)
			}
		})
	}
}

// A store that is larger than a program's bound is not called corrupt.
func TestStateBeyondThisProgramsBound(t *testing.T) {
	_, dir := newTestStore(t, nil)
	s, err := Open(t.Context(), dir, &Options{block: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.EnqueueBatch(t.Context(), "mail", smalls(2000)); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), dir, &Options{MaxStateBytes: leastStateBytes})
	if !errors.Is(err, ErrBound) || errors.Is(err, ErrCorrupt) {
		t.Errorf("open: %v, want ErrBound", err)
	}
}

// What claims add is provided for too: the disk fills after them, and every claim can
// still be settled, also while another handle sits idle on the store.
func TestSettlingOnAFullDiskAfterLargeClaims(t *testing.T) {
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	o := crashOptions(d.Process())
	o.MinFreeBytes = -1
	s, err := Create(t.Context(), crashDir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.EnqueueBatch(t.Context(), "mail", smalls(420)); err != nil {
		t.Fatal(err)
	}
	c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 420, Label: strings.Repeat("w", queue.MaxNameBytes)})
	if err != nil {
		t.Fatal(err)
	}
	idle, err := Open(t.Context(), crashDir, crashOptions(d.Process()))
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if _, err := idle.Status(t.Context(), queue.StatusOptions{}); err != nil {
		t.Fatal(err)
	}
	d.SetFree(0)
	for i, x := range c.Deliveries {
		if err := s.Ack(t.Context(), x.Receipt); err != nil {
			t.Fatalf("ack %d of %d: %v", i, len(c.Deliveries), err)
		}
	}
}

// A call that finds no descriptor or no room fails alone, not those beside it.
func TestNeighboursOfACallWithoutRoom(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENOSPC} {
		t.Run(errno.Error(), func(t *testing.T) {
			d, s, w := onDisk(t)
			if _, err := s.Enqueue(t.Context(), "mail", small("a")); err != nil {
				t.Fatal(err)
			}
			held := mustClaim(t, s, "mail", queue.ClaimOptions{})
			w.Arm(crashtest.FailMatching(func(op fsguard.Op, path string) bool {
				return op == fsguard.OpCreate && strings.HasSuffix(path, payloadFile)
			}, errno, 0))
			errs := together(t, d, s,
				func() error { return s.Ack(t.Context(), held[0].Receipt) },
				func() error { _, err := s.Enqueue(t.Context(), "mail", small("b")); return err },
			)
			if errs[0] != nil || !errors.Is(errs[1], errno) {
				t.Errorf("ack: %v; enqueue: %v", errs[0], errs[1])
			}
		})
	}
}

// A look that has to be taken again under the exclusive lock still ends with its
// caller's context.
func TestCancelledLookThatIsTakenAgain(t *testing.T) {
	d, s, _ := onDisk(t)
	if err := s.Set(t.Context(), Settings{OnDeadOwner: AutoRecover}); err != nil {
		t.Fatal(err)
	}
	d.WriteRaw(crashDir+"/"+namespaceDir+"/"+lockFile, encodeRecord(newOwner(token{7}, crashClock.at)))
	ctx, cancel := context.WithCancel(t.Context())
	c := &call{decide: func(*view) error { return nil }, ctx: ctx, done: make(chan struct{}), err: errAgain, entered: true}
	cancel()
	s.requeue([]*call{c})
	select {
	case <-c.done:
	default:
		t.Fatal("a look whose caller has gone waits on")
	}
	if !errors.Is(c.err, context.Canceled) {
		t.Error(c.err)
	}
}

// A size that only a planted state can name takes no memory and no panic.
func TestHugeSizeInTheState(t *testing.T) {
	s, dir := newTestStore(t, nil)
	if _, err := s.Enqueue(t.Context(), "mail", queue.Message{ID: "a", Payload: []byte(`"1234567"`)}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, namespaceDir, stateFile)
	text := string(mustRead(t, path))
	planted := string(resummed([]byte(strings.Replace(text, `",0,9,"`, `",0,9007199254740990,"`, 1))))
	if !strings.Contains(planted, "9007199254740990") {
		t.Fatal("the size was not found in the state")
	}
	if err := os.WriteFile(path, []byte(planted), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := VerifyDir(t.Context(), dir, nil, VerifyOptions{})
	if err != nil || r.OK || len(r.Faults) != 1 || !strings.Contains(r.Faults[0].Reason, "ends after 9 of 9007199254740990") {
		t.Errorf("verify: %+v, %v", r, err)
	}
	c, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{})
	if err != nil || len(c.Damaged) != 1 {
		t.Errorf("claim: %+v, %v", c, err)
	}
	if err := s.Purge(t.Context(), "a", queue.PurgeOptions{}); err != nil {
		t.Error(err)
	}
}

// A planted number at its end is refused before the commit: the store stays readable.
func TestNumbersAtTheirEnd(t *testing.T) {
	for _, change := range [][2]string{
		{`"revision":"3"`, `"revision":"18446744073709551615"`},
		{`"next":1`, `"next":9007199254740991`},
		{`"enqueued":1`, `"enqueued":9007199254740991`},
	} {
		dir := filepath.Join(t.TempDir(), "store")
		s, err := Create(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		mustEnqueue(t, s, "mail", small("a"))
		mustDo(t, s.Set(t.Context(), Settings{OnDeadOwner: AutoRecover}))
		s.Close()
		path := filepath.Join(dir, namespaceDir, stateFile)
		text := string(mustRead(t, path))
		planted := string(resummed([]byte(strings.Replace(text, change[0], change[1], 1))))
		if !strings.Contains(planted, change[1]) {
			t.Fatalf("%s is not in the state", change[0])
		}
		if err := os.WriteFile(path, []byte(planted), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err = Open(t.Context(), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Enqueue(t.Context(), "mail", small("b")); !errors.Is(err, queue.ErrFull) {
			t.Errorf("%s: %v", change[1], err)
		}
		if got := string(mustRead(t, path)); got != planted {
			t.Errorf("%s: the state changed", change[1])
		}
		s.Close()
	}
}

// Each caller gets bytes of its own.
func TestPayloadsAreNotShared(t *testing.T) {
	d, s, _ := onDisk(t)
	var first, second queue.Delivery
	load := func(to *queue.Delivery) func() error {
		return func() (err error) {
			*to, err = s.Load(t.Context(), "mail", "a", queue.LoadOptions{Lease: queue.NoDeadline, WithoutHolder: true})
			return err
		}
	}
	errs := together(t, d, s,
		func() error { _, err := s.Enqueue(t.Context(), "mail", small("a")); return err }, load(&first), load(&second))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	first.Payload[0] = 'X'
	if string(second.Payload) != `{"id":"a"}` {
		t.Errorf("the second delivery's payload became %s", second.Payload)
	}
}

// A second link on an object is somebody's backup, not damage: nothing moves.
func TestLinkedObjectIsNotDamage_HardLink(t *testing.T) {
	d, s, _ := onDisk(t)
	if _, err := s.Enqueue(t.Context(), "mail", small("a")); err != nil {
		t.Fatal(err)
	}
	shown, err := s.Show(t.Context(), "mail", "a")
	if err != nil {
		t.Fatal(err)
	}
	object := crashDir + "/" + namespaceDir + "/" + objectsDir + "/" + shown[0].Object + "/" + payloadFile
	d.HardLink(object, "/data/backup")
	if _, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{}); !errors.Is(err, ErrUnsafe) {
		t.Errorf("claim: %v, want ErrUnsafe", err)
	}
	d.Remove("/data/backup")
	if got := mustClaim(t, s, "mail", queue.ClaimOptions{}); len(got) != 1 {
		t.Errorf("claimed %d, want 1", len(got))
	}
}

// Times beyond all bounds are refused, not wrapped.
func TestNotBeforeBeyondBounds(t *testing.T) {
	s, _ := newTestStore(t, nil)
	for _, at := range []time.Time{time.Unix(1<<61, 0), time.Unix(18446744073709552, 0), time.Unix(math.MinInt64/2, 0), time.Unix(-1, 0)} {
		m := small("a")
		m.NotBefore = at
		if _, err := s.Enqueue(t.Context(), "mail", m); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%d: %v", at.Unix(), err)
		}
	}
}

// An old state.json that is put back under an open store is noticed: it would give
// receipts out a second time.
func TestStateThatGoesBack(t *testing.T) {
	s, dir := newTestStore(t, nil)
	path := filepath.Join(dir, namespaceDir, stateFile)
	mustEnqueue(t, s, "mail", small("a"))
	old := mustRead(t, path)
	held := mustClaim(t, s, "mail", queue.ClaimOptions{})
	newer := mustRead(t, path)
	replace := func(text []byte) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path+".put", text, 0o600), os.Rename(path+".put", path)); err != nil {
			t.Fatal(err)
		}
	}
	replace(old)
	if _, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{}); !errors.Is(err, ErrReplaced) {
		t.Errorf("claim over an older state: %v, want ErrReplaced", err)
	}
	replace(newer)
	mustDo(t, s.Ack(t.Context(), held[0].Receipt))
}
