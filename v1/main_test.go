//go:build unix

package holdfast

import (
	"testing"

	"example.com/holdfast/internal/crashtest/reexec"
	"example.com/holdfast/internal/crashtest/testrun"
)

// roles are the parts that this binary plays in a process of its own. Each file adds its
// own in an init.
var roles = map[string]func(args []string) error{}

func TestMain(m *testing.M) { reexec.Main(m, roles) }

type process = reexec.Process

var (
	child    = reexec.Command
	start    = reexec.Start
	killedBy = reexec.KilledBy

	skip         = testrun.Skip
	thorough     = testrun.Thorough
	raceDetector = testrun.RaceDetector
)
