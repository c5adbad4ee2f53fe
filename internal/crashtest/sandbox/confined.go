//go:build unix

package sandbox

import (
	"os"
	"testing"
)

// A Confinement is a filter that a process is started under.
type Confinement string

const (
	// AsApp traps every call but those that Android admits, as Android does: the process
	// gets SIGSYS, by which a Go program ends and tells where it was.
	AsApp Confinement = "as-app"
	// AsLaterApp admits those of SinceAndroid9 too.
	AsLaterApp Confinement = "as-later-app"
	// AsAppWithoutLinks admits of AsApp's calls those that make no link.
	AsAppWithoutLinks Confinement = "as-app-without-links"
	// WithoutLinks kills at every call that makes a link.
	WithoutLinks Confinement = "without-links"
)

// Env tells a process that it was started under a filter, and which.
const Env = "HOLDFAST_TEST_CONFINED"

// Confined is the filter that this process was started under, or "".
func Confined() Confinement { return Confinement(os.Getenv(Env)) }

// startsProcess is why a test is left out of a confined run.
const startsProcess = "starts a process, which is not what this confined run is about"

// StartsProcess leaves a test that starts a process out of a run under a filter. The
// library starts none. Go's os/exec makes calls that an Android app may not make, and
// what would run in the child is for its own tests to show.
func StartsProcess(t testing.TB) {
	t.Helper()
	if Confined() != "" {
		t.Skip(startsProcess)
	}
}
