//go:build unix

package measure

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest/testrun"
)

func TestParseStat(t *testing.T) {
	// A program may be named like fields.
	got, err := parseStat([]byte("42 (a) b 1 (c) S 1 42 42 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 4 0 100\n"))
	if want := 2 * time.Second; err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got, err := parseStat([]byte("42 (a) S 1\n")); err == nil {
		t.Errorf("cut off: got %v", got)
	}
}

const counters = "   10 0 80 5   20 0 160 9   0 0 0   0 0 0 0   7 3\n"

func TestParseTraffic(t *testing.T) {
	got, err := parseTraffic(counters)
	if want := (Traffic{Bytes: 160 * 512, Flushes: 7}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got, err := parseTraffic("1 2 3 4 5 6 7 8 9 10 11"); err == nil {
		t.Errorf("a kernel that counts no flushes: got %v", got)
	}
}

// The counters of a partition are those of its disk.
func TestFindDevice(t *testing.T) {
	root := t.TempDir()
	disk := filepath.Join(root, "vda")
	partition := filepath.Join(disk, "vda1")
	old := filepath.Join(root, "old")
	for name, text := range map[string]string{
		filepath.Join(disk, "stat"):                counters,
		filepath.Join(disk, "queue", "rotational"): "1\n",
		filepath.Join(partition, "stat"):           "0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		filepath.Join(partition, "partition"):      "1\n",
		filepath.Join(old, "stat"):                 "1 2 3\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, entry := range []string{disk, partition} {
		d, err := findDevice(entry)
		if err != nil || d == nil || d.Kind != "rotating" {
			t.Fatalf("%s: got %v, %v", filepath.Base(entry), d, err)
		}
		if got, err := d.Traffic(); err != nil || got.Flushes != 7 {
			t.Errorf("%s: got %v, %v", filepath.Base(entry), got, err)
		}
	}
	for _, entry := range []string{old, filepath.Join(root, "none")} {
		if d, err := findDevice(entry); err != nil || d != nil {
			t.Errorf("%s: got %v, %v, want none", filepath.Base(entry), d, err)
		}
	}
}

// What the device does anyhow is taken off, and never leaves less than nothing.
func TestMeter(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stat")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		idle float64 // bytes a second
		want float64
	}{
		"nothing when idle":    {0, 40 * 512},
		"more idle than there": {1e18, 0},
	} {
		t.Run(name, func(t *testing.T) {
			write(counters)
			m := Meter{Device: &Device{stat: file}, Idle: Traffic{Bytes: c.idle}, Pids: nil}
			if err := m.Start(); err != nil {
				t.Fatal(err)
			}
			write("10 0 80 5 20 0 200 9 0 0 0 0 0 0 0 9 3\n")
			s, err := m.Stop(4)
			if err != nil || s.Written != c.want || s.Flushes != 2 || s.Messages != 4 {
				t.Errorf("got %+v, %v, want %v written and 2 flushes", s, err, c.want)
			}
		})
	}
	m := Meter{}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	if s, err := m.Stop(1); err != nil || s.Written >= 0 || s.Flushes >= 0 {
		t.Errorf("without a device: got %+v, %v", s, err)
	}
}

// The time of another process counts.
func TestCPUTime(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		testrun.Skip(t, "no /proc")
	}
	own, err := cpuTime(nil)
	if err != nil {
		t.Fatal(err)
	}
	if both, err := cpuTime([]int{os.Getpid()}); err != nil || both < own {
		t.Errorf("got %v, %v, of %v for this process alone", both, err, own)
	}
}
