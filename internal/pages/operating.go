package pages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Told is an error as the command tells it.
type Told struct {
	Err  string // as in v2.ErrCorrupt; empty: the command's own
	Code string
	Exit string
}

// packagesOf are the packages whose errors a page must name, by how the command calls them.
var packagesOf = map[string]string{
	"queue": "queue", "holdfast": "v2", "v1": "v1", "migrate": "migrate", "worker": "worker",
}

// ReadExit reads the exit codes, their names for them, and the table of errors from the source
// of the command.
func ReadExit(file string) (exits map[string]string, told []Told, err error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	exits = map[string]string{}
	inner := map[string]bool{} // packages that only the command can name
	for _, spec := range f.Imports {
		if path := strings.Trim(spec.Path.Value, `"`); strings.Contains(path, "/internal/") {
			inner[path[strings.LastIndex(path, "/")+1:]] = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name := spec.Names[0].Name
		switch value := spec.Values[0].(type) {
		case *ast.BasicLit:
			if strings.HasPrefix(name, "exit") {
				exits[name] = value.Value
			}
		case *ast.CompositeLit:
			if name == "kinds" || name == "ioKind" {
				told = append(told, kindsIn(value, name == "kinds")...)
			}
		}
		return true
	})
	for i := range told {
		told[i].Exit = exits[told[i].Exit]
		if pkg, _, _ := strings.Cut(told[i].Err, "."); inner[pkg] {
			told[i].Err = ""
		}
	}
	return exits, told, nil
}

// kindsIn reads {error, "code", exitName, …}, or a list of these.
func kindsIn(c *ast.CompositeLit, list bool) []Told {
	if list {
		var all []Told
		for _, e := range c.Elts {
			if of, ok := e.(*ast.CompositeLit); ok {
				all = append(all, kindsIn(of, false)...)
			}
		}
		return all
	}
	var t Told
	for i, e := range c.Elts {
		switch e := e.(type) {
		case *ast.SelectorExpr:
			pkg := e.X.(*ast.Ident).Name
			if dir, ours := packagesOf[pkg]; ours {
				pkg = dir
			}
			t.Err = pkg + "." + e.Sel.Name
		case *ast.BasicLit:
			if i == 1 {
				t.Code, _ = strconv.Unquote(e.Value) // the parser took it for a string
			}
		case *ast.Ident:
			if i == 2 {
				t.Exit = e.Name
			}
		}
	}
	return []Told{t}
}

// Sentinels gives the exported errors of the packages below root, as in v2.ErrCorrupt.
func Sentinels(root string) ([]string, error) {
	var all []string
	for _, dir := range slices.Sorted(maps.Values(packagesOf)) {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			for _, d := range f.Decls {
				if group, ok := d.(*ast.GenDecl); ok && (group.Tok == token.VAR || group.Tok == token.CONST) {
					for _, spec := range group.Specs {
						for _, id := range spec.(*ast.ValueSpec).Names {
							if strings.HasPrefix(id.Name, "Err") {
								all = append(all, dir+"."+id.Name)
							}
						}
					}
				}
			}
		}
	}
	return all, nil
}

// CheckOperating compares the tables of a text with what the command tells: those that have a
// column "exit code" name every exit code; of these the ones that have a column "code" have each
// code, under its exit code and with its errors; and every sentinel stands in a column "error".
// Each row says what to do. It tells what is missing, and what there is not.
func CheckOperating(text string, exits map[string]string, told []Told, sentinels []string) []string {
	rows, err := Rows(text)
	if err != nil {
		return []string{err.Error()}
	}
	var bad []string
	seenExits, seenCodes, seenErrs := map[string]bool{}, map[string]Row{}, map[string]bool{}
	for _, r := range rows {
		if slices.Contains(r.Head, "exit code") && !slices.Contains(r.Head, "code") {
			seenExits[r.Cell("exit code")] = true
		}
		if !slices.Contains(r.Head, "error") {
			continue
		}
		for _, name := range backquoted(r.Cell("error")) {
			seenErrs[name] = true
		}
		if r.Cell("what it says") == "" || r.Cell("what to do") == "" {
			bad = append(bad, "says nothing: "+r.Line)
		}
		if slices.Contains(r.Head, "code") {
			for _, code := range backquoted(r.Cell("code")) {
				if _, twice := seenCodes[code]; twice {
					bad = append(bad, fmt.Sprintf("code %s has two rows", code))
				}
				seenCodes[code] = r
			}
		}
	}
	for _, exit := range slices.Sorted(maps.Values(exits)) {
		if !seenExits[exit] {
			bad = append(bad, "no row of exit code "+exit)
		}
	}
	known := map[string]bool{}
	for _, t := range told {
		known[t.Code] = true
		r, ok := seenCodes[t.Code]
		switch {
		case !ok:
			bad = append(bad, fmt.Sprintf("no row of code %s (%s)", t.Code, t.Err))
		case r.Cell("exit code") != t.Exit:
			bad = append(bad, fmt.Sprintf("code %s has exit code %s: %s", t.Code, t.Exit, r.Line))
		case t.Err != "" && !slices.Contains(backquoted(r.Cell("error")), t.Err):
			bad = append(bad, fmt.Sprintf("code %s is also of %s: %s", t.Code, t.Err, r.Line))
		}
	}
	for _, code := range slices.Sorted(maps.Keys(seenCodes)) {
		if !known[code] {
			bad = append(bad, "there is no code "+code)
		}
	}
	for _, name := range sentinels {
		if !seenErrs[name] {
			bad = append(bad, "no row of "+name)
		}
		delete(seenErrs, name)
	}
	for _, name := range slices.Sorted(maps.Keys(seenErrs)) {
		if _, ours := strings.CutPrefix(name, "v"); ours || strings.HasPrefix(name, "queue.") || strings.HasPrefix(name, "migrate.") || strings.HasPrefix(name, "worker.") {
			bad = append(bad, "there is no "+name)
		}
	}
	return bad
}

// backquoted gives what stands in backquotes in a cell.
func backquoted(cell string) []string {
	parts := strings.Split(cell, "`")
	var all []string
	for i := 1; i < len(parts); i += 2 {
		all = append(all, parts[i])
	}
	return all
}
