package holdfast

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/sandbox"
)

// inMemory are tests that play on a disk in memory, or on none, for longer than all others
// take together. They make hardly a call, and run whole without a filter; of TestCrash one
// scenario is left as a sample.
func inMemory() map[string]string {
	const why = "plays in memory"
	apart := map[string]string{}
	for _, test := range []string{
		"TestCrashCreate", "TestCrashImportRunAgain", "TestCrashThenLook", "TestCrashTwice", "TestFault", "TestFaultLeft", "TestUncertain",
		"TestHolderCrash", "TestInterleave", "TestModelFindsPlantedBugs",
	} {
		apart["^"+test+"$"] = why
	}
	var names []string
	for _, c := range crashScenarios {
		if c.name != "enqueue" {
			names = append(names, regexp.QuoteMeta(c.name))
		}
	}
	apart["^TestCrash$/^("+strings.Join(names, "|")+")$"] = why
	return apart
}

// startProcesses are tests that start one where it would be too late to leave them out. The
// others leave themselves out.
var startProcesses = map[string]string{
	"^TestManyWaitAsOne$":          inTheMiddle,
	"^TestTrial15UncertainCommit$": inTheMiddle,
	"^TestTrial26TwoHandles$":      inTheMiddle,
}

const inTheMiddle = "starts a process while it holds the lock or a commit up"

// makeLinks are tests that put links in the store's way, to see them refused.
var makeLinks = map[string]string{
	"^TestCreateWhere$/symlink":                   linksItself,
	"^TestTwoSpellings$":                          linksItself,
	"^TestReplacedWhileOpen$/symlink":             linksItself,
	"^TestBadStores$/symlink":                     linksItself,
	"^TestOddPlaces$/./symlink":                   linksItself,
	"^TestOddPlacesHardLink$":                     linksItself,
	"^TestBadStoresHardLink$":                     linksItself,
	"^TestResumeRefusesWhatItDidNotMake$/symlink": linksItself,
	"^TestAbsenceOfEvidence$":                     linksItself,
	"^TestVerify$/symlink":                        linksItself,
	"^TestVerifyHardLink$":                        linksItself,
	"^TestRunDamage$/link":                        linksItself,
	"^TestPurgeLost$":                             linksItself,
	"^TestBackupRefuses$/link":                    linksItself,
	"^TestLinkedWhileOpen_HardLink$":              linksItself,
	"^TestBackupByHardLinks_HardLink$":            linksItself,
	"^TestRestoreRefusesADirectory$/symbolic":     linksItself,
}

const linksItself = "makes links itself, as bait"

// quickly are the reasons for which tests leave themselves out of a quick run, and where
// renameat2 is not called.
var quickly = []string{"not with -short", "HOLDFAST_REQUIRE_ALL=1", "names cannot be exchanged here"}

// The store's whole suite passes where Android's filter traps every call that not all
// devices admit, and where it traps every call that makes a link besides. One run shows both
// of all tests but those that make links themselves. Built as for a phone, without
// cgo, so that the start of Go's runtime is under the filters too.
func TestSuiteUnderFilters(t *testing.T) {
	t.Parallel()
	l := sandbox.NewLauncher(t)
	path := l.BuildTests(t, nil)
	for how, s := range map[sandbox.Confinement]sandbox.Suite{
		sandbox.AsAppWithoutLinks: {Apart: makeLinks},
		sandbox.AsApp:             {Only: wholeTests(makeLinks)}, // whose links are no business of Android's filter
	} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			apart := inMemory()
			maps.Copy(apart, startProcesses)
			maps.Copy(apart, s.Apart)
			s.Apart, s.Skips = apart, quickly
			if err := s.Run(t, l, how, path); err != nil {
				t.Error(err)
			}
		})
	}
}

// wholeTests is the pattern of the tests that these are parts of.
func wholeTests(parts map[string]string) string {
	var names []string
	for part := range parts {
		name, _, _ := strings.Cut(part, "/")
		names = append(names, name)
	}
	return strings.Join(names, "|")
}

// plantedCalls makes, in production code, a call that Android's first filters do not
// admit, unless it is told not to, and after it one that makes a link.
const plantedCalls = `package holdfast

import (
	"os"

	"golang.org/x/sys/unix"
)

func makePlantedCalls() {
	var info unix.Statx_t
	if os.Getenv("HOLDFAST_TEST_PLANTED_LINK") == "" {
		_ = unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_BASIC_STATS, &info)
	}
	_ = unix.Linkat(unix.AT_FDCWD, "/nowhere", unix.AT_FDCWD, "/nowhere/either", 0)
}
`

// A suite under a filter fails where the store makes one forbidden call, and names it where
// it can be known.
func TestPlantedForbiddenCall(t *testing.T) {
	l := sandbox.NewLauncher(t)
	text, err := os.ReadFile("commit.go")
	mustDo(t, err)
	const place = "func (s *Store) current(p *pins) (*state, error) {\n"
	if n := strings.Count(string(text), place); n != 1 {
		t.Fatalf("%q stands %d times in commit.go, want once", place, n)
	}
	path := l.BuildTests(t, map[string]string{
		"commit.go":        strings.Replace(string(text), place, place+"\tmakePlantedCalls()\n", 1),
		"planted_calls.go": plantedCalls,
	})
	for _, tt := range []struct {
		how        sandbox.Confinement
		link, want string
	}{
		{sandbox.AsApp, "", "statx is not admitted"},
		{sandbox.AsAppWithoutLinks, "", "statx is not admitted"},
		{sandbox.AsAppWithoutLinks, "only", "linkat is not admitted"},
		{sandbox.WithoutLinks, "", "bad system call"},
	} {
		t.Run(fmt.Sprint(tt.how, tt.link), func(t *testing.T) {
			t.Setenv("HOLDFAST_TEST_PLANTED_LINK", tt.link)
			err := sandbox.Suite{Only: "^TestLifeOfAMessage$", Skips: quickly}.Run(t, l, tt.how, path)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
