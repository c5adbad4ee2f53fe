//go:build unix

package pages

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/testrun"
)

const examples = "../../docs/examples"

// The scripts of docs/examples are such as a shell reads, can be run, and begin as Termux wants.
func TestExampleScripts(t *testing.T) {
	scripts, err := filepath.Glob(examples + "/termux-*")
	if err != nil || len(scripts) != 4 {
		t.Fatalf("%q, %v", scripts, err)
	}
	for _, script := range scripts {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "#!/data/data/com.termux/files/usr/bin/sh\n") {
			t.Errorf("%s begins otherwise", script)
		}
		if info, err := os.Stat(script); err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("%s cannot be run: %v", script, err)
		}
		if out := readByShell(string(text)); out != "" {
			t.Errorf("%s: %s", script, out)
		}
	}
	if readByShell("case $1 in 2) echo no;;\n") == "" {
		t.Error("a script that is cut off passes")
	}
}

func readByShell(text string) string {
	cmd := exec.Command("sh", "-n")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return err.Error() + " " + string(out)
	}
	return string(out)
}

// systemd finds nothing to say about the units of docs/examples.
func TestExampleUnits(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		testrun.Skip(t, "no systemd-analyze")
	}
	if testrun.RaceDetector() {
		t.Skip("another program's work, and no race of ours")
	}
	if out := analyze(t, func(text string) string { return text }); out != "" { // of what is right nothing is said
		t.Error(out)
	}
	out := analyze(t, strings.NewReplacer("RestartPreventExitStatus=", "RestartPreventedExitStatus=", "KillMode=mixed", "KillMode=gently", "Sun 03:30", "Sonntag").Replace)
	for _, mistake := range []string{"RestartPreventedExitStatus", "gently", "Sonntag"} {
		if !strings.Contains(out, mistake) {
			t.Errorf("%s passes: %s", mistake, out)
		}
	}
}

// A queue's name goes through the name of its unit and comes out as it was, whatever stands in it.
func TestExampleUnitTakesAnyQueue(t *testing.T) {
	for _, program := range []string{"systemd-analyze", "systemd-escape"} {
		if _, err := exec.LookPath(program); err != nil {
			testrun.Skip(t, "no "+program)
		}
	}
	if testrun.RaceDetector() {
		t.Skip("another program's work, and no race of ours")
	}
	text, err := os.ReadFile(filepath.Join(examples, "holdfast-work@.service"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "%i") {
		t.Error("the escaped name is used, which is no queue's")
	}
	for _, queue := range []string{"mail", "mail/out-going", "a-b/c.d/e_f"} {
		name := said(t, "systemd-escape", "--template=holdfast-work@.service", queue)
		if strings.Contains(name, "/") {
			t.Errorf("%s: the unit %s cannot be named", queue, name)
		}
		if back := said(t, "systemd-escape", "--unescape", "--instance", name); back != queue {
			t.Errorf("%s comes out of %s as %s", queue, name, back)
		}
		if out := analyzeAs(t, name, func(text string) string { return text }); out != "" {
			t.Errorf("%s: %s", name, out)
		}
	}
}

func said(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		t.Fatalf("%s %q: %v", program, args, err)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// analyze gives what systemd says of the units as edit makes them, with programs in them that
// there are.
func analyze(t *testing.T, edit func(string) string) string {
	t.Helper()
	return analyzeAs(t, "holdfast-work@mail.service", edit)
}

// analyzeAs is analyze with a worker of that name.
func analyzeAs(t *testing.T, worker string, edit func(string) string) string {
	t.Helper()
	dir := t.TempDir()
	args := []string{"--user", "--man=no", "--recursive-errors=one", "verify"}
	for _, name := range []string{"holdfast-work@.service", "holdfast-check.service", "holdfast-check.timer"} {
		text, err := os.ReadFile(filepath.Join(examples, name))
		if err != nil {
			t.Fatal(err)
		}
		unit := filepath.Join(dir, strings.Replace(name, "holdfast-work@.service", worker, 1))
		if err := os.WriteFile(unit, []byte(strings.ReplaceAll(edit(string(text)), "%h/bin/holdfast", "/bin/true")), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, unit)
	}
	cmd := exec.Command("systemd-analyze", args...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "HOME="+dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		out.WriteString(err.Error())
	}
	return out.String()
}
