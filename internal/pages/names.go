package pages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Tests gives the names of the tests, fuzz targets, benchmarks and examples in the
// _test.go files of a directory, whatever they are built for.
func Tests(dir string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	tests := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && testForm.MatchString(f.Name.Name) {
				tests[f.Name.Name] = true
			}
		}
	}
	return tests, nil
}

var testForm = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)([^a-z].*)?$`)

// CheckNames compares the tests and scenarios that a text names with those that there
// are: in a column "scenario" or "test", separated by commas, and in backquotes. It tells
// each that there is not, and each scenario that no row names.
func CheckNames(text string, scenarios []string, tests map[string]bool) []string {
	rows, err := Rows(text)
	if err != nil {
		return []string{err.Error()}
	}
	var bad []string
	unnamed := map[string]bool{}
	for _, name := range scenarios {
		unnamed[name] = true
	}
	for _, r := range rows {
		for name := range strings.SplitSeq(r.Cell("scenario")+", "+r.Cell("test"), ", ") {
			if name == "" || name == "every one" {
				continue
			}
			if !slices.Contains(scenarios, name) && !tests[name] {
				bad = append(bad, fmt.Sprintf("no test or scenario %q: %s", name, r.Line))
			}
			delete(unnamed, name)
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		if !tests[m[1]] {
			bad = append(bad, "no test "+m[1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(unnamed)) {
		bad = append(bad, fmt.Sprintf("scenario %s proves no row", name))
	}
	return bad
}

var quoted = regexp.MustCompile("`(Test\\w+)`")
