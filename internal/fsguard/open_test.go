//go:build unix

package fsguard

import (
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenOnlyPlainFiles(t *testing.T) { each(t, testOpenOnlyPlainFiles) }

func testOpenOnlyPlainFiles(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	names := strange(t, path)
	methods := []struct {
		name string
		open func(string) (File, error)
	}{{"Open", d.Open}, {"OpenWrite", d.OpenWrite}}
	for _, m := range methods {
		for _, s := range names {
			t.Run(m.name+"/"+s.name, func(t *testing.T) {
				f, err := m.open(s.name)
				if s.asFile != nil {
					wantErr(t, err, OpOpen, s.asFile)
					return
				}
				ok(t, err)
				defer f.Close()
				if f.Name() != s.name {
					t.Errorf("name: got %q, want %q", f.Name(), s.name)
				}
				if got := string(must(ReadAll(f, 100))(t)); got != "secret" {
					t.Errorf("got %q, want secret", got)
				}
			})
		}
	}
}

func TestOpenRefusesDevicesAndSockets(t *testing.T) { each(t, testOpenRefusesDevicesAndSockets) }

func testOpenRefusesDevicesAndSockets(t *testing.T, fsys FS) {
	null := must(fsys.OpenRoot("/dev"))(t)
	defer null.Close()
	_, err := null.Open("null")
	wantErr(t, err, OpOpen, ErrNotPlain)

	d, path := tempDir(t, fsys)
	fd := must(unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0))(t)
	defer unix.Close(fd)
	t.Chdir(path) // a socket's path is short
	ok(t, unix.Bind(fd, &unix.SockaddrUnix{Name: "socket"}))
	_, err = d.Open("socket")
	wantErr(t, err, OpOpen, ErrNotPlain)
	_, err = d.OpenWrite("socket")
	wantErr(t, err, OpOpen, ErrNotPlain)
	_, err = d.OpenDir("socket")
	wantErr(t, err, OpOpenDir, ErrNotPlain)
}

func TestOpenAccess(t *testing.T) { each(t, testOpenAccess) }

func testOpenAccess(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	creation(t, d, "a", "old content")
	r := must(d.Open("a"))(t)
	defer r.Close()
	_, err := r.WriteAt([]byte("x"), 0)
	wantErr(t, err, OpWrite, unix.EBADF)

	w := must(d.OpenWrite("a"))(t)
	defer w.Close()
	must(w.WriteAt([]byte("new"), 0))(t)
	if got, want := content(t, d, "a"), "new content"; got != want {
		t.Errorf("got %q, want %q: OpenWrite must not truncate", got, want)
	}
}

// What is opened is closed on exec, in blocking mode, and so not in the poller.
func TestDescriptorFlags(t *testing.T) { each(t, testDescriptorFlags) }

func testDescriptorFlags(t *testing.T, fsys FS) {
	d, _ := tempDir(t, fsys)
	ok(t, d.Mkdir("sub"))
	created := must(d.Create("a"))(t).(*osFile)
	opened := must(d.Open("a"))(t).(*osFile)
	written := must(d.OpenWrite("a"))(t).(*osFile)
	sub := must(d.OpenDir("sub"))(t)
	defer created.Close()
	defer opened.Close()
	defer written.Close()
	defer sub.Close()
	for name, desc := range map[string]*descriptor{
		"root": pinnedOf(d).descriptor, "sub": pinnedOf(sub).descriptor, "created": created.descriptor,
		"opened": opened.descriptor, "written": written.descriptor,
	} {
		ok(t, desc.control(func(fd int) error {
			if got := must(unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0))(t); got&unix.O_NONBLOCK != 0 {
				t.Errorf("%s is in non-blocking mode", name)
			}
			if got := must(unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0))(t); got&unix.FD_CLOEXEC == 0 {
				t.Errorf("%s would survive exec", name)
			}
			return nil
		}))
	}
}

func TestCheckPlain(t *testing.T) {
	tests := []struct {
		name     string
		mode     fs.FileMode
		links    uint64
		want     error
		replaced bool
	}{
		{"plain", 0o600, 1, nil, false},
		{"linked", 0o600, 2, ErrLinked, false},
		{"unlinked", 0o600, 0, ErrNotPlain, true},
		{"directory", fs.ModeDir, 1, ErrNotPlain, false},
		{"removed directory", fs.ModeDir, 0, ErrNotPlain, false},
		{"symlink", fs.ModeSymlink, 1, ErrSymlink, false},
		{"fifo", fs.ModeNamedPipe, 1, ErrNotPlain, false},
		{"device", fs.ModeDevice, 1, ErrNotPlain, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			info := Info{Mode: tt.mode, Links: tt.links}
			if got := checkPlain(info); got != tt.want {
				t.Errorf("checkPlain: got %v, want %v", got, tt.want)
			}
			if got := replaced(info); got != tt.replaced {
				t.Errorf("replaced: got %v, want %v", got, tt.replaced)
			}
			if got, want := info.Plain(), tt.want == nil; got != want {
				t.Errorf("Plain: got %v, want %v", got, want)
			}
		})
	}
}

// An open that fails closes what it had opened.
func TestRefusedOpenLeaksNothing(t *testing.T) { each(t, testRefusedOpenLeaksNothing) }

func testRefusedOpenLeaksNothing(t *testing.T, fsys FS) {
	d, path := tempDir(t, fsys)
	names := strange(t, path)
	before := nextDescriptor(t)
	for _, s := range names {
		if f, err := d.Open(s.name); err == nil {
			f.Close()
		}
		if f, err := d.OpenWrite(s.name); err == nil {
			f.Close()
		}
		if sub, err := d.OpenDir(s.name); err == nil {
			sub.Close()
		}
		if f, err := d.Create(s.name); err == nil {
			f.Close()
		}
		if r, err := fsys.OpenRoot(path + "/" + s.name); err == nil {
			r.Close()
		}
		if got := nextDescriptor(t); got != before {
			t.Fatalf("%s: the next descriptor is %d, was %d", s.name, got, before)
		}
	}
}

// nextDescriptor is the lowest free number.
func nextDescriptor(t *testing.T) int {
	t.Helper()
	f := must(os.Open("/dev/null"))(t)
	defer f.Close()
	return int(f.Fd())
}
