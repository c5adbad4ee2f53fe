//go:build unix

package main

import (
	_ "embed"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

//go:embed npm.mjs
var script []byte

// npmTrial runs the package in a process of its own, which times itself: its start does not
// count.
func npmTrial(pkg string) func(string, load) (time.Duration, error) {
	return func(dir string, l load) (time.Duration, error) {
		// A module finds its packages from where it stands.
		file := filepath.Join(pkg, "holdfast-bench.mjs")
		if err := os.WriteFile(file, script, 0o600); err != nil {
			return 0, err
		}
		defer os.Remove(file)
		cmd := exec.Command(filepath.Join(pkg, "node_modules", ".bin", "node"), file,
			filepath.Join(dir, "queue"), strconv.Itoa(l.messages), strconv.Itoa(l.workers), string(payload))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return 0, err
		}
		var answer struct{ Milliseconds float64 }
		if err := json.Unmarshal(out, &answer); err != nil {
			return 0, err
		}
		return time.Duration(answer.Milliseconds * float64(time.Millisecond)), nil
	}
}
