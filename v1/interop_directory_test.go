//go:build unix

package holdfast

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The rest of the list of differences: what is about directories and filesystems.

// Go follows symlinks above the queue directory; the package refuses them where it makes
// the directories and in its quarantine, and follows them elsewhere.
func TestInteropSymlinkAbove(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	real := newInteropDirs(t)
	above := filepath.Join(t.TempDir(), "above")
	interopOK(t, os.Symlink(filepath.Dir(real.Queue), above))
	d := interopDirs{filepath.Join(above, "q"), filepath.Join(above, "f")}
	args := interopArgs{"queue": d.Queue, "failed": d.Failed, "id": interopID, "entry": json.RawMessage(interopGen("G1"))}
	for _, method := range []string{"ensure", "fail"} {
		if a := p.call(t, method, args); a.OK || !strings.Contains(a.Message, "is not a directory") {
			t.Errorf("javascript, %s: %v", method, a)
		}
	}
	p.must(t, "enqueue", args, nil)
	s, err := OpenOrCreate(d.Queue, &Options{FailedDir: d.Failed})
	interopOK(t, err)
	defer s.Close()
	interopOK(t, s.FailID(context.Background(), interopID))
	if text, err := os.ReadFile(real.failedFile()); err != nil || genOf(t, text) != "G1" {
		t.Errorf("set aside: %s %v", text, err)
	}
}

// A link that the system refuses: helper-unavailable in Go, the system's own code in
// this version of the package. Nothing is changed, and both go on elsewhere.
func TestInteropOtherDevice(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	d := newInteropDirs(t)
	elsewhere, err := os.MkdirTemp("/dev/shm", "interop")
	if err != nil {
		skip(t, "no second filesystem to be had: "+err.Error())
	}
	t.Cleanup(func() { interopOK(t, os.RemoveAll(elsewhere)) })
	var here, there syscall.Stat_t
	interopOK(t, syscall.Stat(d.Queue, &here), syscall.Stat(elsewhere, &there))
	if here.Dev == there.Dev {
		skip(t, "the only other directory is on the same filesystem")
	}
	d.Failed = elsewhere
	interopOK(t, interopPut(d.claimFile(), "G1"))
	before := d.names(t)
	if a := p.call(t, "fail", interopArgs{"queue": d.Queue, "failed": d.Failed, "id": interopID}); a.Code != "EXDEV" {
		t.Errorf("javascript: %v", a)
	}
	for _, r := range []Route{HardLink, RenameNoReplace} {
		s := interopStore(t, d, Options{ClaimBy: r})
		err := s.FailID(context.Background(), interopID)
		if !errors.Is(err, ErrHelperUnavailable) || !errors.Is(err, syscall.EXDEV) {
			t.Errorf("go by %v: %v", r, err)
		}
	}
	if after := d.names(t); !slices.Equal(after, before) {
		t.Errorf("names %q, were %q", after, before)
	}
}

// A directory that is not there: nothing to the package, which makes it when it writes;
// an error to Go, which makes it only when told. Of one that is there the package sets
// the mode, Go does not.
func TestInteropDirectories(t *testing.T) {
	t.Parallel()
	p := newInteropPeer(t)
	dir := filepath.Join(t.TempDir(), "q")
	args := interopArgs{"queue": dir, "id": interopID, "entry": 1}
	for method, want := range map[string]string{"load": "null", "pending": "[]", "ack": "null"} {
		if a := p.call(t, method, args); !a.OK || !bytes.Equal(a.Value, []byte(want)) {
			t.Errorf("javascript, %s: %v, want %s", method, a, want)
		}
	}
	if _, err := Open(dir, nil); !errors.Is(err, ErrNoDirectory) {
		t.Errorf("go: %v", err)
	}
	p.must(t, "enqueue", args, nil)
	interopOK(t, os.Chmod(dir, 0o750))
	s, err := OpenOrCreate(dir, nil)
	interopOK(t, err)
	_, err = s.Enqueue(context.Background(), interopID, []byte("1"))
	interopOK(t, err, s.Close())
	mode := func(want os.FileMode) {
		t.Helper()
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != want {
			t.Errorf("mode %v, want %v: %v", info.Mode(), want, err)
		}
	}
	mode(0o750)
	p.must(t, "ensure", interopArgs{"queue": dir, "failed": dir + "/../f"}, nil)
	mode(0o700)
}
