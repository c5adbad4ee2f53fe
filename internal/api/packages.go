package api

import (
	"go/build"
	"io/fs"
	"path/filepath"
	"strings"
)

// Packages gives the directories below root, relative to it, whose packages others can
// import: not a command, not below internal or testdata, not of another module.
func Packages(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		name := e.Name()
		if path != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "internal" || name == "testdata") {
			return fs.SkipDir
		}
		if mods, err := filepath.Glob(filepath.Join(path, "go.mod")); path != root && (err != nil || len(mods) > 0) {
			return fs.SkipDir
		}
		ctx := build.Default
		ctx.GOOS, ctx.GOARCH = "linux", "amd64"
		p, err := ctx.ImportDir(path, 0)
		if _, none := err.(*build.NoGoError); none {
			return nil
		}
		if err != nil || p.IsCommand() {
			return err
		}
		dir, err := filepath.Rel(root, path)
		dirs = append(dirs, filepath.ToSlash(dir))
		return err
	})
	return dirs, err
}

// File gives the name of the listing of a package.
func File(dir string) string { return strings.ReplaceAll(dir, "/", "-") + ".txt" }
