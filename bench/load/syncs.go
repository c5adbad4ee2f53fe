//go:build unix

package load

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/holdfast/bench/peer"
)

// syncCalls are the calls that wait until the disk has something.
const syncCalls = "fsync,fdatasync,msync,sync_file_range,syncfs,sync"

// Tracer says why syncs cannot be counted here. Empty: they can.
func Tracer() string {
	if _, err := exec.LookPath("strace"); err != nil {
		return "strace is not installed"
	}
	self, err := os.Executable()
	if err == nil {
		cmd := exec.Command("strace", "-f", "-qq", "-o", os.DevNull, self)
		cmd.Env = append(os.Environ(), childVariable+"=") // an order that cannot be read: it ends at once
		err = cmd.Run()
	}
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != orderRefused {
		return "strace may not trace here"
	}
	return ""
}

// Syncs counts the syncs of one message: of a peer, all its processes included, that is
// called by so many goroutines. Two runs of different length are compared, so that those of
// opening and closing do not count.
func Syncs(p peer.Peer, npm, base string, workers, messages int) (float64, error) {
	few, err := syncs(p, npm, base, workers, workers)
	if err != nil {
		return 0, err
	}
	many, err := syncs(p, npm, base, workers, workers+messages)
	return float64(many-few) / float64(messages), err
}

func syncs(p peer.Peer, npm, base string, workers, messages int) (int, error) {
	dir, err := os.MkdirTemp(base, "syncs-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	table := filepath.Join(dir, "strace")
	queue := filepath.Join(dir, "queue")
	if err := os.Mkdir(queue, 0o700); err != nil {
		return 0, err
	}
	o := order{
		Peer: p.Key, Npm: npm, Dir: queue,
		Workload: Workload{Workers: workers, Joint: p.NoSingles},
		Size:     Size{Messages: messages, Limit: time.Hour}, // by number only
	}
	child, err := startProcess(o, "strace", "-f", "-qq", "-c", "-U", "name,calls", "-o", table, "-e", "trace="+syncCalls)
	if err != nil {
		return 0, err
	}
	err = child.begin()
	if err == nil {
		_, err = child.answer()
	}
	if err = errors.Join(err, child.end()); err != nil {
		return 0, err
	}
	text, err := os.ReadFile(table)
	if err != nil {
		return 0, err
	}
	return countCalls(string(text))
}

// countCalls adds up the calls in a table of strace with the columns name and calls.
func countCalls(table string) (total int, err error) {
	lines := bufio.NewScanner(strings.NewReader(table))
	names := strings.Split(syncCalls, ",")
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 2 || !slices.Contains(names, fields[0]) {
			continue
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil {
			return 0, fmt.Errorf("strace: %w", err)
		}
		total += n
	}
	return total, nil
}
