//go:build unix

package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

var interopDie = flag.String("interop.die", "quarantine of a claim", "the scene in which TestInteropJavaScriptDies kills JavaScript")

// An interopScene is a call in which one side dies, and what the other may find. What
// is found is told as the generations that are delivered one after the other, and after
// a bar the one in the failed directory. The deaths go from the first operation to the
// last: what is found goes through stages and never back.
type interopScene struct {
	name   string
	step   string // a name of interopSteps
	before func(t *testing.T, s *Store, d interopDirs)
	newer  bool
	stages []string

	// again is what is found if the same quarantine is called first. Empty: not tried.
	again []string
}

func interopPending(gens ...string) func(*testing.T, *Store, interopDirs) {
	return func(t *testing.T, s *Store, _ interopDirs) {
		for _, gen := range gens {
			_, err := s.Enqueue(context.Background(), interopID, interopGen(gen))
			interopOK(t, err)
		}
	}
}

// interopClaimed claims G1, and enqueues the others after it.
func interopClaimed(newer ...string) func(*testing.T, *Store, interopDirs) {
	return func(t *testing.T, s *Store, d interopDirs) {
		interopPending("G1")(t, s, d)
		c, err := s.Load(context.Background(), interopID, nil)
		interopOK(t, err)
		interopOK(t, c.Close())
		interopPending(newer...)(t, s, d)
	}
}

var interopScenes = []interopScene{
	{name: "enqueue", step: "enqueue", before: interopPending(), stages: []string{"|", "G1 |"}},
	{name: "enqueue over a pending one", step: "enqueue", before: interopPending("G0"), stages: []string{"G0 |", "G1 |"}},
	{name: "enqueue behind a claim", step: "enqueue", before: func(t *testing.T, s *Store, d interopDirs) {
		interopPending("G0")(t, s, d)
		c, err := s.Load(context.Background(), interopID, nil)
		interopOK(t, err)
		interopOK(t, c.Close())
	}, stages: []string{"G0 |", "G0 G1 |"}},
	{name: "claim", step: "load", before: interopPending("G1"), stages: []string{"G1 |"}},
	{name: "claim, and a newer one comes", step: "load", before: interopPending("G1"), newer: true, stages: []string{"G1 |", "G1 G2 |"}},
	{name: "claim in a batch with a delivered marker", step: "pending", before: func(t *testing.T, s *Store, d interopDirs) {
		interopPending("G1")(t, s, d)
		interopOK(t, os.WriteFile(filepath.Join(d.Queue, interopID+deliveredSuffix), interopGen("G0"), 0o600))
	}, stages: []string{"G1 |"}},
	{name: "ack", step: "ack", before: interopClaimed(), stages: []string{"G1 |", "|"}},
	{name: "ack before a newer one", step: "ack", before: interopClaimed("G2"), stages: []string{"G1 G2 |", "G2 |"}},
	{name: "quarantine of a claim", step: "fail", before: interopClaimed(), stages: []string{"G1 |", "| G1"}, again: []string{"| G1"}},
	{name: "quarantine of a claim before a newer one", step: "fail", before: interopClaimed("G2"),
		stages: []string{"G1 G2 |", "G2 | G1"}, again: []string{"G2 | G1"}},
	{name: "quarantine of a pending one", step: "fail", before: interopPending("G1"), stages: []string{"G1 |", "| G1"}, again: []string{"| G1"}},
	{name: "quarantine that collides", step: "fail", before: func(t *testing.T, s *Store, d interopDirs) {
		interopPending("G1")(t, s, d)
		interopOK(t, os.WriteFile(filepath.Join(d.Failed, interopID+pendingSuffix), interopGen("G0"), 0o600))
	}, stages: []string{"G1 | G0"}, again: []string{"G1 | G0"}},
	{name: "migration", step: "migrate", before: interopPending("G1"), stages: []string{"G1 |", "M1 |"}},
}

// An interopLeft is what a death left, and what those found who went on.
type interopLeft struct {
	t        *testing.T
	scene    interopScene
	js       *interopPeer // lives on: one of those that go on
	stage    map[string]int
	stale    int    // locks that were left
	picture  string // of the last death
	pictures int
	twoNames int // quarantines cut off between their two names, which the package finishes by its own alone
}

