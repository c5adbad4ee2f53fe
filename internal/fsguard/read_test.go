//go:build unix

package fsguard

import (
	"bytes"
	"io"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"
)

// A liar is a file whose stat tells any size and whose reads may be short.
type liar struct {
	File
	data  []byte
	size  int64
	chunk int   // at most so many bytes a read; 0: no limit
	fail  error // instead of the end
	stall bool  // 0, nil instead of the end
}

func (l *liar) Name() string        { return "liar" }
func (l *liar) Info() (Info, error) { return Info{Size: l.size}, nil }
func (l *liar) ReadAt(p []byte, off int64) (int, error) {
	rest := l.data[min(off, int64(len(l.data))):]
	if len(rest) == 0 {
		switch {
		case l.fail != nil:
			return 0, l.fail
		case l.stall:
			return 0, nil
		}
		return 0, io.EOF
	}
	if l.chunk > 0 {
		p = p[:min(len(p), l.chunk)]
	}
	n := copy(p, rest)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestReadAll(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 1000)
	const size = 10_000
	tests := []struct {
		name  string
		file  liar
		limit int64
		want  error
	}{
		{"honest", liar{size: size}, size, nil},
		{"size 0 of a full file", liar{size: 0}, size, nil},
		{"size too small", liar{size: 5_000}, size, nil},
		{"size too big", liar{size: 1 << 40}, size, nil},
		{"negative size", liar{size: -1}, size, nil},
		{"short reads", liar{size: 0, chunk: 7}, size, nil},
		{"one over the limit", liar{size: size}, size - 1, ErrTooLong},
		{"over the limit and size 0", liar{size: 0}, size - 1, ErrTooLong},
		{"far over the limit", liar{size: 0, chunk: 7}, 10, ErrTooLong},
		{"no limit left", liar{size: size}, 0, ErrTooLong},
		{"io error is no end", liar{size: size, chunk: 100, fail: unix.EIO}, size, unix.EIO},
		{"no progress", liar{size: size, chunk: 100, stall: true}, size, io.ErrNoProgress},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.file.data = data
			got, err := ReadAll(&tt.file, tt.limit)
			switch {
			case tt.want == unix.EIO:
				if err != unix.EIO { // the file's own error, as it is
					t.Errorf("got %v, want EIO", err)
				}
			case tt.want != nil:
				wantErr(t, err, OpRead, tt.want)
			case err != nil || !bytes.Equal(got, data):
				t.Errorf("got %d bytes, %v, want %d", len(got), err, len(data))
			}
			if err != nil && got != nil {
				t.Errorf("got %d bytes with an error", len(got))
			}
		})
	}
}

func TestReadAllOfRealFiles(t *testing.T) { each(t, testReadAllOfRealFiles) }

func testReadAllOfRealFiles(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	for _, n := range []int{0, 1, 511, 512, 513, 4096, 100_000} {
		want := bytes.Repeat([]byte{'x'}, n)
		ok(t, d.WriteFile("a", want))
		f := must(d.Open("a"))(t)
		if got, err := ReadAll(f, int64(n)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d: got %d bytes, %v", n, len(got), err)
		}
		if n > 0 {
			_, err := ReadAll(f, int64(n-1))
			wantErr(t, err, OpRead, ErrTooLong)
		}
		ok(t, f.Close())
		_, err := ReadAll(f, 10)
		wantErr(t, err, OpInfo, fs.ErrClosed)
	}
}

// What a file says after its size was read must not matter: /proc says 0 of all.
func TestReadAllOfProc(t *testing.T) { each(t, testReadAllOfProc) }

func testReadAllOfProc(t *testing.T, fsys FS) {
	d, err := fsys.OpenRoot("/proc")
	if err != nil {
		skip(t, "no /proc here")
	}
	defer d.Close()
	f, err := d.Open("filesystems")
	if err != nil {
		skip(t, "no /proc/filesystems here")
	}
	defer f.Close()
	if info := must(f.Info())(t); info.Size != 0 {
		skip(t, "the size of /proc/filesystems is not 0 here")
	}
	if got := must(ReadAll(f, 1<<20))(t); len(got) == 0 {
		t.Error("read nothing")
	}
}
