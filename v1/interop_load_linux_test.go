//go:build linux

package holdfast

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	interopMessages = flag.Int("interop.messages", 80, "how many messages each of the four producers of TestInteropLoad writes in a round")
	interopKills    = flag.Int("interop.kills", 2, "in how many rounds of TestInteropLoad the processes of one side are killed, of each in turn")
)

// An interopRun is the directories, the processes that work them, and their journal.
type interopRun struct {
	t        *testing.T
	d        interopDirs
	rng      *rand.Rand
	written  map[int]string // ID by generation
	first    map[int]bool   // of a pair
	nextGen  int
	mu       sync.Mutex
	events   []interopEvent
	progress chan string // what each event was
}

// An interopWorker is one process of a run.
type interopWorker struct {
	name, side string
	consumes   bool
	kill       func()
	end        func(ahead time.Duration) // lets it end after what it is at
	ready      chan struct{}             // it has made a call
	ended      chan struct{}
}

// take reads the journal of a process to its end.
func (r *interopRun) take(w *interopWorker, lines func() ([]byte, bool), wait func() error, killed *atomic.Bool) {
	defer close(w.ended)
	first := true
	for {
		line, ok := lines()
		if !ok {
			break
		}
		var l struct {
			Event *interopEvent
			OK    *bool `json:"ok"`
		}
		if err := json.Unmarshal(line, &l); err != nil || l.OK != nil && !*l.OK {
			if !killed.Load() { // its last line may be cut
				r.t.Errorf("%s: %s %v", w.name, line, err)
			}
			continue
		}
		if l.Event == nil {
			if !w.consumes {
				w.end(0) // a producer of JavaScript that is done
			}
			continue
		}
		if first {
			first = false
			close(w.ready)
		}
		l.Event.by = w.name
		r.mu.Lock()
		r.events = append(r.events, *l.Event)
		r.mu.Unlock()
		r.progress <- l.Event.What
	}
	if err := wait(); err != nil && !killed.Load() {
		r.t.Errorf("%s: %v", w.name, err)
	}
}

func (r *interopRun) javascript(name, method string, args interopArgs) *interopWorker {
	p := newInteropPeer(r.t)
	w := &interopWorker{name: name, side: "javascript", consumes: method == "consume", ready: make(chan struct{}), ended: make(chan struct{})}
	var killed atomic.Bool
	w.kill = func() { killed.Store(true); _ = p.cmd.Process.Kill() }
	var once sync.Once
	w.end = func(ahead time.Duration) {
		once.Do(func() {
			fmt.Fprintf(p.in, "{\"method\":\"finish\",\"ahead\":%d}\n", ahead.Milliseconds())
			_ = p.in.Close()
		})
	}
	p.send(r.t, method, args)
	go r.take(w, func() ([]byte, bool) { ok := p.out.Scan(); return p.out.Bytes(), ok }, p.cmd.Wait, &killed)
	return w
}

func (r *interopRun) golang(name, role string, part interopPart) *interopWorker {
	part.Dirs = r.d
	w := &interopWorker{name: name, side: "go", consumes: role == "interop consume", ready: make(chan struct{}), ended: make(chan struct{})}
	p := interopStart(r.t, role, part)
	var killed atomic.Bool
	w.kill = func() { killed.Store(true); _ = p.Cmd.Process.Kill() }
	w.end = func(time.Duration) { _ = p.In.Close() }
	go r.take(w, func() ([]byte, bool) { ok := p.Out.Scan(); return p.Out.Bytes(), ok }, p.Cmd.Wait, &killed)
	return w
}

// entries makes what a producer writes: mostly IDs of their own, and pairs of its hot
// IDs. The second of a pair comes right behind the first and may supersede it. Nothing
// supersedes the second: the next pair waits until nothing is left of this one.
func (r *interopRun) entries(hot ...string) (list []interopEntry) {
	add := func(id string, alone bool) {
		r.written[r.nextGen] = id
		list = append(list, interopEntry{ID: id, Gen: r.nextGen, Alone: alone})
		r.nextGen++
	}
	for len(list) < *interopMessages {
		if r.rng.IntN(4) > 0 {
			// Who may settle it: anybody, JavaScript, Go.
			add(fmt.Sprint([]string{"ua", "uj", "ug"}[r.nextGen%3], r.nextGen), false)
			continue
		}
		id := hot[r.rng.IntN(len(hot))]
		r.first[r.nextGen] = true
		add(id, true)
		add(id, false)
	}
	return list
}

