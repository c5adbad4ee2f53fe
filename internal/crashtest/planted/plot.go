package planted

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A plot is the bugs that tests of one package catch, planted.
type plot struct {
	goTool, dir, in, temp string
	env                   []string
	bugs                  []Bug
	shared                binary     // the package, with the bugs that can be switched on
	planted               []planting // how each bug is
}

// A planting is how a bug was planted.
type planting struct {
	shared bool  // in the build that bugs share
	err    error // not at all: it is out of date, or does not build
}

// A binary is a package's tests, built.
type binary struct{ path, dir string }

// newPlot builds what the bugs share. Those that cannot are built when they are tried.
func newPlot(goTool, dir, in, temp string, bugs []Bug, env []string) (*plot, error) {
	p := &plot{goTool: goTool, dir: dir, in: in, temp: temp, env: env, bugs: bugs, planted: make([]planting, len(bugs))}
	src, names := sources{}, map[string]bool{}
	for i, b := range bugs {
		if names[b.Name] {
			return nil, fmt.Errorf("two bugs are called %q", b.Name)
		}
		names[b.Name] = true
		how := &p.planted[i]
		texts, err := edited(dir, b.Edits)
		if err != nil {
			how.err = err
			continue
		}
		if how.shared, err = src.add(dir, i, texts); err != nil {
			return nil, err
		}
	}
	var err error
	if p.shared, err = p.build(src.switches()); err == nil {
		return p, nil
	}
	// The compiler names the bugs that do not build: the others go on without them.
	for i := range bugs {
		if p.planted[i].shared && strings.Contains(err.Error(), place(i)) {
			p.planted[i] = planting{err: err}
			src.drop(i)
		}
	}
	p.shared, err = p.build(src.switches())
	return p, err
}

// try runs the test of bug i with it. There is no output where it was not run.
func (p *plot) try(i int) (out string, err error) {
	b, bin := p.bugs[i], p.shared
	if p.planted[i].err != nil {
		return "", p.planted[i].err
	}
	if !p.planted[i].shared {
		texts, err := edited(p.dir, b.Edits)
		if err != nil {
			return "", err
		}
		if bin, err = p.build(texts); err != nil {
			return "", err
		}
		defer os.Remove(bin.path) // there may be many
	}
	return bin.run(strconv.Itoa(i), "^"+b.Test, p.env)
}

// build builds the tests with other texts in the place of those files.
func (p *plot) build(texts map[string]string) (binary, error) {
	temp, err := os.MkdirTemp(p.temp, "")
	if err != nil {
		return binary{}, err
	}
	replace := map[string]string{}
	for file, text := range texts {
		changed := filepath.Join(temp, strconv.Itoa(len(replace))+filepath.Base(file))
		if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
			return binary{}, err
		}
		replace[filepath.Join(p.dir, file)] = changed
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return binary{}, err
	}
	list := filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		return binary{}, err
	}
	bin := binary{filepath.Join(temp, "planted.test"), filepath.Join(p.dir, p.in)}
	cmd := exec.Command(p.goTool, "test", "-c", "-o", bin.path, "-ldflags=-s -w", "-gcflags=-e", "-overlay", list, ".")
	cmd.Dir = bin.dir
	cmd.Env = append(os.Environ(), p.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return binary{}, fmt.Errorf("it does not build: %w\n%s", err, out)
	}
	return bin, nil
}

// run runs tests in the package's directory, small: a bug that is caught is caught soon.
// One that hangs is ended, which is not a failure of the test. What it leaves of temporary
// files, by a panic or by its end, is removed.
func (b binary) run(bug, tests string, env []string) (out string, err error) {
	temp, err := os.MkdirTemp(filepath.Dir(b.path), "run")
	if err != nil {
		return "", err
	}
	defer removeAll(temp)
	cmd := exec.Command(b.path, "-test.short", "-test.v", "-test.timeout=3m", "-test.run="+tests)
	cmd.Dir = b.dir
	cmd.Env = append(append(os.Environ(), env...), switchVar+"="+bug, "TMPDIR="+temp)
	cmd.WaitDelay = time.Second // for what the test started and left
	text, err := cmd.CombinedOutput()
	return string(text) + "\n", err
}

// removeAll removes a directory, with what somebody forbade to change. What it cannot remove
// the end of the test tells of: it lies in the test's own.
func removeAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
