//go:build unix

package fsguard

import (
	"io"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReadAtWriteAt(t *testing.T) { each(t, testReadAtWriteAt) }

func testReadAtWriteAt(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	f := must(d.Create("a"))(t)
	defer f.Close()
	must(f.WriteAt([]byte("world"), 6))(t)
	must(f.WriteAt([]byte("hello"), 0))(t)
	tests := []struct {
		off  int64
		size int
		want string
		err  error
	}{
		{0, 11, "hello\x00world", nil},
		{6, 5, "world", nil},
		{6, 10, "world", io.EOF},
		{11, 1, "", io.EOF},
		{100, 1, "", io.EOF},
		{0, 0, "", nil},
	}
	for _, tt := range tests {
		p := make([]byte, tt.size)
		n, err := f.ReadAt(p, tt.off)
		if string(p[:n]) != tt.want || err != tt.err { // io.EOF must come bare
			t.Errorf("ReadAt(%d, %d): got %q, %v, want %q, %v", tt.size, tt.off, p[:n], err, tt.want, tt.err)
		}
	}
	if n, err := f.ReadAt(make([]byte, 1), -1); err == nil {
		t.Errorf("ReadAt(-1): got %d, nil", n)
	}
	ok(t, f.Sync())
}

func TestClosedFile(t *testing.T) { each(t, testClosedFile) }

func testClosedFile(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	f := must(d.Create("a"))(t)
	ok(t, f.Close())
	wantErr(t, f.Close(), OpClose, fs.ErrClosed)
	_, err := f.Info()
	wantErr(t, err, OpInfo, fs.ErrClosed)
	_, err = f.ReadAt(make([]byte, 1), 0)
	wantErr(t, err, OpRead, fs.ErrClosed)
	_, err = f.WriteAt(make([]byte, 1), 0)
	wantErr(t, err, OpWrite, fs.ErrClosed)
	_, err = f.TryLock(Exclusive)
	wantErr(t, err, OpLock, fs.ErrClosed)
	wantErr(t, f.Allocate(10), OpAllocate, fs.ErrClosed)
	wantErr(t, f.Sync(), OpSync, fs.ErrClosed)
	wantErr(t, f.SyncData(), OpSyncData, fs.ErrClosed)
	wantErr(t, f.Lock(Exclusive), OpLock, fs.ErrClosed)
	wantErr(t, f.Unlock(), OpUnlock, fs.ErrClosed)
}

// A pipe cannot be synced: the errno comes through for both kinds of target.
func TestSyncErrorKeepsErrno(t *testing.T) {
	var fds [2]int
	ok(t, unix.Pipe(fds[:]))
	defer unix.Close(fds[1])
	f := newDescriptor(fds[0], "pipe")
	defer f.Close()
	file := &osFile{f}
	wantErr(t, file.Sync(), OpSync, unix.EINVAL)
	wantErr(t, file.SyncData(), OpSyncData, unix.EINVAL)
	wantErr(t, (&pinned{descriptor: f}).Sync(), OpSyncDir, unix.EINVAL)
}
