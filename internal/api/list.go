// Package api lists what the packages of the module export. The listings are committed, in
// api/, so that a change of what others build on is seen by whoever reads a diff:
//
//	go test ./internal/api -update
//
// It reads syntax and checks no types: the listing takes a moment and no tool that is not in
// go.mod, and a type that is left to the compiler to find is a fault that it reports.
package api

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// List gives the exported surface of the package in a directory, as it is built for Linux,
// one line for each name. Faults are what it cannot tell.
func List(dir string) (lines, faults []string, err error) {
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled = "linux", "amd64", false
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, nil, err
	}
	l := lister{files: token.NewFileSet()}
	for _, name := range names {
		built, err := ctx.MatchFile(dir, filepath.Base(name))
		if err != nil {
			return nil, nil, err
		}
		if !built || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(l.files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range file.Decls {
			l.decl(d)
		}
	}
	slices.Sort(l.lines)
	return slices.Compact(l.lines), l.faults, nil
}

type lister struct {
	files  *token.FileSet
	lines  []string
	faults []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

func (l *lister) decl(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		l.function(d)
	case *ast.GenDecl:
		var last *ast.ValueSpec // with values: those that follow it in a group of constants go on
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				l.typeSpec(s)
			case *ast.ValueSpec:
				if d.Tok == token.CONST && len(s.Values) == 0 && s.Type == nil && last != nil {
					s.Type = last.Type
				} else {
					last = s
				}
				l.values(d.Tok, s)
			}
		}
	}
}

// values lists constants with what they are: others may have built on the value. Of a
// variable the type counts, and where the source does not say it, it must be an error.
func (l *lister) values(tok token.Token, s *ast.ValueSpec) {
	for i, name := range s.Names {
		if !name.IsExported() {
			continue
		}
		kind := ""
		if s.Type != nil {
			kind = " " + l.text(s.Type)
		}
		switch {
		case tok == token.CONST && i < len(s.Values):
			l.add("const %s%s = %s", name.Name, kind, l.text(s.Values[i]))
		case tok == token.CONST:
			l.add("const %s%s", name.Name, kind)
		case s.Type != nil:
			l.add("var %s%s", name.Name, kind)
		case strings.HasPrefix(name.Name, "Err"):
			l.add("var %s error", name.Name)
		default:
			l.faults = append(l.faults, fmt.Sprintf("%s: write down the type of %s: the listing cannot tell it", l.files.Position(name.Pos()), name.Name))
		}
	}
}

func (l *lister) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	receiver := ""
	if d.Recv != nil {
		of := d.Recv.List[0].Type
		if !ast.IsExported(baseName(of)) {
			return
		}
		receiver = "(" + l.text(of) + ") "
	}
	l.add("func %s%s%s%s", receiver, d.Name.Name, l.typeParams(d.Type.TypeParams), l.signature(d.Type))
}

func (l *lister) typeSpec(s *ast.TypeSpec) {
	if !s.Name.IsExported() {
		return
	}
	name := s.Name.Name + l.typeParams(s.TypeParams)
	switch t := s.Type.(type) {
	case *ast.StructType:
		l.add("type %s struct", name)
		for _, f := range t.Fields.List {
			for _, n := range f.Names {
				if n.IsExported() {
					l.add("type %s struct, %s %s%s", name, n.Name, l.text(f.Type), tag(f))
				}
			}
			if len(f.Names) == 0 && ast.IsExported(baseName(f.Type)) {
				l.add("type %s struct, embeds %s%s", name, l.text(f.Type), tag(f))
			}
		}
	case *ast.InterfaceType:
		l.add("type %s interface", name)
		for _, m := range t.Methods.List {
			switch sig, ok := m.Type.(*ast.FuncType); {
			case !ok:
				l.add("type %s interface, embeds %s", name, l.text(m.Type))
			case m.Names[0].IsExported():
				l.add("type %s interface, %s%s", name, m.Names[0].Name, l.signature(sig))
			default:
				l.add("type %s interface, closed to other packages", name)
			}
		}
	default:
		is := " "
		if s.Assign.IsValid() {
			is = " = "
		}
		l.add("type %s%s%s", name, is, l.text(s.Type))
	}
}

// tag gives a field's tag: who encodes the struct sees it.
func tag(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	return " " + f.Tag.Value
}

// signature gives a function's types; the names of its parameters bind nobody.
func (l *lister) signature(t *ast.FuncType) string {
	results := l.fields(t.Results)
	switch len(results) {
	case 0:
		return "(" + strings.Join(l.fields(t.Params), ", ") + ")"
	case 1:
		return "(" + strings.Join(l.fields(t.Params), ", ") + ") " + results[0]
	}
	return "(" + strings.Join(l.fields(t.Params), ", ") + ") (" + strings.Join(results, ", ") + ")"
}

func (l *lister) fields(list *ast.FieldList) []string {
	var all []string
	if list == nil {
		return nil
	}
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			all = append(all, l.text(f.Type))
		}
	}
	return all
}

func (l *lister) typeParams(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	var all []string
	for _, f := range list.List {
		for _, n := range f.Names {
			all = append(all, n.Name+" "+l.text(f.Type))
		}
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// text prints a type or a value in one line.
func (l *lister) text(e ast.Expr) string {
	if f, ok := e.(*ast.FuncType); ok {
		return "func" + l.signature(f)
	}
	var b bytes.Buffer
	if err := printer.Fprint(&b, l.files, e); err != nil {
		l.faults = append(l.faults, err.Error())
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// baseName gives the name of the type that an expression is about.
func baseName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.IndexListExpr:
		return baseName(e.X)
	}
	return ""
}
