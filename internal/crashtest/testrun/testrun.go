// Package testrun says what this run of the tests is: whether it may leave something
// out, and how its binary was built. Only tests import it.
package testrun

import (
	"os"
	"runtime/debug"
	"slices"
	"testing"
)

// Thorough reports whether HOLDFAST_REQUIRE_ALL=1 is set: nothing may be left out, and
// what is too long for every day runs.
func Thorough() bool { return os.Getenv("HOLDFAST_REQUIRE_ALL") == "1" }

// Skip leaves out a test for want of something in the environment, or fails it where
// nothing may be left out.
func Skip(t testing.TB, reason string) {
	t.Helper()
	if Thorough() {
		t.Fatalf("may not be skipped here: %s", reason)
	}
	t.Skip(reason)
}

// RaceDetector reports whether this binary was built with it.
func RaceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
