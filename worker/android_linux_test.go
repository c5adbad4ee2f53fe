package worker

import (
	"testing"

	"example.com/holdfast/internal/crashtest/sandbox"
)

// The workers' whole suite passes where Android's filter traps every call that not all
// devices admit.
func TestSuiteAsApp(t *testing.T) {
	l := sandbox.NewLauncher(t)
	s := sandbox.Suite{Skips: []string{"HOLDFAST_REQUIRE_ALL=1"}}
	if err := s.Run(t, l, sandbox.AsApp, l.BuildTests(t, nil)); err != nil {
		t.Error(err)
	}
}
