//go:build unix

package holdfast

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// T28: of what the kernel tells under /proc, the store and the worker ask for the boot id
// alone. No process table, no /proc/stat: where they cannot be read, nothing is missing.
func TestTrial28AsksForTheBootIDOnly(t *testing.T) {
	found := map[string]int{}
	for _, dir := range []string{".", "../v1", "../queue", "../worker", "../migrate", "../internal/fsguard", "../internal/bootclock"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %q %v", dir, files, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, parser.SkipObjectResolution)
			mustDo(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == gotoken.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, "/proc") {
						found[text]++
					}
				}
				return true
			})
		}
	}
	if len(found) != 1 || found["/proc/sys/kernel/random/boot_id"] != 1 {
		t.Errorf("asked for: %v", found)
	}
}
