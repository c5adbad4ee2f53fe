//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// is gives closures that share their code: inlined, each would have its own.
//
//go:noinline
func is(value string) func(string) bool { return func(other string) bool { return other == value } }

// Worlds are alike when disk and journal are, what is not durable included: and only then.
func TestAlike(t *testing.T) {
	make := func(change func(t *testing.T, d *Disk, p *Process, j *Journal)) fingerprint {
		d, j := NewDisk(), &Journal{}
		d.MkdirAll("/store/objects")
		d.WriteRaw("/store/state", []byte("one"))
		p := d.Process()
		change(t, d, p, j)
		p.Kill()
		return world{disk: d, journal: j}.fingerprint("image")
	}
	nothing := func(*testing.T, *Disk, *Process, *Journal) {}
	in := func(f func(t *testing.T, root fsguard.Dir)) func(*testing.T, *Disk, *Process, *Journal) {
		return func(t *testing.T, _ *Disk, p *Process, _ *Journal) { f(t, must(p.OpenRoot("/store"))(t)) }
	}
	plain := make(nothing)
	for name, same := range map[string]func(*testing.T, *Disk, *Process, *Journal){
		"nothing": nothing,
		"another inode and ctime": func(_ *testing.T, d *Disk, _ *Process, _ *Journal) {
			d.Replace("/store/state", []byte("one"))
		},
		"looked at": in(func(t *testing.T, root fsguard.Dir) { must(root.Open("state"))(t) }),
	} {
		if make(same) != plain {
			t.Errorf("%s: not alike", name)
		}
	}
	holding := func(value string) func(*testing.T, *Disk, *Process, *Journal) {
		return func(_ *testing.T, _ *Disk, _ *Process, j *Journal) { j.Ack("told", is(value)) }
	}
	// Two names are removed whose removals have to wait for two arrivals in a directory that
	// comes later, this way round or the other.
	waiting := func(rests [2]int) func(*testing.T, *Disk, *Process, *Journal) {
		return func(_ *testing.T, d *Disk, _ *Process, _ *Journal) {
			d.MkdirAll("/store/objects/later")
			early, late := d.root.names["store"], d.root.names["store"].names["objects"].names["later"]
			arrivals := []*nameOp{{kind: opArrive, name: "a", node: early.names["state"]}, {kind: opArrive, name: "b", node: early.names["state"]}}
			late.ops = append(late.ops, arrivals...)
			for i, name := range []string{"x", "y"} {
				early.ops = append(early.ops, &nameOp{kind: opLeave, name: name, node: early.names["state"], rests: []*nameOp{arrivals[rests[i]]}})
			}
		}
	}
	seen := map[fingerprint]string{plain: "nothing"}
	for name, other := range map[string]func(*testing.T, *Disk, *Process, *Journal){
		"a closure":                   holding("one"),
		"a closure's captured value":  holding("two"),
		"an mtime":                    func(_ *testing.T, d *Disk, _ *Process, _ *Journal) { d.SetMtime("/store/state", 7) },
		"what rests on later ones":    waiting([2]int{0, 1}),
		"the later ones turned round": waiting([2]int{1, 0}),
		"content":                     func(_ *testing.T, d *Disk, _ *Process, _ *Journal) { d.WriteRaw("/store/state", []byte("two")) },
		"zeros at the end":            func(_ *testing.T, d *Disk, _ *Process, _ *Journal) { d.WriteRaw("/store/state", []byte("one\x00")) },
		"a name":                      func(_ *testing.T, d *Disk, _ *Process, _ *Journal) { d.WriteRaw("/store/other", nil) },
		"another name":                func(_ *testing.T, d *Disk, _ *Process, _ *Journal) { d.WriteRaw("/store/others", nil) },
		"a mode":                      func(_ *testing.T, d *Disk, _ *Process, _ *Journal) { d.Chmod("/store/state", 0o644) },
		"an owner":                    func(_ *testing.T, d *Disk, _ *Process, _ *Journal) { d.Chown("/store/state", 4711) },
		"a link":                      func(_ *testing.T, d *Disk, _ *Process, _ *Journal) { d.HardLink("/store/state", "/store/link") },
		"the journal":                 func(_ *testing.T, _ *Disk, _ *Process, j *Journal) { j.Begin("a", nil) },
		"the journal's key":           func(_ *testing.T, _ *Disk, _ *Process, j *Journal) { j.Begin("b", nil) },
		"what was answered":           func(_ *testing.T, _ *Disk, _ *Process, j *Journal) { j.Ack("a", nil) },
		"how the disk is":             func(_ *testing.T, d *Disk, _ *Process, _ *Journal) { d.SetReadOnly(true) },
		"a name that is not durable": in(func(t *testing.T, root fsguard.Dir) {
			must(root.Create("other"))(t)
		}),
		"content that is not durable": in(func(t *testing.T, root fsguard.Dir) {
			must(must(root.OpenWrite("state"))(t).WriteAt([]byte("two"), 0))(t)
		}),
		"the same content, written anew": in(func(t *testing.T, root fsguard.Dir) {
			must(must(root.OpenWrite("state"))(t).WriteAt([]byte("one"), 0))(t)
		}),
		"a name that no sync makes durable any more": in(func(t *testing.T, root fsguard.Dir) {
			must(root.Create("other"))(t)
			root.(*simDir).failSync()
		}),
	} {
		key := make(other)
		if before, twice := seen[key]; twice {
			t.Errorf("%s is alike to %s", name, before)
		}
		seen[key] = name
	}
}

// An Aliker decides itself what of it counts.
type twin struct{ text string }

func (twin) Alike() string { return "a twin" }

