//go:build linux

package holdfast

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func init() { roles["interop count"] = interopCount }

// interopSteps that are counted, in this order, and then the end. Before them one entry
// goes through them all: what a directory needs once is not counted.
var interopCounted = []string{"enqueue", "claim", "claim again", "ack", "enqueue 2", "claim 2", "quarantine", "enqueue 3", "quarantine of a pending entry", "end"}

// interopLifeCall is what is called for a counted step.
func interopLifeCall(step string) string {
	switch {
	case strings.HasPrefix(step, "enqueue"):
		return "enqueue"
	case strings.HasPrefix(step, "claim"):
		return "load"
	case strings.HasPrefix(step, "quarantine"):
		return "fail"
	}
	return step
}

// interopCount does the steps in Go, with a mark before each.
func interopCount(args []string) error {
	var p interopPart
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return err
	}
	s, err := Open(p.Dirs.Queue, &Options{FailedDir: p.Dirs.Failed, ClaimBy: p.Route})
	if err != nil {
		return err
	}
	for _, step := range interopCounted {
		_ = unix.Access("/holdfast-mark/"+strings.ReplaceAll(step, " ", "-"), unix.F_OK) // there is no such file
		call := interopSteps[interopLifeCall(step)]
		if call == nil {
			continue
		}
		if err := call(s); err != nil {
			return err
		}
		if interopLifeCall(step) == "fail" {
			// Only one may stand there.
			if err := os.Remove(filepath.Join(p.Dirs.Failed, interopID+pendingSuffix)); err != nil {
				return err
			}
		}
	}
	return s.Close()
}

var (
	interopMark = regexp.MustCompile(`"/holdfast-mark/([^"]*)"`)
	interopSync = regexp.MustCompile(`\b(fsync|fdatasync|syncfs|sync_file_range)\(`)
)

// interopTrace reads a trace of system calls: how many syncs came after each mark.
func interopTrace(t *testing.T, file string) map[string]int {
	t.Helper()
	f, err := os.Open(file)
	interopOK(t, err)
	defer f.Close()
	counts := map[string]int{}
	at := ""
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if m := interopMark.FindStringSubmatch(lines.Text()); m != nil {
			at = strings.ReplaceAll(m[1], "-", " ")
			counts[at] += 0
		} else if interopSync.MatchString(lines.Text()) {
			counts[at]++
		}
	}
	interopOK(t, lines.Err())
	return counts
}

// TestInteropSyncs counts the syncs of each step as the kernel sees them, and prints
// them beside the package's. Go needs no more than the package, and by renames fewer.
func TestInteropSyncs(t *testing.T) {
	t.Parallel()
	interopNode(t)
	strace, err := exec.LookPath("strace")
	if err != nil {
		skip(t, "no strace to count syncs with")
	}
	traced := func(cmd *exec.Cmd, out string) *exec.Cmd {
		cmd.Args = append([]string{strace, "-f", "-qq", "-e", "trace=fsync,fdatasync,syncfs,sync_file_range,access,faccessat,faccessat2", "-o", out}, cmd.Args...)
		cmd.Path = strace
		return cmd
	}
	out := filepath.Join(t.TempDir(), "trace")
	var all []map[string]int
	d := newInteropDirs(t)
	p := startInteropPeer(t, traced(interopCommand(t), out))
	args := interopArgs{"queue": d.Queue, "failed": d.Failed, "id": interopID, "entry": 1}
	for _, warm := range []string{"enqueue", "load", "ack"} {
		p.must(t, warm, args, nil)
	}
	for _, step := range interopCounted {
		p.must(t, "mark", interopArgs{"name": strings.ReplaceAll(step, " ", "-")}, nil)
		if call := interopLifeCall(step); step != "end" {
			p.must(t, call, args, nil)
			if call == "fail" {
				interopOK(t, os.Remove(d.failedFile()))
			}
		}
	}
	interopOK(t, p.in.Close())
	if a := p.answer(t); !a.died {
		t.Errorf("it goes on: %v", a)
	}
	all = append(all, interopTrace(t, out))
	for _, r := range []Route{HardLink, RenameNoReplace} {
		d := newInteropDirs(t)
		s := interopStore(t, d, Options{ClaimBy: r})
		interopPending("G1")(t, s, d)
		_, err := s.Load(context.Background(), interopID, nil)
		interopOK(t, err, s.AckID(context.Background(), interopID))
		text, err := json.Marshal(interopPart{Dirs: d, Route: r})
		interopOK(t, err)
		if err := traced(child(t, "interop count", string(text)), out).Run(); err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				t.Fatalf("%v: %v: %s", r, err, exit.Stderr)
			}
			t.Fatal(err)
		}
		all = append(all, interopTrace(t, out))
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-32s %10s %10s %18s\n", "syncs of one", "package", "hard-link", "rename-no-replace")
	for _, step := range interopCounted[:len(interopCounted)-1] {
		if strings.HasSuffix(step, "2") || strings.HasSuffix(step, "3") {
			continue
		}
		js, links, renames := all[0][step], all[1][step], all[2][step]
		fmt.Fprintf(&table, "%-32s %10d %10d %18d\n", step, js, links, renames)
		if js == 0 || links == 0 || renames == 0 {
			t.Errorf("%s: nothing was counted", step)
		}
		if links > js || renames > links {
			t.Errorf("%s: more syncs than the package's, or by renames than by links", step)
		}
	}
	t.Log("\n" + table.String())
}
