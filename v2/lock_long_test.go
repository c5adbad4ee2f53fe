//go:build unix

package holdfast

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"example.com/holdfast/queue"
)

// A lock file that is longer than its record could never be blanked again: it is
// corruption, for every call, and Recover does not answer nil without having helped.
func TestLockFileTooLong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s, err := Create(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lock := filepath.Join(dir, namespaceDir, lockFile)
	if err := os.WriteFile(lock, []byte(blankRecord+" "), 0o600); err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, err := s.Enqueue(t.Context(), "mail", queue.Message{Payload: []byte(`1`)}); !errors.As(err, &corrupt) || corrupt.File != lockFile {
		t.Errorf("enqueue: %v", err)
	}
	if _, err := s.Recover(t.Context()); !errors.Is(err, ErrCorrupt) {
		t.Errorf("recover: %v", err)
	}
	r, err := VerifyDir(t.Context(), dir, nil, VerifyOptions{})
	if err != nil || r.OK || len(r.Faults) != 1 || r.Faults[0].Code != "lock" {
		t.Errorf("verify: %+v, %v", r, err)
	}
	if err := os.WriteFile(lock, []byte(blankRecord), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enqueue(t.Context(), "mail", queue.Message{Payload: []byte(`1`)}); err != nil {
		t.Errorf("after the operator cut it: %v", err)
	}
}