func TestAliker(t *testing.T) {
	of := func(v any) fingerprint {
		j := &Journal{}
		j.Ack("a", v)
		return world{disk: NewDisk(), journal: j}.fingerprint("image")
	}
	if of(twin{"one"}) != of(twin{"two"}) || of("one") == of("two") || of(errors.New("x")) == of(errors.New("y")) {
		t.Error("a twin differs from a twin, or others do not")
	}
	one := 1
	type holder struct {
		Text string
		in   any
	}
	for name, v := range map[string]any{
		"a function":              func() {},
		"one in a struct":         holder{in: func() {}},
		"one behind a pointer":    &holder{in: func() {}},
		"one in a list":           []any{"x", func() {}},
		"one in a map":            map[string]func(){"x": func() {}},
		"a pointer in a struct":   holder{in: &holder{}},
		"a pointer to a number":   &one,
		"an error that is hidden": holder{in: errors.New("x")}, // fmt prints its address
	} {
		if first, again := of(v), of(v); first == again {
			t.Errorf("%s is alike to another", name)
		}
	}
	for name, v := range map[string]any{
		"none":              nil,
		"no function":       (func())(nil),
		"a struct":          holder{Text: "x", in: 1},
		"a pointer to one":  &holder{Text: "x"},
		"bytes":             []byte("x"),
		"an error":          fmt.Errorf("y: %w", errors.New("x")),
		"a list of structs": []holder{{Text: "x"}},
		"a map":             map[string]int{"x": 1},
	} {
		if first, again := of(v), of(v); first != again {
			t.Errorf("%s is not alike to itself", name)
		}
	}
}

// What is alike is not checked again, and the finding is the one that it would be else: that
// of the first point, whichever goroutine is faster.
func TestAlikeIsCheckedOnce(t *testing.T) {
	stats := Explore(t, registerScenario(""), Options{})
	if stats.Alike < stats.Images/4 || stats.Checks+stats.Alike < stats.Images+stats.Points {
		t.Errorf("%v: checks and what is alike are all that there is, and much is alike", stats)
	}
	for _, bug := range []string{"temp not synced", "object edge not synced", "acknowledged before the sync"} {
		first := finding(t, func(t testing.TB) { Explore(t, registerScenario(bug), Options{}) })
		for range 5 {
			if again := finding(t, func(t testing.TB) { Explore(t, registerScenario(bug), Options{}) }); again != first {
				t.Fatalf("%s: two explorations differ:\n%s\n%s", bug, first, again)
			}
		}
	}
}

// Moments of one point are the same, and those of two processes are not.
func TestMoment(t *testing.T) {
	d := NewDisk()
	d.MkdirAll("/store")
	moment := func(d *Disk) (list [2][2]uint64) {
		w := Wrap(d.Process(), Plan{})
		for i := range list {
			var ok bool
			if list[i], ok = Moment(w); !ok {
				t.Fatal("none")
			}
		}
		return list
	}
	a := moment(d.Clone())
	if b := moment(d.Clone()); a != b || a[0] == a[1] {
		t.Errorf("%v and %v", a, b)
	}
	d.WriteRaw("/store/x", nil)
	if b := moment(d); a == b {
		t.Errorf("%v before and after a change", a)
	}
	if _, ok := Moment(d.Process()); ok {
		t.Error("a bare process has one")
	}
	if _, ok := Moment(Wrap(fsguard.OS(), Plan{})); ok {
		t.Error("the real filesystem has one")
	}
}

// An uncertain commit is met with the process going on, and with its death at each of the
// next operations.
func TestExploreUncertain(t *testing.T) {
	commit := func(path string) bool { return path == "state" }
	o := Options{MaxImages: 8, Errnos: []syscall.Errno{syscall.EIO}, Uneven: true}
	stats := ExploreUncertain(t, registerScenario(""), o, commit)
	if stats.Points < 1+2*2+2 { // the failures, and deaths after them
		t.Errorf("too little was explored: %v", stats)
	}
	none := ExploreUncertain(t, registerScenario(""), o, func(string) bool { return false })
	if none.Points != 1 {
		t.Errorf("%d points without a commit", none.Points)
	}
	plan, err := parsePlan("fail-after-12-EIO-die-15")
	if err != nil || plan.Mode != FailingAfter || plan.N != 12 || plan.Die != 15 || plan.Err != error(syscall.EIO) {
		t.Errorf("the plan reads back as %+v, %v", plan, err)
	}
	if _, err := parsePlan("fail-after-12-EIO-die-x"); err == nil {
		t.Error("a bad plan is read")
	}
	found := finding(t, func(t testing.TB) {
		ExploreUncertain(t, readerScenario("visible state only synced"), o, commit)
	})
	if !strings.Contains(found, "fail-at-") {
		t.Errorf("found %s", found)
	}
}

// The line that a finding prints is a command: it runs this test again, in a process of
// its own, and comes to the same finding and to nothing else.
func TestReplayCommand(t *testing.T) {
	if os.Getenv("CRASHTEST_REPLAY") != "" { // we are the replay: it is to fail
		Explore(t, registerScenario("temp not synced"), Options{})
		return
	}
	first := finding(t, func(t testing.TB) { Explore(t, registerScenario("temp not synced"), Options{}) })
	command := regexp.MustCompile(`cd .* && CRASHTEST_REPLAY=.* go test -run .* \.\n`).FindString(first)
	if command == "" {
		t.Fatalf("no command in\n%s", first)
	}
	command = strings.TrimSuffix(strings.Replace(command, "go test -run", os.Args[0]+" -test.run", 1), " .\n")
	out, err := exec.Command("sh", "-c", command).CombinedOutput()
	summary, _, _ := strings.Cut(first, "\n")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), summary) || strings.Count(string(out), "scenario register:") != 1 {
		t.Errorf("%s\nended with %v and said\n%s\nwant\n%s", command, err, out, summary)
	}
}
