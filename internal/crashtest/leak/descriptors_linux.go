package leak

import (
	"os"
	"path/filepath"
	"strings"
)

// open lists what this process has open, by descriptor.
func open() map[string]string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil // without /proc nothing is known, and nothing is compared
	}
	list := map[string]string{}
	for _, e := range entries {
		// What has gone meanwhile, as the descriptor of this listing, has no target.
		if target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil {
			list[e.Name()] = target
		}
	}
	return list
}

// since lists what is open after and was not before. Two things stay by right: what the
// runtime waits with, and the holder of each store that was claimed from, which is the
// process's until it ends.
func since(before, after map[string]string) (left []string) {
	stay := holders(after)
	for fd, target := range after {
		if before[fd] == target || strings.HasPrefix(target, "anon_inode:[event") {
			continue
		}
		if target = strings.TrimSuffix(target, " (deleted)"); stay[target] > 0 {
			stay[target]--
			continue
		}
		left = append(left, "descriptor "+fd+" of "+target)
	}
	return left
}

// holders counts what the holders in list have open: a file each, and the namespace that
// it lies in, twice.
func holders(list map[string]string) map[string]int {
	stay := map[string]int{}
	for _, target := range list {
		target = strings.TrimSuffix(target, " (deleted)")
		if dir := filepath.Dir(target); filepath.Base(dir) == "holders" {
			stay[target]++
			stay[filepath.Dir(dir)] += 2
		}
	}
	return stay
}
