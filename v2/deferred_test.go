//go:build unix

package holdfast

import (
	"errors"
	"runtime"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// onDisk creates a store on a simulated disk and opens it through a wrapper.
func onDisk(t *testing.T) (*crashtest.Disk, *Store, *crashtest.Wrapper) {
	t.Helper()
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	s, err := Create(t.Context(), crashDir, crashOptions(d.Process()))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	w := crashtest.Wrap(d.Process(), crashtest.Plan{})
	s, err = Open(t.Context(), crashDir, crashOptions(w))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		for _, v := range w.Violations() {
			t.Error(v)
		}
	})
	return d, s, w
}

// together makes calls enter one commit: the lock is held elsewhere until all wait.
func together(t *testing.T, d *crashtest.Disk, s *Store, calls ...func() error) []error {
	t.Helper()
	root, err := d.Process().OpenRoot(crashDir + "/" + namespaceDir)
	if err != nil {
		t.Fatal(err)
	}
	lock, err := root.OpenWrite(lockFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Lock(fsguard.Exclusive); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, len(calls))
	done := make(chan int)
	for i, call := range calls {
		go func() {
			errs[i] = call()
			done <- i
		}()
		for waiting := 0; waiting < i+1; runtime.Gosched() {
			s.mu.Lock()
			waiting = len(s.waiting)
			s.mu.Unlock()
		}
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	for range calls {
		<-done
	}
	return errs
}

// Calls that wait together go into one commit, in order, and each sees the ones
// before it.
func TestOneCommitForAllThatWait(t *testing.T) {
	d, s, _ := onDisk(t)
	before := s.commits.Load()
	var claimed queue.Claimed
	errs := together(t, d, s,
		func() error { _, err := s.Enqueue(t.Context(), "mail", small("a")); return err },
		func() error { _, err := s.Enqueue(t.Context(), "mail", small("a")); return err },
		func() (err error) {
			claimed, err = s.Claim(t.Context(), "mail", queue.ClaimOptions{Max: 5})
			return err
		},
	)
	if errs[0] != nil || !errors.Is(errs[1], queue.ErrDuplicate) || errs[2] != nil {
		t.Fatal(errs)
	}
	if len(claimed.Deliveries) != 1 || string(claimed.Deliveries[0].Payload) != `{"id":"a"}` {
		t.Errorf("claimed %+v", claimed)
	}
	if got := s.commits.Load() - before; got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
}

// A refusal, an empty claim and a status rest on what others in the same commit did:
// they are answered after its last sync, and fail with it.
func TestAnswersWaitForTheSyncTheyRestOn(t *testing.T) {
	d, s, w := onDisk(t)
	w.Arm(crashtest.FailMatching(lastSync(), syscall.EIO, 1))
	errs := together(t, d, s,
		func() error { _, err := s.Enqueue(t.Context(), "mail", small("a")); return err },
		func() error { _, err := s.Enqueue(t.Context(), "mail", small("a")); return err },
		func() error { _, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{}); return err },
		func() error { _, err := s.Claim(t.Context(), "mail", queue.ClaimOptions{}); return err },
		func() error { _, err := s.Status(t.Context(), queue.StatusOptions{}); return err },
	)
	var us []*queue.UncertainError
	for i, err := range errs {
		var u *queue.UncertainError
		if !errors.As(err, &u) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("call %d: %v, want uncertain with EIO", i, err)
		}
		us = append(us, u)
	}
	if len(us[0].Enqueued) != 1 || us[0].Enqueued[0].ID != "a" {
		t.Errorf("the enqueue's would-be result: %+v", us[0].Enqueued)
	}
	if !errors.Is(us[1].Refused, queue.ErrDuplicate) {
		t.Errorf("the refusal: %v", us[1].Refused)
	}
	if len(us[2].Deliveries) != 1 || us[2].Deliveries[0].Receipt.ID != "a" {
		t.Errorf("the claim's would-be result: %+v", us[2].Deliveries)
	}
	// The next call of this process resolves it; what the rename had published stands.
	committed, err := s.Resolve(t.Context(), us[0])
	if err != nil || !committed {
		t.Fatalf("resolve: %v, %v", committed, err)
	}
	if err := s.Ack(t.Context(), us[2].Deliveries[0].Receipt); err != nil {
		t.Errorf("the would-be receipt of a commit that happened: %v", err)
	}
}