// goOn lets JavaScript, and Go by the routes, each go on from a copy of d.
func (l *interopLeft) goOn(d interopDirs, how string, routes ...Route) {
	picture := d.picture(l.t)
	if picture == l.picture {
		return // the operation between was a sync, or changed nothing else that is seen
	}
	l.picture = picture
	l.pictures++
	type continuation struct {
		side  interopSide
		d     interopDirs
		again bool
	}
	var all []continuation
	for _, again := range []bool{false, true} {
		if again && l.scene.again == nil {
			break
		}
		for _, r := range routes {
			c := d.clone(l.t)
			all = append(all, continuation{newInteropGoSide(l.t, c, r), c, again})
		}
		c := d.clone(l.t)
		all = append(all, continuation{newInteropJSSide(l.t, l.js, c), c, again})
	}
	if d.lock(l.t) != "" {
		l.stale++
	}
	for _, c := range all {
		found := l.from(c.side, c.d, c.again)
		stages := l.scene.stages
		if c.again {
			stages = l.scene.again
		}
		key := c.side.name()
		if c.again {
			key += ", the same call first"
		}
		at := slices.Index(stages, found)
		switch {
		case at < 0:
			l.t.Errorf("%s: %s found %q, want one of %q", how, key, found, stages)
		case at < l.stage[key] && !strings.Contains(how, "in the middle"):
			l.t.Errorf("%s: %s found %q, although a death earlier on led to %q", how, key, found, stages[l.stage[key]])
		default:
			l.stage[key] = at
		}
		if js, ok := c.side.(interopJSSide); ok {
			l.twoNames += *js.hardlinked
		}
	}
}

// from tells what a side finds in d, to the end.
func (l *interopLeft) from(side interopSide, d interopDirs, again bool) string {
	t := l.t
	if lock := d.lock(t); lock != "" {
		// Never taken over; the operator's act.
		var record struct{ OwnerToken string }
		text, err := os.ReadFile(lock)
		interopOK(t, err)
		_ = json.NewDecoder(strings.NewReader(string(text))).Decode(&record) // it may be cut
		if owner := side.staleOwner(t, d); owner != record.OwnerToken {
			t.Errorf("%s: the stale lock is of %q, want %q", side.name(), owner, record.OwnerToken)
		}
		now, err := os.ReadFile(lock)
		if err != nil || string(now) != string(text) {
			t.Errorf("%s: changed a stale lock: %v", side.name(), err)
		}
		interopOK(t, os.Remove(lock))
	}
	if again {
		if code := side.fail(t); code != "" && code != string(ErrAlreadyExists) {
			t.Errorf("%s: the same quarantine again: %s", side.name(), code)
		}
	}
	var found []string
	for range 4 {
		gen, code := side.load(t)
		if code != "" {
			t.Errorf("%s: load: %s", side.name(), code)
		}
		if gen == "" {
			break
		}
		found = append(found, gen)
		if code := side.ack(t); code != "" {
			t.Errorf("%s: ack: %s", side.name(), code)
		}
	}
	found = append(found, "|")
	evidence, err := os.ReadFile(filepath.Join(d.Failed, interopID+pendingSuffix))
	if err == nil {
		found = append(found, genOf(t, evidence))
	} else if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	side.sweep(t)
	left := slices.DeleteFunc(d.names(t), func(name string) bool { return name == retirementsDir })
	if len(left) > 0 {
		t.Errorf("%s: left behind: %q", side.name(), left)
	}
	return strings.Join(found, " ")
}

// end checks that the run came through every stage.
func (l *interopLeft) end(operations int) {
	l.t.Helper()
	if operations < 4 {
		l.t.Errorf("only %d operations: is anything counted?", operations)
	}
	if l.stage["javascript"] != len(l.scene.stages)-1 {
		l.t.Errorf("the last stage was not seen: %v of %q", l.stage, l.scene.stages)
	}
	l.t.Logf("%d operations, %d different leftovers, %d of them with a lock, %d between two names", operations, l.pictures, l.stale, l.twoNames)
}

// interopPeers are two peers that the scenes of a test share.
func interopPeers(t *testing.T) chan *interopPeer {
	peers := make(chan *interopPeer, 2)
	peers <- newInteropPeer(t)
	peers <- newInteropPeer(t)
	return peers
}

func newInteropLeft(t *testing.T, scene interopScene, peers chan *interopPeer) *interopLeft {
	js := <-peers
	t.Cleanup(func() { peers <- js })
	return &interopLeft{t: t, scene: scene, js: js, stage: map[string]int{}}
}

// prepared makes directories as the scene needs them.
func (f interopScene) prepared(t *testing.T) interopDirs {
	t.Helper()
	d := newInteropDirs(t)
	s, err := Open(d.Queue, &Options{FailedDir: d.Failed})
	interopOK(t, err)
	f.before(t, s, d)
	interopOK(t, s.Close())
	return d
}

// An interopStop is what stood in the directories before one of JavaScript's operations.
type interopStop struct {
	d    interopDirs
	what string
}

