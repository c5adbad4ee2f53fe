//go:build unix

package holdfast

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/internal/pages"
)

// What docs/crash-points.md lists of this package is recorded, as v2's part is: the
// operations of each call, in words, with what the disk shows after each.

// An entryLook is what another process sees of the one entry.
type entryLook struct {
	pending, claimed, marker, failed string // contents; empty: no such name
	record                           bool
	retired                          string // in the record
	temps                            int
}

func lookAtEntry(d *crashtest.Disk) entryLook {
	read := func(at string) string {
		if !d.Exists(at) {
			return ""
		}
		return string(d.ReadRaw(at))
	}
	n := namesOf(crashID)
	l := entryLook{
		pending: read(inQueue(n.pending)), claimed: read(inQueue(n.processing)), marker: read(inQueue(n.delivered)),
		failed: read(inFailed(n.failed())), record: d.Exists(inRecord("")), retired: read(inRecord(retiredEntry)),
	}
	if d.Exists(simPlace.queue) {
		p := d.Process()
		defer p.Kill()
		q, err := p.OpenRoot(simPlace.queue)
		if err != nil {
			panic(err)
		}
		names, err := q.ReadDir()
		if err != nil {
			panic(err)
		}
		for _, name := range names {
			if isTemp(name) {
				l.temps++
			}
		}
	}
	return l
}

type (
	seenOp = pages.Seen[entryLook]

	// An opRun is one call: what is done while a transfer lock is held, or without one.
	opRun struct {
		name   string
		route  Route
		before entryLook
		ops    []seenOp
	}
)

// recordOps records what a process does.
func recordOps(d *crashtest.Disk, do func(fsys fsguard.FS)) (before entryLook, ops []seenOp) {
	w := crashtest.Wrap(d.Process(), crashtest.Plan{})
	before = lookAtEntry(d)
	return before, pages.Recorder[entryLook]{W: w, Look: func() entryLook { return lookAtEntry(d) }}.Record(func() { do(w) })
}

// recordedRuns are the calls of every scenario of TestCrash, by each route, and of
// OpenOrCreate.
func recordedRuns(t *testing.T) (runs []opRun) {
	for _, c := range crashScenarios {
		routes := c.routes
		if routes == nil {
			routes = bothRoutes
		}
		for _, route := range routes {
			d := crashtest.NewDisk()
			sc := c.scenario(route, route, false)
			sc.Setup(t, d)
			before, ops := recordOps(d, func(fsys fsguard.FS) { sc.Run(fsys, &crashtest.Journal{}) })
			name := c.name
			if len(routes) > 1 || route != HardLink {
				name += " by " + route.String()
			}
			runs = append(runs, split(name, route, before, ops)...)
		}
	}
	d := crashtest.NewDisk()
	d.MkdirAll("/data")
	_, ops := recordOps(d, func(fsys fsguard.FS) {
		s, err := OpenOrCreate(simPlace.queue, simPlace.options(fsys, HardLink, crashTime))
		unitOK(t, err)
		unitOK(t, s.Close())
	})
	return append(runs, opRun{name: "open or create", ops: ops})
}

// split makes a run of each holding of a lock. What comes before one is its own.
func split(name string, route Route, before entryLook, ops []seenOp) (runs []opRun) {
	for len(ops) > 0 {
		n := 1
		for n < len(ops) && !releases(ops[n-1]) && !(n > 0 && takes(ops[n]) && !anyOf(ops[:n], takes)) {
			n++
		}
		runs = append(runs, opRun{name, route, before, ops[:n]})
		before, ops = ops[n-1].After, ops[n:]
	}
	if len(runs) > 1 {
		for i := range runs {
			runs[i].name = fmt.Sprintf("%s (%d of %d)", name, i+1, len(runs))
		}
	}
	return runs
}

func takes(op seenOp) bool    { return op.Op == fsguard.OpCreate && isLock(op.Path) }
func releases(op seenOp) bool { return op.Op == fsguard.OpRemove && isLock(op.Path) }

func anyOf(ops []seenOp, is func(seenOp) bool) bool { return slices.ContainsFunc(ops, is) }

// listed is a run as the page lists it.
func (r opRun) listed() pages.Run {
	out := pages.Run{Name: r.name}
	for k, op := range r.ops {
		rows := r.rows(k)
		slices.SortFunc(rows, func(a, b string) int {
			if a[0] != b[0] || len(a) == len(b) {
				return strings.Compare(a, b)
			}
			return len(a) - len(b)
		})
		out.Steps = append(out.Steps, pages.Step{Op: r.spelled(k, op), Rows: slices.Compact(rows)})
	}
	return out
}

// spelled gives the words for an operation.
func (r opRun) spelled(k int, op seenOp) string {
	verb, known := map[fsguard.Op]string{
		fsguard.OpMkdir: "make", fsguard.OpCreate: "create", fsguard.OpWrite: "write", fsguard.OpSync: "sync", fsguard.OpSyncDir: "sync",
		fsguard.OpRename: "rename", fsguard.OpMove: "rename", fsguard.OpMoveNew: "rename without replacing", fsguard.OpLink: "link",
		fsguard.OpRemove: "remove", fsguard.OpRemoveDir: "remove",
	}[op.Op]
	if !known {
		verb = string(op.Op)
	}
	at := called(op.Path)
	switch {
	case op.From == "" && op.Path == ".":
		// A wrapper does not tell which of the two directories it was.
		if anyOf(r.ops[:k], fails) || r.before.failed != "" {
			at = "queue or failed directory"
		}
	case fails(op):
		return verb + " claimed name to failed name"
	case op.From != "":
		return verb + " " + called(op.From) + " to " + at
	}
	return verb + " " + at
}

// fails reports whether an operation gives a claim its failed name.
func fails(op seenOp) bool {
	n := namesOf(crashID)
	return op.From == n.processing && op.Path == n.failed()
}

// called reduces a path below an opened directory to its kind.
func called(at string) string {
	n := namesOf(crashID)
	switch name := path.Base(at); {
	case at == ".":
		return "queue"
	case at == retirementsDir:
		return retirementsDir
	case path.Dir(at) == retirementsDir:
		return "record"
	case name == retiredEntry:
		return "record's entry"
	case at == n.pending:
		return "pending name"
	case at == n.processing:
		return "claimed name"
	case at == n.delivered:
		return "marker"
	case isLock(name):
		return "transfer lock"
	case isTemp(name):
		return "temp"
	}
	if strings.HasPrefix(at, bystander+".") || at == namesOf(bystander).lock {
		return "another entry's " + strings.TrimPrefix(at, bystander+".")
	}
	return "directory " + at
}
