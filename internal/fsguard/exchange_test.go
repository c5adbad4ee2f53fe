//go:build unix

package fsguard

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// needExchange leaves a test out where the system or this filesystem cannot.
func needExchange(t *testing.T, d Dir) {
	t.Helper()
	creation(t, d, "probe", "")
	creation(t, d, "probed", "")
	if err := d.Exchange("probe", "probed"); errors.Is(err, errors.ErrUnsupported) {
		skip(t, "no names are exchanged here: "+err.Error())
	} else {
		ok(t, err)
	}
	ok(t, d.Remove("probe"))
	ok(t, d.Remove("probed"))
}

// Whatever stands at the two names, each means after it what the other did, with the
// inode, the mode and the times that it had, and no other name changes.
func TestExchange(t *testing.T) { each(t, testExchange) }

func testExchange(t *testing.T, fsys FS) {
	for _, tt := range []struct {
		a, b string
		want error
	}{
		{"a", "target", nil},
		{"a", "directory", nil},
		{"directory", "a", nil},
		{"a", "symlink", nil}, // itself, not what it leads to
		{"symlink-dir", "dangling", nil},
		{"fifo", "a", nil},
		{"a", "linked", nil},
		{"a", "a", nil},
		{"linked", "linked-2", nil}, // of one file: nothing happens
		{"a", "missing", fs.ErrNotExist},
		{"missing", "a", fs.ErrNotExist},
		{"missing", "missing", fs.ErrNotExist},
	} {
		t.Run(tt.a+"/"+tt.b, func(t *testing.T) {
			d, _ := twoDirs(t, fsys, false)
			needExchange(t, d)
			want := everything(t, d)
			err := d.Exchange(tt.a, tt.b)
			if tt.want != nil {
				wantErr(t, err, OpExchange, tt.want)
			} else {
				ok(t, err)
				want[tt.a], want[tt.b] = want[tt.b], want[tt.a]
			}
			if got := everything(t, d); !maps.Equal(got, want) {
				t.Errorf("got\n%v\nwant\n%v", got, want)
			}
		})
	}
}

// What is open goes on being the same file, under the other name.
func TestExchangeKeepsTheFiles(t *testing.T) { each(t, testExchangeKeepsTheFiles) }

func testExchangeKeepsTheFiles(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	needExchange(t, d)
	creation(t, d, "a", "one")
	creation(t, d, "b", "two")
	f := must(d.OpenWrite("a"))(t)
	defer f.Close()
	ok(t, d.Exchange("a", "b"))
	must(f.WriteAt([]byte("O"), 0))(t)
	if a, b := content(t, d, "a"), content(t, d, "b"); a != "two" || b != "One" {
		t.Errorf("got %q and %q, want two and One", a, b)
	}
	ok(t, d.Sync())
}

// What a kernel says where it cannot is errors.ErrUnsupported and still the errno; what
// it says of the files is not.
func TestExchangeError(t *testing.T) {
	cannot := []unix.Errno{unix.EINVAL, unix.ENOSYS, unix.ENOTSUP, unix.EOPNOTSUPP}
	for _, errno := range append(cannot, unix.EXDEV, unix.ENOENT, unix.EIO, unix.EINTR, unix.EPERM) {
		unsupported := slices.Contains(cannot, errno)
		err := ExchangeError(errno)
		if got := errors.Is(err, errors.ErrUnsupported); got != unsupported || !errors.Is(err, errno) {
			t.Errorf("%v: got %v, unsupported %v, want %v", errno, err, got, unsupported)
		}
		if again := ExchangeError(err); again != err {
			t.Errorf("%v: wrapped twice: %v", errno, again)
		}
	}
	if err := ExchangeError(nil); err != nil {
		t.Errorf("got %v, want nil", err)
	}
}
