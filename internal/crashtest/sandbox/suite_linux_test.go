package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// What tests print, as -test.v=test2json marks it.
const (
	passed  = mark + "=== RUN   TestA\n" + mark + "--- PASS: TestA (0.00s)\n"
	skips   = mark + "=== RUN   TestB\n" + mark + "=== PAUSE TestB\n" + mark + "=== CONT  TestB\n    b_test.go:12: %s\n" + mark + "--- SKIP: TestB (0.00s)\n"
	noise   = mark + "=== RUN   TestC\n--- FAIL: TestC (not marked)\nhalf a line" + mark + "--- PASS: TestC (0.01s)\n"
	subtest = mark + "=== RUN   TestD\n" + mark + "=== RUN   TestD/one\n    d_test.go:1: no reason\n" +
		mark + "=== NAME  TestD\n" + mark + "--- PASS: TestD (0.00s)\n    " + mark + "--- SKIP: TestD/one (0.00s)\n"
)

// A run is taken for good only if every test passed, or was left out for a reason given.
func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		listed string
		suite  Suite
		text   string
		err    error
		want   string // "": nothing is wrong
	}{
		{name: "all pass", listed: "TestA TestC", text: passed + noise},
		{name: "benchmarks are not run", listed: "TestA BenchmarkA", text: passed},
		{name: "a subtest", listed: "TestD", text: subtest, want: `TestD/one was left out: "no reason" is no reason here`},
		{name: "a subtest, for a reason given", listed: "TestD", text: subtest, suite: Suite{Skips: []string{"no reason"}}},
		{name: "a subtest, without a word", listed: "TestA TestD", text: passed + strings.Replace(subtest, "    d_test.go:1: no reason\n", "", 1),
			want: `TestD/one was left out: "" is no reason here`},
		{name: "starts a process", listed: "TestA TestB", text: passed + fmt.Sprintf(skips, startsProcess)},
		{name: "another reason, given", listed: "TestA TestB", text: passed + fmt.Sprintf(skips, "not with -short"), suite: Suite{Skips: []string{"-short"}}},
		{name: "another reason", listed: "TestA TestB", text: passed + fmt.Sprintf(skips, "no room"), want: `TestB was left out: "no room" is no reason here`},
		{name: "apart", listed: "TestA TestB", text: passed, suite: Suite{Apart: map[string]string{"^TestB$": "why"}}},
		{name: "apart, and run", listed: "TestA", text: passed, suite: Suite{Apart: map[string]string{"^TestA$": "why"}}, want: "TestA was run"},
		{name: "a part apart", listed: "TestA", text: passed, suite: Suite{Apart: map[string]string{"^TestA$/^x$": "why"}}},
		{name: "apart, but not there", listed: "TestA", text: passed, suite: Suite{Apart: map[string]string{"^TestZ$": "why"}}, want: "TestZ is not a test"},
		{name: "only one", listed: "TestA TestB", text: passed, suite: Suite{Only: "^TestA$"}},
		{name: "not run", listed: "TestA TestB", text: passed, want: "TestB did not come to an end"},
		{name: "cut short", listed: "TestA TestB", text: passed + mark + "=== RUN   TestB\n", want: "TestB did not come to an end"},
		{name: "nothing passed", listed: "TestB", text: fmt.Sprintf(skips, startsProcess), want: "no test passed"},
		{name: "it ended badly", listed: "TestA", text: passed + "why\n", err: errors.New("exit status 1"), want: "exit status 1\n=== RUN   TestA\n--- PASS: TestA (0.00s)\nwhy\n"},
		{name: "one failed", listed: "TestA TestB", text: passed + strings.ReplaceAll(fmt.Sprintf(skips, "got 1, want 2"), "SKIP", "FAIL"), err: errors.New("exit status 1"),
			want: "exit status 1\nTestB: b_test.go:12: got 1, want 2\n"},
		{name: "a call was trapped", listed: "TestA", text: passed + badCall + "\nPC=0x1\n", err: errors.New("exit status 2"),
			want: "exit status 2: a call is not admitted ("},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := parse(tt.text).judge(tt.suite, AsApp, tests(tt.listed), tt.err)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// What was left out is counted and named, of subtests too.
func TestSummary(t *testing.T) {
	got := parse(passed + fmt.Sprintf(skips, startsProcess) + noise + subtest).summary(Suite{Apart: map[string]string{"^TestE$": "too long"}})
	want := "3 tests passed\n1 left themselves out: no reason\n\tTestD/one\n1 left themselves out: " + startsProcess + "\n\tTestB\nleft out: ^TestE$: too long"
	if got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// The call is named by the register that the runtime prints it in.
func TestTrapped(t *testing.T) {
	registers := map[string]string{"amd64": "rax    0x1b5\n", "arm64": "r8      0x1b5\n"}[runtime.GOARCH]
	if registers == "" {
		t.Skip("nothing is known of this architecture's registers")
	}
	for text, want := range map[string]string{
		badCall + "\nPC=0x1\n\n" + registers:                               "openat2",
		registers + badCall + "\n":                                         "a call",
		badCall + "\n" + strings.Replace(registers, "1b5", "fffff", 1):     "a call",
		"--- FAIL: TestA (0.00s)\n" + registers + "exit status 1, no trap": "",
	} {
		if got := Trapped(text, errors.New("exit status 2")); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
