//go:build unix

package holdfast_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The Go code that the README shows is code of example_test.go, which compiles and
// runs.
func TestReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) != 2 {
		t.Fatalf("README.md shows %d blocks of Go; want the imports and the example", len(blocks))
	}

	for line := range strings.Lines(blocks[0][1]) {
		spec, ok := strings.CutPrefix(strings.TrimSpace(line), "import ")
		if !ok || !strings.Contains(string(example), "\n\t"+spec+"\n") {
			t.Errorf("README.md imports %q; example_test.go does not", strings.TrimSpace(line))
		}
	}
	code := blocks[1][1]
	if !strings.HasPrefix(code, "// A Mail ") || !strings.Contains(string(example), "\n"+code) {
		t.Errorf("README.md shows code that is not in example_test.go:\n%s", code)
	}
	if rest := strings.SplitN(string(example), code, 2); len(rest) == 2 && !strings.HasPrefix(rest[1], "\nfunc Example()") {
		t.Errorf("README.md shows only a part of the example")
	}
}
