//go:build linux

package crashtest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/internal/fsguard"
)

// The simulated disk answers like the operating system: long random runs of every
// operation, on both side by side, give the same results and the same errors.
func TestParityWithTheOS(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(150) {
		sim, real := NewDisk(), filepath.Join(t.TempDir(), "store")
		plantParity(t, sim, real)
		a := &parity{root: must(sim.Process().OpenRoot("/store"))(t), r: rand.New(rand.NewPCG(seed, 0))}
		b := &parity{root: must(fsguard.OS().OpenRoot(real))(t), r: rand.New(rand.NewPCG(seed, 0))}
		var log strings.Builder
		for range 110 {
			got, want := a.step(), b.step()
			fmt.Fprintln(&log, want)
			if got != want {
				t.Fatalf("seed %d: the simulated disk answers\n%s\nafter\n%s", seed, got, log.String())
			}
			seen[strings.Fields(want)[0]+" "+result(want)] = true
		}
		b.closeAll()
	}
	// The runs met what they are meant to compare.
	for _, want := range []string{
		"open ErrSymlink", "open ErrNotPlain", "open ErrLinked", "open ErrNotExist", "open ok",
		"opendir ErrSymlink", "opendir ErrNotPlain", "opendir ok", "create ErrExist", "mkdir ErrExist",
		"rename ENOTEMPTY", "rename ENOTDIR", "rename EISDIR", "rename ok", "remove EISDIR", "remove ok",
		"removedir ENOTEMPTY", "removedir ENOTDIR", "removedir ok", "mkdir ErrNotExist", "write EBADF",
		"write ok", "read EOF", "trylock true", "trylock false", "info ErrClosed", "create ErrName", "allocate ok",
		"link ErrExist", "link ErrNotExist", "link EPERM", "link ErrName", "link ok",
		"move ErrNotExist", "move ENOTEMPTY", "move ENOTDIR", "move EISDIR", "move ErrName", "move ok",
		"movenew ErrExist", "movenew ErrNotExist", "movenew ErrName", "movenew ok",
		"exchange ErrNotExist", "exchange ErrName", "exchange ok",
	} {
		if !seen[want] {
			t.Errorf("no run met %q", want)
		}
	}
}

func result(line string) string {
	_, after, _ := strings.Cut(line, "= ")
	return strings.Fields(after)[0]
}

// plantParity puts the same odd things on both.
func plantParity(t *testing.T, sim *Disk, real string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(real, name) }
	sim.MkdirAll("/store/d/x")
	ok(t, os.MkdirAll(at("d/x"), 0o700))
	sim.Symlink("a", "/store/s")
	ok(t, os.Symlink("a", at("s")))
	sim.Fifo("/store/p")
	ok(t, syscall.Mkfifo(at("p"), 0o600))
	sim.WriteRaw("/store/h", []byte("linked"))
	ok(t, os.WriteFile(at("h"), []byte("linked"), 0o600))
	if err := os.Link(at("h"), at("l")); err != nil {
		testrun.Skip(t, fmt.Sprintf("this filesystem has no hard links, with which ErrLinked is compared: %v", err))
	}
	sim.HardLink("/store/h", "/store/l")
}

// A parity is one side of the comparison.
type parity struct {
	r     *rand.Rand
	root  fsguard.Dir
	dirs  []fsguard.Dir
	files []fsguard.File
}

func (p *parity) name() string {
	return []string{"a", "b", "c", "d", "x", "s", "p", "h", "l", "d", "a", "b"}[p.r.IntN(12)]
}

func (p *parity) dir() fsguard.Dir {
	if i := p.r.IntN(2 * (len(p.dirs) + 1)); i < len(p.dirs) {
		return p.dirs[i]
	}
	return p.root
}

