//go:build unix

package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var cliUpdate = flag.Bool("update", false, "write the golden screens")

// cliGolden compares text with a file of testdata.
func cliGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *cliUpdate {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("it is not what %s has:\n%s\nwant\n%s\nif it is right: go test -run %s -update", file, got, want, t.Name())
	}
}
