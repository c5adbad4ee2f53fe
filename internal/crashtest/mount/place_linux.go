package mount

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A Place is a directory in memory for images and mount points.
type Place struct {
	t   testing.TB
	dir string
	n   int
}

// placeBytes bounds what the images in a place may hold together.
const placeBytes = 1 << 30

// NewPlace makes a place. Everything that was mounted in it is unmounted when the test
// ends.
func NewPlace(t testing.TB) *Place {
	t.Helper()
	p := &Place{t: t, dir: t.TempDir()}
	p.mount("images", p.dir, "tmpfs", 0, fmt.Sprintf("mode=700,size=%d", placeBytes))
	return p
}

// name gives a path in the place that is new.
func (p *Place) name(what string) string {
	p.n++
	return filepath.Join(p.dir, fmt.Sprintf("%s%d", what, p.n))
}

// point makes a directory to mount on.
func (p *Place) point() string {
	p.t.Helper()
	dir := p.name("at")
	if err := os.Mkdir(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	return dir
}

// Mount makes a filesystem of a kind and mounts it.
func (p *Place) Mount(k Kind) *Mount {
	p.t.Helper()
	switch {
	case k.Type == Overlay.Type:
		return p.overlay(p.Format(Ext4).Mount())
	case len(k.Make) == 0:
		return p.mount(k.Name, p.point(), k.Type, 0, k.Options)
	}
	return p.Format(k).Mount()
}

// overlay mounts an overlay over an empty directory, its upper one in m.
func (p *Place) overlay(m *Mount) *Mount {
	p.t.Helper()
	var dirs [3]string
	for i, name := range []string{"lower", "upper", "work"} {
		dirs[i] = filepath.Join(m.Dir, name)
		if err := os.Mkdir(dirs[i], 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
	return p.mount(Overlay.Name, p.point(), Overlay.Type, 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dirs[0], dirs[1], dirs[2]))
}

// A Mount is a filesystem that is mounted.
type Mount struct {
	Dir string

	t       testing.TB
	of      *Device // nil: none
	options string
	gone    bool
}

// mount mounts. A test that fails unmounts all the same.
func (p *Place) mount(source, dir, kind string, flags uintptr, options string) *Mount {
	p.t.Helper()
	m := &Mount{t: p.t, Dir: dir, options: options}
	if err := unix.Mount(source, dir, kind, flags, options); err != nil {
		p.t.Fatalf("mount of %s (%s): %v", kind, options, err)
	}
	p.t.Cleanup(m.Unmount)
	return m
}

// Unmount ends the use of the filesystem. Twice is no error.
func (m *Mount) Unmount() {
	m.t.Helper()
	if m.gone {
		return
	}
	m.gone = true
	if err := unix.Unmount(m.Dir, 0); err != nil {
		m.t.Errorf("unmount: %v; left open: %s", err, openIn(m.Dir))
		// It goes when whoever uses it ends.
		if err := unix.Unmount(m.Dir, unix.MNT_DETACH); err != nil {
			m.t.Error(err)
		}
	}
	m.of.unmounted()
}

// openIn names what this process has open below dir.
func openIn(dir string) string {
	var found []string
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err.Error()
	}
	for _, fd := range fds {
		// One that was closed meanwhile is not open.
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, dir+"/") {
			found = append(found, to)
		}
	}
	return strings.Join(found, ", ")
}

// run runs a command to its end.
func run(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}
