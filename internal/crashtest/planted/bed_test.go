package planted

import (
	"os"
	"strings"
	"testing"
)

// Tests that have a list each are given one build, with all bugs in it; it goes when all have
// run.
func TestBed(t *testing.T) {
	goTool := needGo(t)
	t.Chdir(tiny(t))
	b := &Bed{env: alone}
	b.Add(Bug{Name: "one", Test: "TestOne$", Edits: badOne})
	b.Add(Bugs([]Uncaught{{Bug: Bug{Name: "two", Test: "TestOne$", Edits: badTwo}, Why: "it is another's"}})...)
	b.Add(Bug{Name: "elsewhere", Test: "TestThree$", In: "sub", Edits: badOne})
	p, err := b.plot(goTool, "")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := b.plot(goTool, ""); again != p || err != nil {
		t.Errorf("asked again it is another one, %v", err)
	}
	if len(p.bugs) != 2 {
		t.Errorf("%d bugs, want the 2 whose tests are there", len(p.bugs))
	}
	for name, check := range map[string]func(int) error{"one": p.caught, "two": p.missed} {
		i, err := p.find(name)
		if err != nil {
			t.Fatal(err)
		}
		told(t, check(i), "")
	}
	told(t, p.sound(p.bugs[:1]), "")
	if _, err := p.find("three"); err == nil || !strings.Contains(err.Error(), "not in the bed") {
		t.Errorf("a bug that is not there: %v", err)
	}
	b.Remove()
	if _, err := os.Stat(p.temp); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", p.temp, err)
	}
	b.Remove() // where nothing was built
}
