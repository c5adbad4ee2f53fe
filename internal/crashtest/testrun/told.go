package testrun

import (
	"fmt"
	"testing"
)

// Told is a test that keeps what it is told, and goes on: for the tests of what leaves tests
// out.
type Told struct {
	testing.TB
	Said string
}

// Helper does nothing.
func (*Told) Helper() {}

// Fatalf notes a failure.
func (t *Told) Fatalf(f string, args ...any) { t.Said += "failed: " + fmt.Sprintf(f, args...) + "\n" }

// Skip notes that the test is left out.
func (t *Told) Skip(args ...any) { t.Said += "skipped: " + fmt.Sprint(args...) + "\n" }
