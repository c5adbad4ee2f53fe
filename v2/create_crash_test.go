//go:build unix

package holdfast

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A creation that a failed sync of its root interrupted is finished anew, and survives:
// a later sync alone would not make durable what the failed one had covered.
func TestCrashResumeAfterAFailedSync(t *testing.T) {
	run := func(fs fsguard.FS, j *crashtest.Journal) {
		j.Begin("create", nil)
		syncs := 0
		s, err := Create(context.Background(), crashDir, crashOptions(crashtest.Wrap(fs, crashtest.FailMatching(func(op fsguard.Op, path string) bool {
			if op == fsguard.OpSyncDir && path == "." {
				syncs++
				return syncs == 3 // of the parent, of the empty root, of the namespace's edge
			}
			return false
		}, syscall.EIO, 1))))
		if err == nil {
			s.Close() // never: then the exploration finds nothing created
			return
		}
		if s, err = ResumeCreate(context.Background(), crashDir, crashOptions(fs)); err != nil {
			j.Fail("create", err)
			return
		}
		defer s.Close()
		j.Ack("create", nil)
	}
	crashtest.Explore(t, crashtest.Scenario{
		Name: "resume", Setup: func(t testing.TB, d *crashtest.Disk) { d.MkdirAll("/data") }, Run: run, Check: checkCreated,
	}, smaller(crashtest.Options{MaxImages: 16, AfterCheck: 4}))
}

// A store that was created is whole after a loss of power, its lock included: nothing is
// to be recovered.
func TestCrashCreatedIsSettled(t *testing.T) {
	run := func(fs fsguard.FS, j *crashtest.Journal) {
		j.Begin("create", nil)
		s, err := Create(context.Background(), crashDir, crashOptions(fs))
		if err != nil {
			return
		}
		defer s.Close()
		j.Ack("create", nil)
	}
	check := func(t testing.TB, fs fsguard.FS, j *crashtest.Journal) error {
		if _, acked := j.Last("create", crashtest.Acked); !acked {
			return nil
		}
		s, err := Open(context.Background(), crashDir, crashOptions(fs))
		if err != nil {
			return err
		}
		defer s.Close()
		st, err := s.Status(context.Background(), queue.StatusOptions{})
		if err == nil && !st.Settled {
			err = fmt.Errorf("a created store is unsettled: %+v", st.Owner)
		}
		return err
	}
	crashtest.Explore(t, crashtest.Scenario{
		Name: "create", Setup: func(t testing.TB, d *crashtest.Disk) { d.MkdirAll("/data") }, Run: run, Check: check,
	}, smaller(crashtest.Options{MaxImages: 16, AfterCheck: -1}))
}
