package planted

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/testrun"
)

// A module of its own, with three functions and a test of each.
var module = map[string]string{
	"go.mod":     "module tiny\n\ngo 1.26\n",
	"sub/sub.go": "package sub\n\nconst three = 3\n\nfunc Three() int { return three }\n",
	"tiny.go": `package tiny

func one() int { return 1 }

func two() int { return 1 + 1 }
`,
	"tiny_test.go": `package tiny

import (
	"os"
	"testing"

	"tiny/sub"
)

func TestOne(t *testing.T) {
	if os.Getenv("TINY_SKIP") != "" {
		t.Skip()
	}
	if one() != 1 && os.Getenv("TINY_BLIND") == "" {
		t.Fatal(one())
	}
}

func TestOneAndTwo(t *testing.T) {
	t.Run("two", func(t *testing.T) {
		if two() != 2 || os.Getenv("TINY_BROKEN") != "" {
			t.Fatal(two())
		}
	})
}

func TestThree(t *testing.T) {
	if sub.Three() != 3 {
		t.Fatal(sub.Three())
	}
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

// plant makes a directory of the module, and a plot of the bugs in it.
func plant(t *testing.T, bugs []Bug) (*plot, error) {
	goTool := needGo(t)
	return newPlot(goTool, tiny(t), "", t.TempDir(), bugs, alone)
}

// tiny gives the module's directory.
func tiny(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range module {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// told fails the test unless err says what it must; "": nothing.
func told(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Error(err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want %q", err, want)
	}
}

var (
	badOne = []Edit{{"tiny.go", "return 1 }", "return 3 }"}}
	badTwo = []Edit{{"tiny.go", "1 + 1", "1 + 2"}}
)

// A bug that its test catches is one, and each way not to be one is told: whether it
// shares a build or has its own.
func TestCaught(t *testing.T) {
	tests := []struct {
		Bug
		own  bool   // it has a build of its own
		want string // "": it is caught
	}{
		{Bug: Bug{Name: "caught", Test: "TestOne$", Edits: badOne}},
		{Bug: Bug{Name: "caught by a subtest", Test: "TestOneAndTwo$/^two$", Edits: badTwo}},
		{Bug: Bug{Name: "of two edits, the second of what the first made", Test: "TestOne$", Edits: []Edit{
			{"tiny.go", "return 1 }", "return 4 }"}, {"tiny.go", "return 4 }", "return 5 }"}}}},
		{Bug: Bug{Name: "in another package", Test: "TestThree$", Edits: []Edit{{"sub/sub.go", "return three", "return 4"}}}},
		{Bug: Bug{Name: "of two files", Test: "TestThree$", Edits: []Edit{
			{"sub/sub.go", "return three", "return three + 1"}, {"tiny.go", "return 1 }", "return 2 }"}}}},
		{Bug: Bug{Name: "outside of every function", Test: "TestThree$", Edits: []Edit{{"sub/sub.go", "three = 3", "three = 4"}}}, own: true},
		{Bug: Bug{Name: "with a label", Test: "TestThree$", Edits: []Edit{{"sub/sub.go", "return three", "again:\n\tfor {\n\t\tbreak again\n\t}\n\treturn 4"}}}, own: true},
		{Bug: Bug{Name: "crashes in another goroutine", Test: "TestOne$", Edits: []Edit{
			{"tiny.go", "return 1 }", "go panic(1); select {} }"}}}},
		{Bug: Bug{Name: "crashes another test", Test: "TestOne", Edits: []Edit{
			{"tiny.go", "return 1 + 1 }", "go panic(1); select {} }"}}}, want: "it did not fail in TestOne: "},
		{Bug: Bug{Name: "is waited for too long", Test: "TestOne$", Edits: []Edit{
			{"tiny_test.go", "t.Fatal(one())", "t.Fatal(`Run did not return within 1m0s`)"}, {"tiny.go", "return 1 }", "return 3 }"}}},
			own: false, want: "it hung in TestOne$"},
		{Bug: Bug{Name: "not caught", Test: "TestOne$", Edits: badTwo}, want: "TestOne$ passes in spite of it"},
		{Bug: Bug{Name: "not caught, in a build of its own", Test: "TestOne$", Edits: []Edit{{"sub/sub.go", "three = 3", "three = 4"}}},
			own: true, want: "TestOne$ passes in spite of it"},
		{Bug: Bug{Name: "a test that is not there", Test: "TestNone$", Edits: badOne}, want: "TestNone$ passes in spite of it"},
		{Bug: Bug{Name: "its text is not there", Test: "TestOne$", Edits: []Edit{{"tiny.go", "return 2 }", "return 3 }"}}},
			want: `tiny.go: "return 2 }" stands 0 times in it, want once`},
		{Bug: Bug{Name: "its text is there twice", Test: "TestOne$", Edits: []Edit{{"tiny.go", "func ", ""}}},
			want: `tiny.go: "func " stands 2 times in it, want once`},
		{Bug: Bug{Name: "its file is not there", Test: "TestOne$", Edits: []Edit{{"gone.go", "1", "2"}}}, want: "no such file"},
		{Bug: Bug{Name: "caught by another test", Test: "TestOne", Edits: badTwo}, want: "it did not fail in TestOne: "},
		{Bug: Bug{Name: "is no Go", Test: "TestOne$", Edits: []Edit{{"tiny.go", "return 1 }", "return 1 +}"}}},
			own: true, want: "it does not build: "},
	}
	var bugs []Bug
	for _, tt := range tests {
		bugs = append(bugs, tt.Bug)
	}
	p, err := plant(t, bugs)
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range tests {
		t.Run(tt.Name, func(t *testing.T) {
			t.Parallel()
			told(t, p.caught(i), tt.want)
			if how := p.planted[i]; how.err == nil && how.shared == tt.own {
				t.Errorf("own build: %v, want %v", !how.shared, tt.own)
			}
		})
	}
}

// Bugs that do not build spoil nothing for others. One that does not return where it must
// cannot be told from the others of its function, and ends them all.
func TestCaughtBesideThoseThatDoNotBuild(t *testing.T) {
	edit := func(text string) []Edit { return []Edit{{"tiny.go", "return 1 }", text}} }
	p, err := plant(t, []Bug{
		{Name: "untyped", Test: "TestOne$", Edits: edit("return }")},
		{Name: "caught", Test: "TestOne$", Edits: badOne},
		{Name: "in two places", Test: "TestOne$", Edits: append(edit("return 5 }"), Edit{"tiny.go", "1 + 1", "nothing"})},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"not enough return values", "", "undefined: nothing"} {
		told(t, p.caught(i), want)
	}
	told(t, p.sound(p.bugs), "")
	_, err = plant(t, []Bug{{Name: "without an end", Test: "TestOne$", Edits: edit("_ = 1 }")}})
	told(t, err, "missing return")
}

// A test that fails without a bug too proves nothing, nor does one that is not there.
// The variables reach the tests.
func TestSound(t *testing.T) {
	p, err := plant(t, []Bug{{Name: "one", Test: "TestOne$", Edits: badOne}, {Name: "two", Test: "TestOneAndTwo$/^two$", Edits: badTwo}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, test, env, want string }{
		{"sound", "TestOne$", "", ""},
		{"not there", "TestNone$", "", "TestNone$ does not pass without a bug"},
		{"fails", "TestOne$", "TINY_BROKEN=1", "TestOneAndTwo$/^two$ does not pass without a bug"},
		{"skips", "TestOne$", "TINY_SKIP=1", "TestOne$ does not pass without a bug"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := *p
			p.bugs = slices.Clone(p.bugs)
			p.bugs[0].Test = tt.test
			p.env = append(alone, tt.env)
			told(t, p.sound(p.bugs), tt.want)
		})
	}
	p.env = append(alone, "TINY_BLIND=1")
	told(t, p.caught(0), "TestOne$ passes in spite of it")
}

// A test that was only waited for too long has caught nothing.
func TestHung(t *testing.T) {
	const hang = "    x_test.go:7: scenario s: Run did not return within 1m0s:\n        goroutine 1 [running]:\n"
	for _, tt := range []struct {
		name, out string
		want      bool
	}{
		{"it hung", "=== RUN   TestA\n" + hang + "--- FAIL: TestA (60.00s)\n", true},
		{"it found something", "=== RUN   TestA\n    x_test.go:7: lost\n--- FAIL: TestA (0.00s)\n", false},
		{"a part hung", "=== RUN   TestA\n=== RUN   TestA/x\n" + hang + "--- FAIL: TestA (60.00s)\n    --- FAIL: TestA/x (60.00s)\n", true},
		{"a part hung and another found something", "=== RUN   TestA\n=== RUN   TestA/x\n" + hang + "=== RUN   TestA/y\n    x_test.go:9: lost\n" +
			"--- FAIL: TestA (60.00s)\n    --- FAIL: TestA/x (60.00s)\n    --- FAIL: TestA/y (0.00s)\n", false},
		{"side by side", "=== RUN   TestA\n=== RUN   TestA/x\n=== RUN   TestA/y\n=== NAME  TestA/x\n" + hang +
			"=== NAME  TestA/y\n    x_test.go:9: lost\n--- FAIL: TestA (60.00s)\n    --- FAIL: TestA/x (60.00s)\n    --- FAIL: TestA/y (0.00s)\n", false},
		{"another test found something", "=== RUN   TestA\n" + hang + "--- FAIL: TestA (60.00s)\n=== RUN   TestAB\n    x_test.go:9: lost\n--- FAIL: TestAB (0.00s)\n", true},
	} {
		if got := (Bug{Test: "TestA$"}).hung(tt.out); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A process that panics leaves nothing of its temporary files behind.
func TestNothingIsLeft(t *testing.T) {
	bug := Bug{Name: "panics", Test: "TestOne$", Edits: []Edit{{"tiny.go", "return 1 }",
		`if err := os.MkdirAll(os.TempDir()+"/left/shut", 0o700); err != nil { return 1 }; panic("left in " + os.TempDir()) }`}, {"tiny.go", "package tiny\n", "package tiny\n\nimport \"os\"\n"}}}
	p, err := plant(t, []Bug{bug})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.try(0)
	_, left, found := strings.Cut(out, "panic: left in ")
	left, _, _ = strings.Cut(strings.SplitN(left, "\n", 2)[0], " [")
	if err == nil || !found || !strings.HasPrefix(left, p.temp) {
		t.Fatalf("got %v, temporary files in %q, want them in %s\n%s", err, left, p.temp, out)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", left, err)
	}
}

// An uncaught bug is one that its test passes with, and that is up to date.
func TestMissed(t *testing.T) {
	caught, missed := Bug{Name: "caught", Test: "TestOne$", Edits: badOne}, Bug{Name: "missed", Test: "TestOne$", Edits: badTwo}
	stale := Bug{Name: "stale", Test: "TestOne$", Edits: []Edit{{"tiny.go", "return 2 }", "return 3 }"}}}
	p, err := plant(t, []Bug{caught, missed, stale})
	if err != nil {
		t.Fatal(err)
	}
	told(t, p.missed(0), "TestOne$ catches it")
	told(t, p.missed(1), "")
	told(t, p.missed(2), "out of date")
}

// Bugs are told apart by their names.
func TestTwoOfOneName(t *testing.T) {
	_, err := plant(t, []Bug{{Name: "one", Test: "TestOne$", Edits: badOne}, {Name: "one", Test: "TestOne$", Edits: badTwo}})
	told(t, err, `two bugs are called "one"`)
}

// unseen tells TestCatchFails to fail.
const unseen = "HOLDFAST_TEST_UNSEEN"

// Catch and Miss fail where they must. They do so in a process of their own.
func TestCatchFails(t *testing.T) {
	stale := Bug{Name: "out of date", Test: "TestHung$", Edits: []Edit{{"planted.go", "nowhere in it", ""}}}
	switch os.Getenv(unseen) {
	case "Catch":
		Catch(t, []Bug{stale})
		return
	case "Miss":
		Miss(t, []Uncaught{{Bug: stale, Why: "it cannot be"}})
		return
	case "Why":
		Miss(t, []Uncaught{{Bug: stale}})
		return
	}
	if testrun.RaceDetector() {
		t.Skip("Catch skips under the race detector")
	}
	needGo(t)
	for what, want := range map[string]string{
		"Catch": "--- FAIL: TestCatchFails/out_of_date (",
		"Miss":  "--- FAIL: TestCatchFails/out_of_date (",
		"Why":   "out of date: nobody says why it is not caught",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCatchFails$")
		cmd.Env = append(os.Environ(), unseen+"="+what, "HOLDFAST_REQUIRE_ALL=1")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: it went by: %v\n%s", what, err, out)
		}
	}
}
