//go:build unix

package fsguard

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// ways are the two that Allocate has.
var ways = []struct {
	name     string
	allocate func(File, int64) error
}{
	{"allocate", File.Allocate},
	{"zero fill", func(f File, size int64) error { return f.(*osFile).zeroFill(size) }},
}

// Both ways give the length and keep what is there.
func TestAllocate(t *testing.T) { each(t, testAllocate) }

func testAllocate(t *testing.T, fsys FS) {
	tests := []struct {
		name    string
		content string
		size    int64
		length  int64
	}{
		{"empty", "", 100, 100},
		{"nothing", "", 0, 0},
		{"longer", "abc", 100, 100},
		{"same", "abc", 3, 3},
		{"shorter", "abcdef", 3, 6},
		{"zero keeps", "abc", 0, 3},
		{"many chunks", "abc", 3*zeroChunk + 1, 3*zeroChunk + 1},
		{"content of many chunks", strings.Repeat("x", 2*zeroChunk+5), 3 * zeroChunk, 3 * zeroChunk},
	}
	for _, way := range ways {
		for _, tt := range tests {
			t.Run(way.name+"/"+tt.name, func(t *testing.T) {
				d, _ := tempDir(t, fsys)
				creation(t, d, "a", tt.content)
				f := must(d.OpenWrite("a"))(t)
				defer f.Close()
				ok(t, way.allocate(f, tt.size))
				if got := must(f.Info())(t).Size; got != tt.length {
					t.Errorf("length: got %d, want %d", got, tt.length)
				}
				want := append([]byte(tt.content), make([]byte, int(tt.length)-len(tt.content))...)
				if got := must(ReadAll(f, 1<<20))(t); !bytes.Equal(got, want) {
					t.Errorf("content changed: got %d bytes, want %d", len(got), len(want))
				}
			})
		}
	}
}

// The room is blocks, not a hole.
func TestAllocateReserves(t *testing.T) { each(t, testAllocateReserves) }

func testAllocateReserves(t *testing.T, fsys FS) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			d, _ := tempDir(t, fsys)
			if zerosAreFree(must(d.Space())(t)) {
				t.Skip("zeros may take no room here")
			}
			f := must(d.Create("a"))(t).(*osFile)
			defer f.Close()
			ok(t, way.allocate(f, 1<<20))
			if got := must(reserved(f))(t); got < 1<<20 {
				t.Errorf("got %d bytes of blocks, want %d: the file is sparse", got, 1<<20)
			}
		})
	}
}

// zerosAreFree reports whether the filesystem may store zeros as a hole.
func zerosAreFree(s Space) bool {
	return slices.Contains([]string{"zfs", "btrfs", "bcachefs", "fuse"}, s.Type)
}

// reserved is how many bytes of blocks f has, once they are written.
func reserved(f *osFile) (int64, error) {
	if err := f.Sync(); err != nil {
		return 0, err
	}
	var st unix.Stat_t
	err := f.control(func(fd int) error { return unix.Fstat(fd, &st) })
	return int64(st.Blocks) * 512, err
}

func TestAllocateErrors(t *testing.T) { each(t, testAllocateErrors) }

func testAllocateErrors(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	creation(t, d, "a", "abc")
	f := must(d.Open("a"))(t)
	defer f.Close()
	wantErr(t, f.Allocate(100), OpAllocate, unix.EBADF) // open for reading only
	wantErr(t, f.Allocate(-1), OpAllocate, unix.EINVAL)
	if got := content(t, d, "a"); got != "abc" {
		t.Errorf("got %q, want abc", got)
	}
}

// The size that stat tells may be too small: the end is where reading ends.
func TestEndFrom(t *testing.T) {
	file := strings.NewReader(strings.Repeat("x", 10_000))
	for _, at := range []int64{0, 1, 9_999, 10_000} {
		if got, err := endFrom(file, at); got != 10_000 || err != nil {
			t.Errorf("from %d: got %d, %v, want 10000", at, got, err)
		}
	}
	if _, err := endFrom(brokenReader{}, 0); err != unix.EIO {
		t.Errorf("got %v, want EIO", err)
	}
}

type brokenReader struct{}

func (brokenReader) ReadAt([]byte, int64) (int, error) { return 0, unix.EIO }

var _ io.ReaderAt = brokenReader{}
