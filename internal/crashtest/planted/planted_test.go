package planted

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/testrun"
)

// A module of its own, with two functions and a test of each.
var module = map[string]string{
	"go.mod": "module tiny\n\ngo 1.26\n",
	"tiny.go": `package tiny

func one() int { return 1 }

func two() int { return 1 + 1 }
`,
	"tiny_test.go": `package tiny

import (
	"os"
	"testing"
)

func TestOne(t *testing.T) {
	if one() != 1 && os.Getenv("TINY_BLIND") == "" {
		t.Fatal(one())
	}
}

func TestOneAndTwo(t *testing.T) {
	t.Run("two", func(t *testing.T) {
		if two() != 2 {
			t.Fatal(two())
		}
	})
}
`}

// alone keeps what this run is set to, and the network, away from the module.
var alone = []string{"GOWORK=off", "GOFLAGS=", "GOPROXY=off", "GOTOOLCHAIN=local"}

// needGo leaves the test out where there is no go command.
func needGo(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		testrun.Skip(t, "no go command here")
	}
	return path
}

// A bug that its test catches is one, and each way not to be one is told.
func TestCaught(t *testing.T) {
	goTool := needGo(t)
	dir := t.TempDir()
	for name, text := range module {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	badOne := []Edit{{"tiny.go", "return 1 }", "return 3 }"}}
	badTwo := []Edit{{"tiny.go", "1 + 1", "1 + 2"}}
	for _, tt := range []struct {
		name string
		bug  Bug
		env  []string
		want string // "": it is caught
	}{
		{name: "caught", bug: Bug{Test: "TestOne$", Edits: badOne}},
		{name: "caught by a subtest", bug: Bug{Test: "TestOneAndTwo$/^two$", Edits: badTwo}},
		{name: "of two edits, the second of what the first made", bug: Bug{Test: "TestOne$", Edits: []Edit{
			{"tiny.go", "return 1 }", "return 4 }"}, {"tiny.go", "return 4 }", "return 5 }"}}}},
		{name: "not caught", bug: Bug{Test: "TestOne$", Edits: badTwo}, want: "TestOne$ passes in spite of it"},
		{name: "a test that is not there", bug: Bug{Test: "TestNone$", Edits: badOne}, want: "TestNone$ passes in spite of it"},
		{name: "not caught, with a variable", bug: Bug{Test: "TestOne$", Edits: badOne}, env: []string{"TINY_BLIND=1"},
			want: "TestOne$ passes in spite of it"},
		{name: "its text is not there", bug: Bug{Test: "TestOne$", Edits: []Edit{{"tiny.go", "return 2 }", "return 3 }"}}},
			want: `tiny.go: "return 2 }" stands 0 times in it, want once`},
		{name: "its text is there twice", bug: Bug{Test: "TestOne$", Edits: []Edit{{"tiny.go", "func ", ""}}},
			want: `tiny.go: "func " stands 2 times in it, want once`},
		{name: "its file is not there", bug: Bug{Test: "TestOne$", Edits: []Edit{{"gone.go", "1", "2"}}}, want: "no such file"},
		{name: "caught by another test", bug: Bug{Test: "TestOne", Edits: badTwo}, want: "it did not fail in TestOne:\n--- FAIL: TestOneAndTwo ("},
		{name: "does not build", bug: Bug{Test: "TestOne$", Edits: []Edit{{"tiny.go", "return 1 }", "return }"}}},
			want: "it did not fail in TestOne$:\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.bug.caught(goTool, dir, t.TempDir(), append(tt.env, alone...))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// unseen tells TestCatchFails to fail.
const unseen = "HOLDFAST_TEST_UNSEEN"

// Catch fails where a bug is not caught. It does so in a process of its own.
func TestCatchFails(t *testing.T) {
	if os.Getenv(unseen) != "" {
		Catch(t, []Bug{{Name: "out of date", Test: "TestCaught$", Edits: []Edit{{"planted.go", "nowhere in it", ""}}}})
		return
	}
	if testrun.RaceDetector() {
		t.Skip("Catch skips under the race detector")
	}
	needGo(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCatchFails$")
	cmd.Env = append(os.Environ(), unseen+"=1", "HOLDFAST_REQUIRE_ALL=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--- FAIL: TestCatchFails/out_of_date (") {
		t.Errorf("it went by: %v\n%s", err, out)
	}
}