// step does one operation and says how it went. Both sides draw the same numbers.
func (p *parity) step() string {
	d, name, other := p.dir(), p.name(), p.name()
	to := p.dir()
	if p.r.IntN(40) == 0 {
		name = []string{"", ".", "..", "a/b"}[p.r.IntN(4)]
	}
	switch p.r.IntN(26) {
	case 0:
		return say("mkdir", name, d.Mkdir(name))
	case 1, 2:
		f, err := d.Create(name)
		p.keep(f, err)
		return say("create", name, err)
	case 3:
		f, err := d.Open(name)
		p.keep(f, err)
		return say("open", name, err)
	case 4:
		f, err := d.OpenWrite(name)
		p.keep(f, err)
		return say("open", name+" for writing", err)
	case 5:
		if p.r.IntN(4) == 0 {
			name = "."
		}
		sub, err := d.OpenDir(name)
		if err == nil {
			p.dirs = append(p.dirs, sub)
		}
		return say("opendir", name, err)
	case 6, 7:
		return say("rename", name+" to "+other, d.Rename(name, other))
	case 8:
		return say("remove", name, d.Remove(name))
	case 9:
		return say("removedir", name, d.RemoveDir(name))
	case 10:
		err := d.WriteFile(name, []byte(other))
		if errors.Is(err, fs.ErrExist) { // package os says so before the kernel says EISDIR
			err = &fsguard.Error{Op: fsguard.OpWriteFile, Name: name, Err: syscall.EISDIR}
		}
		return say("writefile", name, err)
	case 11:
		info, err := d.Lstat(name)
		return say("lstat", name+" "+facts(info), err)
	case 12:
		names, err := d.ReadDir()
		return say("readdir", fmt.Sprint(names), err)
	case 13:
		return say("syncdir", filepath.Base(d.Name()), d.Sync())
	case 14, 15:
		return say("link", name+" to "+other, d.Link(name, to, other))
	case 16, 17, 18, 19:
		op, move := "move", d.Move
		if p.r.IntN(2) == 0 {
			op, move = "movenew", d.MoveNew
		}
		if info, err := d.Lstat(name); err == nil && info.Mode.IsDir() {
			to = d // a simulated directory moves nowhere else
		}
		return say(op, name+" to "+other, move(name, to, other))
	case 20:
		return say("exchange", name+" with "+other, d.Exchange(name, other))
	}
	if len(p.files) == 0 {
		return say("nothing", "", nil)
	}
	f, off := p.files[p.r.IntN(len(p.files))], int64(p.r.IntN(9))
	switch p.r.IntN(8) {
	case 0:
		n, err := f.WriteAt([]byte(other+name), off)
		return say("write", fmt.Sprint(f.Name(), off, n), err)
	case 1:
		buf := make([]byte, 6)
		n, err := f.ReadAt(buf, off)
		return say("read", fmt.Sprintf("%s %d %q", f.Name(), off, buf[:n]), err)
	case 2:
		return say("allocate", fmt.Sprint(f.Name(), off+1), f.Allocate(off+1))
	case 3:
		info, err := f.Info()
		return say("info", f.Name()+" "+facts(info), err)
	case 4, 5:
		held, err := f.TryLock(fsguard.LockMode(p.r.IntN(2)))
		if err == nil {
			return fmt.Sprintf("trylock %s = %v", f.Name(), held)
		}
		return say("trylock", f.Name(), err)
	case 6:
		return say("unlock", f.Name(), f.Unlock())
	}
	return say("close", f.Name(), f.Close())
}

func (p *parity) keep(f fsguard.File, err error) {
	if err == nil {
		p.files = append(p.files, f)
	}
}

func (p *parity) closeAll() {
	for _, f := range p.files {
		f.Close()
	}
	for _, d := range append(p.dirs, p.root) {
		d.Close()
	}
}

// facts are what both sides agree on: not numbers and times, and no size or links
// of directories.
func facts(i fsguard.Info) string {
	if i.Mode.IsDir() || i.Mode&fs.ModeSymlink != 0 {
		return fmt.Sprint(i.Mode)
	}
	return fmt.Sprint(i.Mode, i.Links, i.Size, i.UID)
}

// say names an error by the sentinel that callers compare with.
func say(op, what string, err error) string {
	how := "ok"
	for _, known := range []struct {
		name string
		err  error
	}{
		{"EOF", io.EOF}, {"ErrName", fsguard.ErrName}, {"ErrSymlink", fsguard.ErrSymlink},
		{"ErrNotPlain", fsguard.ErrNotPlain}, {"ErrLinked", fsguard.ErrLinked}, {"ErrClosed", fs.ErrClosed},
		{"ENOTEMPTY", syscall.ENOTEMPTY}, {"ErrExist", fs.ErrExist}, {"ErrNotExist", fs.ErrNotExist},
		{"ENOTDIR", syscall.ENOTDIR}, {"EISDIR", syscall.EISDIR}, {"EBADF", syscall.EBADF},
		{"EPERM", syscall.EPERM},
	} {
		if errors.Is(err, known.err) {
			how = known.name
			break
		}
		if err != nil {
			how = err.Error()
		}
	}
	var named *fsguard.Error
	if errors.As(err, &named) {
		how += fmt.Sprintf(" as %s %s", named.Op, named.Name)
	}
	return fmt.Sprintf("%s %s = %s", op, what, how)
}
