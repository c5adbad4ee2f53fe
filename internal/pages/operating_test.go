package pages

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// docs/operating.md names each exit code and code of the command, and each exported error.
func TestOperatingPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	exits, told, err := ReadExit("../../cmd/holdfast/exit.go")
	if err != nil {
		t.Fatal(err)
	}
	sentinels, err := Sentinels("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(exits) < 6 || len(told) < 80 || len(sentinels) < 65 {
		t.Fatalf("read only %d exit codes, %d kinds, %d sentinels", len(exits), len(told), len(sentinels))
	}
	for _, bad := range CheckOperating(string(text), exits, told, sentinels) {
		t.Error(bad)
	}
}

// The check finds what it is for.
func TestCheckOperating(t *testing.T) {
	const page = "| exit code | meaning |\n| --- | --- |\n| 0 | done |\n| 3 | operator |\n\n" +
		"| code | exit code | error | what it says | what to do |\n| --- | --- | --- | --- | --- |\n" +
		"| `corrupt` | 3 | `v2.ErrCorrupt` | broken | restore |\n| `usage` | 3 | – | wrong | help |\n\n" +
		"| error | what it says | what to do |\n| --- | --- | --- |\n| `worker.ErrTimeout` | over | return |\n"
	exits := map[string]string{"exitDone": "0", "exitOperator": "3"}
	told := []Told{{"v2.ErrCorrupt", "corrupt", "3"}, {"", "usage", "3"}}
	sentinels := []string{"v2.ErrCorrupt", "worker.ErrTimeout"}
	if bad := CheckOperating(page, exits, told, sentinels); len(bad) > 0 {
		t.Fatalf("the right page: %q", bad)
	}
	for _, p := range []struct{ name, from, to, want string }{
		{"an exit code gone", "| 0 | done |\n", "", "no row of exit code 0"},
		{"a code gone", "| `usage` | 3 | – | wrong | help |\n", "", "no row of code usage"},
		{"a code under another exit code", "| `usage` | 3 |", "| `usage` | 0 |", "code usage has exit code 3"},
		{"a code twice", "| `usage` | 3 |", "| `corrupt` | 3 |", "code corrupt has two rows"},
		{"a code that is none", "| `usage` | 3 | – | wrong | help |\n", "| `usage`, `abuse` | 3 | – | wrong | help |\n", "there is no code abuse"},
		{"an error of another code", "`v2.ErrCorrupt`", "`v2.ErrVersion`", "code corrupt is also of v2.ErrCorrupt"},
		{"an error gone", "| `worker.ErrTimeout` | over | return |\n", "", "no row of worker.ErrTimeout"},
		{"an error that is none", "`worker.ErrTimeout`", "`worker.ErrTimeout`, `worker.ErrLate`", "there is no worker.ErrLate"},
		{"nothing to do", "| broken | restore |", "| broken | |", "says nothing"},
	} {
		planted := strings.Replace(page, p.from, p.to, 1)
		if found := strings.Join(CheckOperating(planted, exits, told, sentinels), "\n"); planted == page || !strings.Contains(found, p.want) {
			t.Errorf("%s: found %q, want %q", p.name, found, p.want)
		}
	}
}

func TestReadExit(t *testing.T) {
	file := t.TempDir() + "/exit.go"
	source := "package main\n\nimport \"example.com/holdfast/internal/web\"\n\nconst (\n\texitDone = 0\n\texitOperator = 3 // it\n)\n\nvar kinds = []kind{\n\t{errOwn, \"own\", exitDone, \"\"},\n" +
		"\t{holdfast.ErrCorrupt, \"corrupt\", exitOperator, \"\"},\n\t{web.ErrAddress, \"address\", exitDone, \"\"},\n\t{fs.ErrPermission, \"io\", exitOperator, \"ls\"},\n}\n\nvar ioKind = kind{nil, \"io\", exitOperator, \"\"}\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	exits, told, err := ReadExit(file)
	want := []Told{{"", "own", "0"}, {"v2.ErrCorrupt", "corrupt", "3"}, {"", "address", "0"}, {"fs.ErrPermission", "io", "3"}, {"", "io", "3"}}
	if err != nil || !slices.Equal(told, want) || len(exits) != 2 || exits["exitOperator"] != "3" {
		t.Errorf("got %q, %q, %v; want %q", exits, told, err, want)
	}
}
