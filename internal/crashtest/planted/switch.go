package planted

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// switchVar tells a process which bug it has.
const switchVar = "HOLDFAST_TEST_PLANTED_BUG"

// edited gives the files that the edits change, as they are then, by their names.
func edited(dir string, edits []Edit) (map[string]string, error) {
	texts := map[string]string{}
	for _, e := range edits {
		text, ok := texts[e.File]
		if !ok {
			b, err := os.ReadFile(filepath.Join(dir, e.File))
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("%s: %q stands %d times in it, want once: the planted bug is out of date", e.File, e.Old, n)
		}
		texts[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return texts, nil
}

// A source is a file, taken apart.
type source struct {
	pkg    string
	rest   string   // everything but the bodies of functions
	bodies []string // these, without their braces: each follows one of the gaps
	gaps   []string
	lines  []int  // where each begins
	labels []bool // whether it has labels, of which a function has none twice
}

func parse(text string) (*source, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &source{pkg: f.Name.Name}
	at := func(p token.Pos) int { return files.Position(p).Offset }
	last := 0
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		begin, end := at(fn.Body.Lbrace)+1, at(fn.Body.Rbrace)
		s.gaps = append(s.gaps, text[last:begin])
		s.bodies = append(s.bodies, text[begin:end])
		s.lines = append(s.lines, files.Position(fn.Body.Lbrace).Line)
		labels := false
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			_, label := n.(*ast.LabeledStmt)
			labels = labels || label
			return true
		})
		s.labels = append(s.labels, labels)
		last = end
	}
	s.gaps = append(s.gaps, text[last:])
	s.rest = strings.Join(s.gaps, "")
	return s, nil
}

// sources are the files that bugs change, by their names, and in each function the
// bodies that bugs give it, by the bugs' numbers.
type sources map[string]*switched

type switched struct {
	*source
	others []map[int]string
}

// add takes a bug that changes only bodies of functions, and reports whether it is one.
func (src sources) add(dir string, bug int, texts map[string]string) (bool, error) {
	type change struct {
		in   *switched
		body int
		text string
	}
	var changes []change
	for name, text := range texts {
		in, err := src.file(dir, name)
		if err != nil {
			return false, err
		}
		after, err := parse(text)
		if err != nil || after.rest != in.rest || len(after.bodies) != len(in.bodies) {
			return false, nil
		}
		for i, body := range after.bodies {
			if body == in.bodies[i] {
				continue
			}
			if in.labels[i] || after.labels[i] {
				return false, nil
			}
			changes = append(changes, change{in, i, body})
		}
	}
	for _, c := range changes {
		if c.in.others[c.body] == nil {
			c.in.others[c.body] = map[int]string{}
		}
		c.in.others[c.body][bug] = c.text
	}
	return true, nil
}

func (src sources) file(dir, name string) (*switched, error) {
	if s := src[name]; s != nil {
		return s, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	s, err := parse(string(text))
	if err != nil {
		return nil, err
	}
	src[name] = &switched{s, make([]map[int]string, len(s.bodies))}
	return src[name], nil
}

// drop takes a bug back.
func (src sources) drop(bug int) {
	for _, s := range src {
		for _, others := range s.others {
			delete(others, bug)
		}
	}
}

// place is the file that the compiler is told a body of that bug is in.
func place(bug int) string { return fmt.Sprintf("planted-bug-%d.go", bug) }

// switches gives the files with all bodies in them, and for each of their packages one
// file more, which reads which of them it is. What the compiler and a panic say of a
// line is where it stands in the source, or which bug it belongs to.
func (src sources) switches() map[string]string {
	texts := map[string]string{}
	for name, s := range src {
		var b strings.Builder
		for i, gap := range s.gaps {
			b.WriteString(gap)
			if i == len(s.bodies) {
				break
			}
			if len(s.others[i]) == 0 {
				b.WriteString(s.bodies[i])
				continue
			}
			// A chain with an end: where every way out must return, it does if all do.
			for _, bug := range slices.Sorted(maps.Keys(s.others[i])) {
				fmt.Fprintf(&b, "if plantedBug == \"%d\" {\n//line %s:1\n%s\n} else ", bug, place(bug), s.others[i][bug])
			}
			fmt.Fprintf(&b, "{\n//line %s:%d\n%s\n}", filepath.Base(name), s.lines[i], s.bodies[i])
		}
		texts[name] = b.String()
		texts[filepath.Join(filepath.Dir(name), "planted_switch.go")] = fmt.Sprintf(
			"package %s\n\nimport \"os\"\n\nvar plantedBug = os.Getenv(%q)\n", s.pkg, switchVar)
	}
	return texts
}
