//go:build unix

package fsguard

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestExercise(t *testing.T) { each(t, testExercise) }

func testExercise(t *testing.T, fsys FS) {
	dir := t.TempDir()
	ok(t, exercise(fsys, dir))
	ok(t, exercise(fsys, dir)) // it leaves nothing that another run would trip over
	ok(t, exerciseLink(fsys, dir))
	ok(t, exerciseLink(fsys, dir))
}

// exercise calls every method in a directory but Link and checks the least that each
// must do. Other processes run it under filters.
func exercise(fsys FS, path string) (err error) {
	d, err := fsys.OpenRoot(path)
	if err != nil {
		return err
	}
	f, err := d.Create("a")
	if err != nil {
		return err
	}
	var w Watch
	var sub Dir
	steps := []struct {
		name string
		step func() error
	}{
		{"stat", func() error { _, err := fsys.Stat(path); return err }},
		{"dir name", func() error { return equal(d.Name(), path) }},
		{"dir info", func() error { _, err := d.Info(); return err }},
		{"space", func() error { _, err := d.Space(); return err }},
		{"dir lock", func() error { return d.Lock(Exclusive) }},
		{"dir try", func() error { return held(d.TryLock(Shared)) }},
		{"dir unlock", func() error { return d.Unlock() }},
		{"file name", func() error { return equal(f.Name(), "a") }},
		{"file info", func() error { _, err := f.Info(); return err }},
		{"file lock", func() error { return f.Lock(Shared) }},
		{"file try", func() error { return held(f.TryLock(Exclusive)) }},
		{"file unlock", func() error { return f.Unlock() }},
		{"write", func() error { _, err := f.WriteAt([]byte("abc"), 0); return err }},
		{"allocate", func() error { return f.Allocate(100_000) }},
		{"read", func() error {
			p := make([]byte, 3)
			_, err := f.ReadAt(p, 0)
			return errors.Join(err, equal(string(p), "abc"))
		}},
		{"sync", func() error { return f.Sync() }},
		{"syncdata", func() error { return f.SyncData() }},
		{"dup", func() error {
			dup, err := f.Dup()
			if err != nil {
				return err
			}
			return dup.Close()
		}},
		{"syncdir", func() error { return d.Sync() }},
		{"syncall", func() error { return fsys.SyncAll(f, d, DataOf(f)) }},
		{"close file", func() error { return f.Close() }},
		{"open", func() (err error) { f, err = d.Open("a"); return err }},
		{"close again", func() error { return f.Close() }},
		{"openwrite", func() (err error) { f, err = d.OpenWrite("a"); return err }},
		{"watch", func() (err error) { w, err = fsys.Watch(path, "a"); return err }},
		{"writefile", func() error { return d.WriteFile("b", []byte("xyz")) }},
		{"rename", func() error { return d.Rename("b", "a") }},
		{"watch channel", func() error { <-w.C(); return nil }},
		{"watch sure", func() error { _ = w.Sure(); return nil }},
		{"watch lost", func() error { return held(!w.Lost(), nil) }},
		{"close watch", func() error { return w.Close() }},
		{"mkdir", func() error { return d.Mkdir("sub") }},
		{"opendir", func() error { return closed(d.OpenDir("sub")) }},
		{"opendir again", func() (err error) { sub, err = d.OpenDir("sub"); return err }},
		{"move", func() error { return d.Move("a", sub, "b") }},
		{"movenew", func() error {
			return newOrNot(d.MoveNew("sub", d, "moved"), func() error { return d.Rename("sub", "moved") })
		}},
		{"movenew back", func() error {
			return newOrNot(d.MoveNew("moved", d, "sub"), func() error { return d.Rename("moved", "sub") })
		}},
		{"exchange", func() error { return exchangeOrNot(d, "sub", "c") }},
		{"move back", func() error { return sub.Move("b", d, "a") }},
		{"close sub", func() error { return sub.Close() }},
		{"opendir .", func() error { return closed(d.OpenDir(".")) }},
		{"opendir of a file", func() error { _, err := d.OpenDir("a"); return is(err, ErrNotPlain) }},
		{"open of a directory", func() error { _, err := d.OpenWrite("sub"); return is(err, ErrNotPlain) }},
		{"open of nothing", func() error { _, err := d.Open("c"); return is(err, fs.ErrNotExist) }},
		{"readdir", func() error {
			names, err := d.ReadDir()
			return errors.Join(err, equal(fmt.Sprint(names), "[a sub]"))
		}},
		{"remove", func() error { return d.Remove("a") }},
		{"removedir", func() error { return d.RemoveDir("sub") }},
		{"lstat", func() error { _, err := d.Lstat("a"); return is(err, fs.ErrNotExist) }},
		{"close file at the end", func() error { return f.Close() }},
		{"close", func() error { return d.Close() }},
	}
	for _, s := range steps {
		if err := s.step(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// exerciseLink is exercise for the one call that an Android app may not make.
func exerciseLink(fsys FS, path string) error {
	d, err := fsys.OpenRoot(path)
	if err != nil {
		return err
	}
	defer d.Close()
	f, err := d.Create("a")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := d.Link("a", d, "b"); err != nil {
		return err
	}
	info, err := f.Info()
	return errors.Join(err, equal(fmt.Sprint(info.Links), "2"), d.Remove("a"), d.Remove("b"))
}

// newOrNot is what MoveNew answered, or what another call does where a filesystem or
// system has no such call.
func newOrNot(err error, other func() error) error {
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, unix.EINVAL) {
		return other()
	}
	return err
}

// exchangeOrNot exchanges name with a file made for it, and back, where that is possible.
func exchangeOrNot(d Dir, name, other string) error {
	if err := d.WriteFile(other, nil); err != nil {
		return err
	}
	err := d.Exchange(name, other)
	if err == nil {
		info, lerr := d.Lstat(name)
		err = errors.Join(lerr, equal(fmt.Sprint(info.Mode.IsRegular()), "true"), d.Exchange(name, other))
	} else if errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, d.Remove(other))
}

func equal(got, want string) error {
	if got != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}

func held(got bool, err error) error {
	if err == nil && !got {
		return errors.New("the lock was not given")
	}
	return err
}

func closed(d Dir, err error) error {
	if err != nil {
		return err
	}
	return d.Close()
}

func is(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("got %v, want %v", err, want)
	}
	return nil
}

// exercise forgets no method: its source calls each one of the interfaces.
func TestExerciseIsComplete(t *testing.T) {
	file := must(parser.ParseFile(token.NewFileSet(), "exercise_test.go", nil, 0))(t)
	called := map[string][]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if fn, isFunc := n.(*ast.FuncDecl); isFunc {
			return fn.Name.Name == "exercise" || fn.Name.Name == "exerciseLink" || fn.Name.Name == "exchangeOrNot"
		}
		if sel, isSel := n.(*ast.SelectorExpr); isSel {
			if x, isIdent := sel.X.(*ast.Ident); isIdent {
				called[x.Name] = append(called[x.Name], sel.Sel.Name)
			}
		}
		return true
	})
	for variable, typ := range map[string]reflect.Type{
		"fsys": reflect.TypeFor[FS](), "d": reflect.TypeFor[Dir](), "f": reflect.TypeFor[File](), "w": reflect.TypeFor[Watch](),
	} {
		if typ.NumMethod() == 0 {
			t.Errorf("%v has no methods", typ)
		}
		for method := range typ.Methods() {
			if !slices.Contains(called[variable], method.Name) {
				t.Errorf("exercise does not call %s.%s", variable, method.Name)
			}
		}
	}
}