// round lets eight processes work until all is written and settled, or until those of a
// side are killed. It tells how many consumers were.
func (r *interopRun) round(side string) (consumersKilled int) {
	kill := side != ""
	// A claim of the package is settled by whoever asks: of an ID that comes again only one
	// consumer of JavaScript may do so, or it would end what another has just loaded. Go's
	// consumers may contend.
	queue := func(more interopArgs) interopArgs {
		more["queue"], more["failed"] = r.d.Queue, r.d.Failed
		return more
	}
	ahead := time.Duration(0)
	if kill {
		ahead = interopAhead // whoever waits for a dead one's lock then sees that it is old
	}
	workers := []*interopWorker{
		r.javascript("javascript 0", "consume", queue(interopArgs{"prefixes": []string{"ua", "uj", "j0"}})),
		r.javascript("javascript 1", "consume", queue(interopArgs{"prefixes": []string{"ua", "uj", "j1"}})),
		r.golang("go by links", "interop consume", interopPart{Route: HardLink, Prefixes: []string{"ua", "ug", "g"}, Ahead: ahead}),
		r.golang("go by renames", "interop consume", interopPart{Route: RenameNoReplace, Prefixes: []string{"ua", "ug", "g"}, Ahead: ahead}),
	}
	for _, w := range workers {
		<-w.ready
	}
	workers = append(workers,
		r.javascript("javascript, producing", "produce", queue(interopArgs{"entries": r.entries("j0a", "ga")})),
		r.javascript("javascript, producing too", "produce", queue(interopArgs{"entries": r.entries("j1a", "gb")})),
		r.golang("go, producing", "interop produce", interopPart{Entries: r.entries("j0b", "gc")}),
		r.golang("go, producing too", "interop produce", interopPart{Entries: r.entries("j1b", "gd")}))
	if kill {
		for left := 50 + r.rng.IntN(6**interopMessages); left > 0; {
			if <-r.progress != "pending" {
				left--
			}
		}
		for _, w := range workers {
			if w.side == side {
				w.kill()
				if w.consumes {
					consumersKilled++
				}
			}
		}
	}
	if !kill {
		for _, w := range workers {
			if !w.consumes {
				<-w.ended
			}
		}
		// The consumers go on until there is nothing left.
		for range 20000 {
			<-r.progress
			if r.empty() {
				break
			}
		}
	}
	for _, w := range workers {
		w.end(ahead)
	}
	for _, w := range workers {
		<-w.ended
	}
	// The operator: nobody is left, so every lock is that of a dead process.
	for _, name := range r.d.names(r.t) {
		if isLock(name) {
			if !kill {
				r.t.Errorf("the lock %s was left", name)
			}
			interopOK(r.t, os.Remove(filepath.Join(r.d.Queue, name)))
		}
	}
	return consumersKilled
}

// empty reports whether no entry is left.
func (r *interopRun) empty() bool {
	list, err := os.ReadDir(r.d.Queue)
	interopOK(r.t, err)
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return len(entryIDs(names)) == 0
}

// drain takes what is left, by one consumer without rivals, into the journal.
func (r *interopRun) drain() {
	s := interopStore(r.t, r.d, Options{})
	for range 3 {
		b, err := s.LoadPending(context.Background(), nil)
		if err != nil || len(b.Skipped) > 0 {
			r.t.Errorf("at the end: %+v %v", b.Skipped, err)
		}
		for _, c := range b.Claims {
			now := interopNow()
			interopOK(r.t, s.Ack(context.Background(), c))
			r.events = append(r.events, interopEvent{What: "load", ID: c.ID, Gen: interopGenOf(c), Begin: now, End: now, by: "the end"},
				interopEvent{What: "ack", ID: c.ID, Gen: interopGenOf(c), Begin: now, End: interopNow(), by: "the end"})
		}
	}
	left := slices.DeleteFunc(r.d.names(r.t), func(name string) bool { return name == retirementsDir || isTemp(name) })
	if len(left) > 0 {
		r.t.Errorf("left at the end: %q", left)
	}
}

// Both sides work one directory at the same time: nothing is lost, nothing is claimed as
// two generations at a time, nothing comes back, and each side reads all that there is.
func TestInteropLoad(t *testing.T) {
	// The seed settles what is written and when a side is killed, not who comes first.
	r := &interopRun{t: t, d: newInteropDirs(t), rng: interopRandom(t), written: map[int]string{}, first: map[int]bool{}, nextGen: 1, progress: make(chan string, 1<<20)}
	r.round("")
	killed := 0
	for i := range *interopKills {
		killed += r.round([]string{"javascript", "go"}[i%2])
	}
	r.drain()
	r.judge(killed)
}
