package pages

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unguarded are the packages whose tests cannot import the check, and why. There are none.
var unguarded = map[string]string{}

// The tests of every package of this module end with the check that they leave no goroutine
// and no descriptor behind.
func TestEveryPackageIsGuarded(t *testing.T) {
	found, err := guarded("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 10 {
		t.Fatalf("only %d packages were found", len(found))
	}
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		switch why := unguarded[dir]; {
		case found[dir] && why != "":
			t.Errorf("%s has a TestMain that calls leak.Main: it is no exception", dir)
		case !found[dir] && why == "":
			t.Errorf("%s has tests and no TestMain that calls leak.Main or reexec.Main: see main_test.go of another package", dir)
		}
	}
	for dir := range unguarded {
		if _, ok := found[dir]; !ok {
			t.Errorf("%s has no tests: it is no exception", dir)
		}
	}
}

// guarded tells of every directory of the module with tests whether these are checked.
func guarded(root string) (map[string]bool, error) {
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if path != root && (err == nil || e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_")) {
				return fs.SkipDir // another module, or none
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		found[filepath.ToSlash(dir)] = found[filepath.ToSlash(dir)] || checks(f)
		return nil
	})
	return found, err
}

// checks reports whether a file has a TestMain that calls Main of leak or reexec, by the
// package's name or in the package itself.
func checks(f *ast.File) (calls bool) {
	for _, d := range f.Decls {
		main, ok := d.(*ast.FuncDecl)
		if !ok || main.Name.Name != "TestMain" || main.Recv != nil || main.Body == nil {
			continue
		}
		ast.Inspect(main.Body, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			in, name := f.Name.Name, ""
			switch fun := call.Fun.(type) {
			case *ast.Ident:
				name = fun.Name
			case *ast.SelectorExpr:
				if pkg, ok := fun.X.(*ast.Ident); ok {
					in, name = pkg.Name, fun.Sel.Name
				}
			}
			calls = calls || name == "Main" && (in == "leak" || in == "reexec")
			return true
		})
	}
	return calls
}

func TestGuarded(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                  "module x\n",
		"a_test.go":               "package x\nfunc TestMain(m *testing.M) { os.Exit(leak.Main(m)) }",
		"main/a_test.go":          "package main\nfunc TestMain(m *testing.M) { os.Exit(m.Run()) }\nfunc f() { leak.Main(nil) }",
		"main/b_test.go":          "package main\nfunc TestX(t *testing.T) {}",
		"roles/a_test.go":         "package roles\nfunc TestX(t *testing.T) {}",
		"roles/b_test.go":         "package roles_test\nfunc TestMain(m *testing.M) { reexec.Main(m, nil) }",
		"none/a_test.go":          "package none\nfunc TestX(t *testing.T) {}",
		"other/a_test.go":         "package other\nfunc TestMain(m *testing.M) { os.Exit(Main(m)) }\nfunc Main(m *testing.M) int { return 0 }",
		"leak/a_test.go":          "package leak\nfunc TestMain(m *testing.M) { os.Exit(Main(m)) }",
		"untested/a.go":           "package untested\n",
		"testdata/a_test.go":      "package data\n",
		".hidden/a_test.go":       "package hidden\n",
		"module/go.mod":           "module y\n",
		"module/below/a_test.go":  "package below\n",
		"method/a_test.go":        "package method\nfunc (x) TestMain(m *testing.M) { leak.Main(m) }",
		"quoted/below/a_test.go":  "package quoted\n// leak.Main(m)\nfunc TestMain(m *testing.M) { _ = `leak.Main(m)` }",
		"untested/below/a_tes.go": "package untested\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := guarded(root)
	want := map[string]bool{".": true, "main": false, "roles": true, "none": false, "other": false, "leak": true, "method": false, "quoted/below": false}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if err := os.WriteFile(filepath.Join(root, "bad_test.go"), []byte("no Go"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := guarded(root); err == nil {
		t.Error("a file that cannot be read is passed over")
	}
}
