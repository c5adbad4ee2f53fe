//go:build unix

package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// cpuTime is the user and system time of this process and of others.
func cpuTime(pids []int) (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	total := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		t, err := parseStat(text)
		if err != nil {
			return 0, fmt.Errorf("process %d: %w", pid, err)
		}
		total += t
	}
	return total, nil
}

// tick is the unit of the times in /proc/PID/stat: USER_HZ, which is 100 on every
// architecture that Go runs on (proc(5), sysconf(3)).
const tick = time.Second / 100

// parseStat reads utime and stime, the 14th and 15th field. The 2nd is the program's name
// in parentheses and may hold anything.
func parseStat(text []byte) (time.Duration, error) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("unexpected /proc/PID/stat: %q", text)
	}
	var total time.Duration
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(n) * tick
	}
	return total, nil
}