// An error before the rename fails everybody in the commit, and nothing happened.
func TestErrorBeforeTheRename(t *testing.T) {
	d, s, w := onDisk(t)
	temp := isStateSync
	w.Arm(crashtest.FailMatching(temp, syscall.EIO, 1))
	errs := together(t, d, s,
		func() error { _, err := s.Enqueue(t.Context(), "mail", small("a")); return err },
		func() error { _, err := s.Enqueue(t.Context(), "mail", small("a")); return err },
	)
	for i, err := range errs {
		if !errors.Is(err, syscall.EIO) || errors.Is(err, queue.ErrUncertain) || errors.Is(err, queue.ErrDuplicate) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if _, err := s.Enqueue(t.Context(), "mail", small("a")); err != nil {
		t.Errorf("the next try: %v", err)
	}
}

// Uncertain completion is seen by every process, and resolved by none in passing.
func TestUncertaintyIsSeenByEveryProcess(t *testing.T) {
	d, s, w := onDisk(t)
	w.Arm(crashtest.FailMatching(lastSync(), syscall.EIO, 1))
	_, err := s.Enqueue(t.Context(), "mail", small("a"))
	var u *queue.UncertainError
	if !errors.As(err, &u) {
		t.Fatal(err)
	}
	other, err := Open(t.Context(), crashDir, crashOptions(d.Process()))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, err = other.Enqueue(t.Context(), "mail", small("b"))
	var stale *StaleLockError
	if !errors.As(err, &stale) || !stale.Owner.Uncertain {
		t.Fatalf("another process: %v, want a stale lock that says uncertain", err)
	}
	if _, err := other.Resolve(t.Context(), u); !errors.Is(err, ErrStaleLock) {
		t.Errorf("resolve by another process: %v, want ErrStaleLock", err)
	}
	status, err := other.Status(t.Context(), queue.StatusOptions{})
	if err != nil || status.Settled || status.Complete() || status.Owner == nil || !status.Owner.Uncertain {
		t.Fatalf("status: %+v, %v", status, err)
	}
	recovery, err := other.Recover(t.Context())
	if err != nil || recovery.Owner == nil || recovery.Revision != u.Revision+1 {
		t.Fatalf("recover: %+v, %v", recovery, err)
	}
	for _, s := range []*Store{other, s} {
		if committed, err := s.Resolve(t.Context(), u); err != nil || !committed {
			t.Errorf("resolve: %v, %v", committed, err)
		}
		if _, err := s.Status(t.Context(), queue.StatusOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// T04, the store's part: a late worker cannot settle what was claimed again, nor
// somebody else's message with a receipt that names another.
func TestT04LateWorkerIsRefused(t *testing.T) {
	_, s, _ := onDisk(t)
	ctx := t.Context()
	if _, err := s.EnqueueBatch(ctx, "mail", smalls(2)); err != nil {
		t.Fatal(err)
	}
	a, err := s.Load(ctx, "mail", "m000", queue.LoadOptions{Lease: queue.NoDeadline, WithoutHolder: true})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Load(ctx, "mail", "m000", queue.LoadOptions{Lease: queue.NoDeadline, WithoutHolder: true})
	if err != nil {
		t.Fatal(err)
	}
	other := a.Receipt
	other.ID = "m001"
	for name, late := range map[string]queue.Receipt{"older attempt": a.Receipt, "another message": other} {
		_, failed := s.Fail(ctx, late, queue.FailOptions{})
		for call, err := range map[string]error{
			"ack": s.Ack(ctx, late), "release": s.Release(ctx, late, queue.ReleaseOptions{}),
			"replace": s.ReplacePayload(ctx, late, []byte(`0`)), "fail": failed,
		} {
			if !errors.Is(err, queue.ErrLost) {
				t.Errorf("%s with the receipt of %s: %v, want ErrLost", call, name, err)
			}
		}
	}
	if err := s.Ack(ctx, b.Receipt); err != nil {
		t.Errorf("the current holder: %v", err)
	}
}
