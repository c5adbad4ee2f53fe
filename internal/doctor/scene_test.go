//go:build unix

package doctor

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/crashtest/reexec"
	"example.com/holdfast/internal/fsguard"
)

// roles are what this binary plays as a second process.
var roles = map[string]func(args []string) error{}

func TestMain(m *testing.M) { reexec.Main(m, roles) }

const plainMounts = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"

// on is a machine with a filesystem of the test's; everything else is as it should be.
func on(fs fsguard.FS) Machine {
	return Machine{
		FS: fs, UID: uint32(os.Geteuid()), Floor: 8 << 20,
		Resolve: func(path string) (string, error) { return path, nil },
		Mounts:  func() ([]byte, error) { return []byte(plainMounts), nil },
		Boot:    func() Boot { return Boot{ID: "b", Clock: true} },
		Trial:   func(context.Context, string) error { return nil },
		After: func(time.Duration) <-chan time.Time {
			over := make(chan time.Time, 1)
			over <- time.Time{}
			return over
		},
	}
}

// simulated is a disk with an empty directory /home on it.
func simulated(t *testing.T) (*crashtest.Disk, *crashtest.Process) {
	t.Helper()
	disk := crashtest.NewDisk()
	p := disk.Process()
	root, err := p.OpenRoot("/")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(root.Mkdir("home"), root.Close()); err != nil {
		t.Fatal(err)
	}
	return disk, p
}

// examine examines and wants that everything could be looked at.
func examine(t *testing.T, m Machine, dir string) Report {
	t.Helper()
	r, err := m.Examine(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range r.Checks {
		if names = append(names, c.Name); c.Tried == "" || c.For == "" || c.Outcome == "" || c.Weight == "" {
			t.Errorf("%s is incomplete: %+v", c.Name, c)
		}
	}
	if want := slices.Insert(Names(), slices.Index(names, scratchDirectory), scratchDirectory); !slices.Equal(names, want) {
		t.Errorf("the checks are %v, want %v", names, want)
	}
	return r
}

// left lists what stands in a directory of a simulated disk.
func left(t *testing.T, p fsguard.FS, dir string) []string {
	t.Helper()
	d, err := p.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	names, err := d.ReadDir()
	if err := errors.Join(err, d.Close()); err != nil {
		t.Fatal(err)
	}
	return names
}

// weights gives the names of the checks of one weight.
func weights(r Report, w Weight) string {
	var names []string
	for _, c := range r.Weighing(w) {
		names = append(names, c.Name)
	}
	return strings.Join(names, " ")
}
