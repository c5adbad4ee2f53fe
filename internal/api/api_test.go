package api

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the listings anew")

const listings = "../../api"

// What the packages export is what api/ says. A change of it belongs into CHANGELOG.md.
func TestExportedSurface(t *testing.T) {
	dirs, err := Packages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, must := range []string{"queue", "queue/memory", "v1", "v2", "worker", "migrate"} {
		if !slices.Contains(dirs, must) {
			t.Errorf("no package %s among %q", must, dirs)
		}
	}
	want := []string{"README.md"}
	for _, dir := range dirs {
		lines, faults, err := List(filepath.Join("../..", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range faults {
			t.Error(fault)
		}
		file := filepath.Join(listings, File(dir))
		want = append(want, File(dir))
		text := strings.Join(lines, "\n") + "\n"
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		was, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, line := range Changes(string(was), text) {
			t.Errorf("%s: %s", dir, line)
		}
	}
	entries, err := os.ReadDir(listings)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(want, e.Name()) {
			t.Errorf("api/%s is of no package", e.Name())
		}
	}
	if t.Failed() {
		t.Log("if that is meant, and CHANGELOG.md says it: go test ./internal/api -update")
	}
}

const sample = `package sample

import "context"

// A Store is a sample.
type Store struct {
	Name, Path string
	Size       int ` + "`json:\"size\"`" + `
	hidden     bool
	Inner
	*other
}

type Inner struct{}

type other struct{}

type Set[K comparable, V any] struct{ All map[K]V }

type Level uint8

type Same = Level

type Op interface {
	Do(ctx context.Context, names ...string) (int, error)
	closed()
}

type hidden struct{ Shown int }

const (
	One Level = iota + 1
	Two
	three
)

const Max = 64 << 20

var ErrFull = kind("full")

var Default, Other Store

func New(ctx context.Context, a, b string, f func(old int) (bool, error)) *Store { return nil }

func (s *Store) Close() error { return nil }

func (Set[K, V]) Put(K, V) {}

func (hidden) Seen() {}

func kind(string) error { return nil }
`

const surface = `const Max = 64 << 20
const One Level = iota + 1
const Two Level
func (*Store) Close() error
func (Set[K, V]) Put(K, V)
func New(context.Context, string, string, func(int) (bool, error)) *Store
type Inner struct
type Level uint8
type Op interface
type Op interface, Do(context.Context, ...string) (int, error)
type Op interface, closed to other packages
type Same = Level
type Set[K comparable, V any] struct
type Set[K comparable, V any] struct, All map[K]V
type Store struct
type Store struct, Name string
type Store struct, Path string
type Store struct, Size int ` + "`json:\"size\"`" + `
type Store struct, embeds Inner
var Default Store
var ErrFull error
var Other Store
`

func listOf(t *testing.T, source string) (string, []string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sample.go": source, "sample_test.go": "package sample\n\nfunc InTest() {}\n", "sample_windows.go": "package sample\n\nfunc Elsewhere() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lines, faults, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n") + "\n", faults
}

func TestList(t *testing.T) {
	if got, faults := listOf(t, sample); got != surface || len(faults) > 0 {
		t.Errorf("got\n%s%q\nwant\n%s", got, faults, surface)
	}
}

// Each change that others would notice changes the listing; what they cannot see does not.
func TestListSeesAChange(t *testing.T) {
	for _, c := range []struct{ name, from, to, want string }{
		{"a field added", "Size       int", "Age, Size int", "added: type Store struct, Age int"},
		{"a field's type", "Size       int", "Size       int64", "removed: type Store struct, Size int `"},
		{"a tag", `json:\"size\"`, `json:\"bytes\"`, "json:"},
		{"a method removed", "func (s *Store) Close() error { return nil }", "", "removed: func (*Store) Close() error"},
		{"a receiver", "(s *Store) Close", "(s Store) Close", "added: func (Store) Close() error"},
		{"a result", "Close() error { return nil }", "Close() {}", "removed: func (*Store) Close() error"},
		{"a parameter's type", "a, b string", "a string, b int", "removed: func New("},
		{"a constraint", "V any", "V comparable", "removed: type Set[K comparable, V any] struct"},
		{"a method of an interface", "closed()\n", "", "removed: type Op interface, closed"},
		{"a constant", "64 << 20", "32 << 20", "added: const Max = 32 << 20"},
		{"a constant's type", "One Level = iota + 1", "One = iota + 1", "removed: const Two Level"},
		{"an alias", "type Same = Level", "type Same Level", "added: type Same Level"},
		{"what was hidden", "three", "Three", "added: const Three Level"},
		{"a parameter's name", "a, b string", "from, to string", ""},
		{"a hidden field", "hidden     bool", "hidden     int", ""},
		{"a comment", "is a sample", "is another", ""},
	} {
		from := strings.ReplaceAll(c.from, `\"`, `"`)
		source := strings.Replace(sample, from, strings.ReplaceAll(c.to, `\"`, `"`), 1)
		got, _ := listOf(t, source)
		changes := strings.Join(Changes(surface, got), "\n")
		if source == sample || (changes == "") != (c.want == "") || !strings.Contains(changes, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, changes, c.want)
		}
	}
}

func TestListSaysWhatItCannotTell(t *testing.T) {
	_, faults := listOf(t, strings.Replace(sample, "var Default, Other Store", "var Default = New(nil, \"\", \"\", nil)", 1))
	if len(faults) != 1 || !strings.Contains(faults[0], "write down the type of Default") {
		t.Errorf("got %q", faults)
	}
}
