//go:build unix

package fsguard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// AllOps lists every constant of type Op in the source, each once.
func TestAllOps(t *testing.T) {
	file := must(parser.ParseFile(token.NewFileSet(), "fsguard.go", nil, 0))(t)
	var declared []Op
	ast.Inspect(file, func(n ast.Node) bool {
		spec, isSpec := n.(*ast.ValueSpec)
		if !isSpec {
			return true
		}
		if typ, isIdent := spec.Type.(*ast.Ident); !isIdent || typ.Name != "Op" {
			return true
		}
		for _, value := range spec.Values {
			text := must(strconv.Unquote(value.(*ast.BasicLit).Value))(t)
			declared = append(declared, Op(text))
		}
		return true
	})
	if len(declared) < 20 {
		t.Fatalf("found only %q in the source", declared)
	}
	got, want := slices.Sorted(slices.Values(AllOps)), slices.Sorted(slices.Values(declared))
	if !slices.Equal(got, want) {
		t.Errorf("AllOps: got %q, want %q", got, want)
	}
	if n := len(slices.Compact(want)); n != len(declared) {
		t.Errorf("%d operations share %d names", len(declared), n)
	}
}