// JavaScript is stopped before each of its operations, and what stands then is what it
// would leave if it died there; the next test proves that. So is half of each file that it
// writes. Go goes on from there by both routes, and finds what JavaScript itself does.
func TestInteropJavaScriptStops(t *testing.T) {
	t.Parallel()
	peers := interopPeers(t)
	for _, scene := range interopScenes {
		t.Run(scene.name, func(t *testing.T) {
			t.Parallel()
			l := newInteropLeft(t, scene, peers)
			l.js.must(t, "shift", interopArgs{"wall": 0}, nil)
			stops := scene.stopInJavaScript(t, l.js)
			for i, stop := range stops {
				l.goOn(stop.d, "stopped before "+stop.what, HardLink, RenameNoReplace)
				if i > 0 && strings.HasPrefix(stops[i-1].what, "writeFile ") {
					half := stop.d.clone(t)
					file := filepath.Join(half.Queue, strings.TrimPrefix(stops[i-1].what, "writeFile "))
					info, err := os.Stat(file)
					interopOK(t, err)
					interopOK(t, os.Truncate(file, info.Size()/2))
					l.goOn(half, "stopped in the middle of "+stops[i-1].what, HardLink, RenameNoReplace)
				}
			}
			l.end(len(stops) - 1)
		})
	}
}

// stopInJavaScript makes the scene's call, and copies the directories before each
// operation and after the last.
func (f interopScene) stopInJavaScript(t *testing.T, p *interopPeer) (stops []interopStop) {
	t.Helper()
	d := f.prepared(t)
	s, err := Open(d.Queue, nil)
	interopOK(t, err)
	defer s.Close()
	came := false
	p.whilePaused(func(what string) {
		what = strings.Trim(what, `"`)
		if f.newer && !came && interopRetires.MatchString(what) {
			came = true
			if _, err := s.Enqueue(context.Background(), interopID, interopGen("G2")); err != nil {
				t.Error(err)
			}
		}
		stops = append(stops, interopStop{d.clone(t), what})
	})
	p.must(t, "arm", interopArgs{"how": "pause", "match": ".", "nth": 0}, nil)
	method, args := f.call(d)
	a := p.call(t, method, args)
	p.must(t, "arm", nil, nil)
	if !a.OK && a.Code != string(ErrAlreadyExists) {
		t.Fatalf("%s: %v", f.name, a)
	}
	return append(stops, interopStop{d, "nothing"})
}

var interopRetires = regexp.MustCompile(`^rename .*\.json entry$`)

// call is the scene's call in JavaScript.
func (f interopScene) call(d interopDirs) (method string, args interopArgs) {
	args = interopArgs{"queue": d.Queue, "failed": d.Failed, "id": interopID}
	switch f.step {
	case "enqueue":
		args["entry"] = json.RawMessage(interopGen("G1"))
	case "migrate":
		args["migrate"] = json.RawMessage(interopGen("M1"))
		return "load", args
	}
	return f.step, args
}

// The same with SIGKILL, in one call that takes every kind of step: what is left is what
// stood there.
func TestInteropJavaScriptDies(t *testing.T) {
	t.Parallel()
	peers := interopPeers(t)
	at := slices.IndexFunc(interopScenes, func(f interopScene) bool { return f.name == *interopDie && !f.newer })
	if at < 0 {
		t.Fatalf("no scene %q in which JavaScript is alone", *interopDie)
	}
	scene := interopScenes[at]
	l := newInteropLeft(t, scene, peers)
	l.js.must(t, "shift", interopArgs{"wall": 0}, nil)
	stops := scene.stopInJavaScript(t, l.js)
	next := newInteropPeer(t)
	for i, stop := range stops[:len(stops)-1] {
		p := next
		next = newInteropPeer(t) // it starts while this one dies
		d := scene.prepared(t)
		p.must(t, "arm", interopArgs{"how": "kill", "at": i + 1}, nil)
		method, args := scene.call(d)
		if a := p.call(t, method, args); !a.died {
			t.Fatalf("operation %d: %v", i+1, a)
		}
		if got, want := d.picture(t), stop.d.picture(t); got != want {
			t.Errorf("killed before %s:\n%s\nstopped before it:\n%s", stop.what, got, want)
		}
		l.goOn(d, "killed before "+stop.what, HardLink, RenameNoReplace)
	}
	l.goOn(stops[len(stops)-1].d, "undisturbed", HardLink, RenameNoReplace)
	l.end(len(stops) - 1)
}

// Go is killed before each of its operations, on both routes: JavaScript goes on from
// what is left.
func TestInteropGoDies(t *testing.T) {
	t.Parallel()
	peers := interopPeers(t)
	for _, r := range []Route{HardLink, RenameNoReplace} {
		for _, scene := range interopScenes {
			t.Run(r.String()+"/"+scene.name, func(t *testing.T) {
				t.Parallel()
				l := newInteropLeft(t, scene, peers)
				for at := 1; ; at++ {
					d := scene.prepared(t)
					out, err := interopStart(t, "interop die", interopDeath{d, r, scene.step, at, scene.newer}).Rest()
					if err == nil {
						if len(out) != 1 {
							t.Errorf("it printed %q", out)
						}
						l.goOn(d, "undisturbed")
						l.end(at - 1)
						break
					}
					if killedBy(err) != syscall.SIGKILL {
						t.Fatalf("operation %d: %v", at, err)
					}
					l.goOn(d, fmt.Sprint("killed before operation ", at))
				}
			})
		}
	}
}
