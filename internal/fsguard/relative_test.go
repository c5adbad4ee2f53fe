//go:build unix

package fsguard

import (
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The calls are there where tests run, and asking changes nothing and leaves nothing open.
func TestCheckRelative(t *testing.T) {
	ok(t, CheckRelative())
	d, path := tempDir(t, OS())
	strange(t, path)
	before := everything(t, d)
	next := nextDescriptor(t)
	ok(t, CheckRelative())
	ok(t, pinnedOf(d).control(checkRelative))
	if after := everything(t, d); !maps.Equal(after, before) {
		t.Errorf("got %v, want %v", after, before)
	}
	if after := nextDescriptor(t); after != next {
		t.Errorf("the next descriptor is %d, was %d", after, next)
	}
}

// Any answer but ENOENT is reported with the name of the call; an interrupted one is
// asked again.
func TestCheckRelativeProbes(t *testing.T) {
	saved := probes
	defer func() { probes = saved }()
	root := must(os.Open("."))(t)
	defer root.Close()
	dirfd := int(root.Fd())
	for _, answer := range []error{unix.ENOSYS, unix.EPERM, unix.EACCES, unix.EINVAL, nil} {
		for i, p := range saved {
			probes = append(probes[:0:0], saved...)
			probes[i].ask = func(int) error { return answer }
			err := checkRelative(dirfd)
			if !errors.Is(err, errors.ErrUnsupported) || answer != nil && !errors.Is(err, answer) {
				t.Errorf("%s answers %v: got %v", p.call, answer, err)
			} else if !strings.Contains(err.Error(), p.call+" ") {
				t.Errorf("%q does not name %s", err, p.call)
			}
		}
	}
	interrupted := false
	probes = append(probes[:0:0], saved...)
	probes[0].ask = func(int) error {
		if !interrupted {
			interrupted = true
			return unix.EINTR
		}
		return unix.ENOENT
	}
	ok(t, checkRelative(dirfd))
}
