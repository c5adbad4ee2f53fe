package mount

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"example.com/holdfast/internal/crashtest/testrun"
)

// A kind that the kernel lacks is asked for, and may not be left out where nothing may be.
func TestNeedKind(t *testing.T) {
	bin := t.TempDir()
	asked := filepath.Join(bin, "asked")
	must(t, os.WriteFile(filepath.Join(bin, "modprobe"), []byte("#!/bin/sh\necho \"$@\" >>"+asked+"\nexit 1\n"), 0o700))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	lacking, unable := Kind{Type: "nosuchfs"}, Kind{Type: "proc", Needs: "/proc/no such file"}
	optional := func(k Kind) Kind { k.Optional = true; return k }
	for _, tt := range []struct {
		name string
		kind Kind
		all  string
		want string
		asks string
	}{
		{"there", Kind{Type: "proc"}, "1", "", ""},
		{"lacking", lacking, "", "skipped: this kernel has no nosuchfs\n", "nosuchfs\n"},
		// A real test ends at the first.
		{"lacking, nothing may be left out", lacking, "1", "failed: may not be skipped here: this kernel has no nosuchfs\nskipped: this kernel has no nosuchfs\n", "nosuchfs\n"},
		{"lacking and optional", optional(lacking), "1", "skipped: this kernel has no nosuchfs\n", "nosuchfs\n"},
		{"unable and optional", optional(unable), "1", "skipped: this kernel's proc cannot do it: stat /proc/no such file: no such file or directory\n", ""},
		{"unable", unable, "", "skipped: this kernel's proc cannot do it: stat /proc/no such file: no such file or directory\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("HOLDFAST_REQUIRE_ALL", tt.all)
			must(t, os.WriteFile(asked, nil, 0o600))
			got := testrun.Told{TB: t}
			NeedKind(&got, tt.kind)
			asks, err := os.ReadFile(asked)
			must(t, err)
			if got.Said != tt.want || string(asks) != tt.asks {
				t.Errorf("got %q and modprobe %q, want %q and %q", got.Said, asks, tt.want, tt.asks)
			}
		})
	}
	var may []string
	for _, k := range []Kind{Ext4, Writeback, XFS, Btrfs, F2FS, Overlay, Tmpfs, Folding} {
		if k.Optional {
			may = append(may, k.Name)
		}
	}
	if got, want := fmt.Sprint(may), "[f2fs ext4-casefold]"; got != want {
		t.Errorf("optional are %s, want %s", got, want)
	}
}

// Only a process that tells how its test ended is believed.
func TestEnded(t *testing.T) {
	for _, tt := range []struct {
		name, out string
		err       error
		good      bool
	}{
		{"TestA", "=== RUN   TestA\n--- PASS: TestA (0.01s)\nPASS\n", nil, true},
		{"TestA", "=== RUN   TestA\n--- SKIP: TestA (0.01s)\nPASS\n", nil, true},
		{"TestA/x", "--- PASS: TestA (0.01s)\n    --- PASS: TestA/x (0.00s)\nPASS\n", nil, true},
		{"TestA", "=== RUN   TestA\n--- PASS: TestA (0.01s)\n", os.ErrDeadlineExceeded, false},
		{"TestA", "testing: warning: no tests to run\nPASS\n", nil, false},
		{"TestA", "=== RUN   TestA\n", nil, false},
		{"TestA", "--- PASS: TestAB (0.01s)\n    --- PASS: TestA/x (0.00s)\n", nil, false},
		{"TestA", "    a_test.go:1: it says --- PASS: TestA (0.01s)\n", nil, false},
		{"TestA", "", nil, false},
	} {
		if err := ended(tt.name, tt.out, tt.err); (err == nil) != tt.good {
			t.Errorf("%s after %q, %v: got %v", tt.name, tt.out, tt.err, err)
		}
	}
}
