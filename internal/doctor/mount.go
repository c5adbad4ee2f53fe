//go:build unix

package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Mount is what the kernel says of where a directory is mounted.
type Mount struct {
	Point   string   `json:"point"`
	Type    string   `json:"type"`
	Source  string   `json:"source"`
	Options []string `json:"options"` // of this mount, then of the filesystem
}

var errNoMount = errors.New("no mount in the list holds it")

// Mount finds the mount that a directory is on.
func (m Machine) Mount(dir string) (*Mount, error) {
	path, err := m.Resolve(dir)
	if err != nil {
		return nil, err
	}
	list, err := m.Mounts()
	if err != nil {
		return nil, err
	}
	return mountOf(string(list), path)
}

// mountOf finds in a list of the form of /proc/self/mountinfo (proc_pid_mountinfo(5))
// what is mounted at the longest beginning of path. Of two mounts at one point the later
// one hides the earlier. A device's number would be a poor guide: btrfs tells another
// one to stat(2).
func mountOf(list, path string) (*Mount, error) {
	var found *Mount
	for line := range strings.Lines(list) {
		here, above, split := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		fields, rest := strings.Fields(here), strings.Fields(above)
		if !split || len(fields) < 6 || len(rest) < 2 {
			continue
		}
		point := unescape(fields[4])
		if !within(path, point) || found != nil && len(point) < len(found.Point) {
			continue
		}
		found = &Mount{Point: point, Type: rest[0], Source: unescape(rest[1]), Options: strings.Split(fields[5], ",")}
		if len(rest) > 2 {
			for _, o := range strings.Split(rest[2], ",") {
				if !slices.Contains(found.Options, o) {
					found.Options = append(found.Options, o)
				}
			}
		}
	}
	if found == nil {
		return nil, errNoMount
	}
	return found, nil
}

// within reports whether path is point or below it.
func within(path, point string) bool {
	return point == "/" || path == point || strings.HasPrefix(path, point+"/")
}

// unescape undoes the kernel's \ooo for white space and backslashes.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unsynced are the options with which a completed sync may be lost with the power:
// docs/durability.md says where each is documented.
var unsynced = []struct{ option, why string }{
	{"fsync_mode=nobarrier", "a completed sync may be lost with the power"},
	{"nobarrier", "a completed sync may be lost with the power, unless the device's cache outlasts it"},
	{"barrier=0", "a completed sync may be lost with the power, unless the device's cache outlasts it"},
	{"volatile", "syncs are left out: a crash of the system may lose everything"},
}

// Unsynced is the option with which a completed sync may be lost, and what that means;
// empty: none says so.
func (m *Mount) Unsynced() (option, why string) {
	for _, u := range unsynced {
		if slices.Contains(m.Options, u.option) {
			return u.option, u.why
		}
	}
	return "", ""
}

// onDevice reports whether a device stands below, whose cache a barrier flushes. That of
// FUSE leads to a program.
func (m *Mount) onDevice() bool {
	return strings.HasPrefix(m.Source, "/dev/") && m.Source != "/dev/fuse"
}

func (e *exam) mountOptions() finding {
	m, err := e.Mount(e.report.Place)
	if err != nil {
		return notTried("it could not be told: " + plain(err))
	}
	if option, why := m.Unsynced(); option != "" {
		return told(fmt.Sprintf("%s is mounted with %s: %s", m.Point, option, why)).weighing(Warning)
	}
	if !m.onDevice() {
		return told(fmt.Sprintf("%s is mounted there, on no device of its own", m.Type))
	}
	return told(fmt.Sprintf("no option of %s turns barriers off", m.Point))
}
