//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/holdfast/queue"
)

// A record that a dead owner left stops everything but looking, until the operator
// recovers. This one cannot even be read.
func TestRecover(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "chat", "1", "--id", "m")
	lock := filepath.Join(s.dir, ".fs-safe-queue-v2", ".state-transfer.lock")
	f, err := os.OpenFile(lock, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("{half a record"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	got := s.refused(exitOperator, "stale_lock", "claim", "chat")
	if l := decode[errorLine](t, got.err); l.Run != "holdfast recover --dir "+s.dir {
		t.Errorf("the next command is %q", l.Run)
	}
	s.refused(exitOperator, "stale_lock", "enqueue", "chat", "2")
	st := decode[statusLine](t, s.must("status", "--json"))
	if st.Settled || st.Owner == nil || st.Queues["chat"].Pending != 1 {
		t.Errorf("status: %+v", st)
	}
	if got := s.must("ls", "chat"); !strings.HasPrefix(got, "UNSETTLED: ") {
		t.Errorf("ls: %q", got)
	}
	if got := s.must("show", "chat", "m", "--payload"); got != "1" {
		t.Errorf("show: %q", got)
	}

	type recovered struct {
		Recovered    bool         `json:"recovered"`
		Owner        *queue.Owner `json:"owner"`
		Revision     uint64       `json:"revision"`
		TempsRemoved int          `json:"temps_removed"`
	}
	r := decode[recovered](t, s.must("recover", "--json"))
	if !r.Recovered || r.Owner == nil || r.Revision <= st.Revision {
		t.Errorf("recover: %+v", r)
	}
	if got := s.must("recover"); got != "nothing to recover\n" {
		t.Errorf("again: %q", got)
	}
	s.must("claim", "chat")
}

func TestInitRefuses(t *testing.T) {
	s := newStore(t)
	s.refused(exitRefused, "exists", "init")
	s.refused(exitRefused, "exists", "init", "--resume")

	full := &session{t: t, dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(full.dir, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(full.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	got := full.refused(exitRefused, "not_empty", "init")
	if l := decode[errorLine](t, got.err); !strings.Contains(l.Error, "notes.txt") || l.Run != "holdfast init --dir "+full.dir+"/holdfast" {
		t.Errorf("%+v", l)
	}

	open := &session{t: t, dir: t.TempDir()}
	if err := os.Chmod(open.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	open.refused(exitOperator, "unsafe", "init")

	nobody := &session{t: t, dir: t.TempDir()}
	nobody.refused(exitOperator, "no_store", "claim", "chat")
}
