//go:build unix

package holdfast

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"example.com/holdfast/internal/crashtest"
	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/internal/pages"
)

// What docs/crash-points.md lists is recorded: the operations of each call, in words, with
// what the disk shows to another process after each.

// A diskLook is what another process sees of a store.
type diskLook struct {
	space, format bool
	record        string // of the transfer lock
	state         string
	spares        []string // what they hold
	reserve       bool
	reserveSize   int
	temps         int
	objects       []string
	holders       []string
}

const (
	noRecord        = "none"
	blankOne        = "blank"
	ownerRecord     = "owner"
	uncertainRecord = "uncertain"
)

// lookAtDisk looks without touching anything.
func lookAtDisk(d *crashtest.Disk) (l diskLook) {
	at := func(name string) string { return path.Join(crashDir, namespaceDir, name) }
	read := func(name string) string {
		if !d.Exists(at(name)) {
			return ""
		}
		return string(d.ReadRaw(at(name)))
	}
	l.record = noRecord
	if d.Exists(at(lockFile)) {
		switch owner, blank := decodeRecord([]byte(read(lockFile))); {
		case blank:
			l.record = blankOne
		case owner.Uncertain:
			l.record = uncertainRecord
		default:
			l.record = ownerRecord
		}
	}
	l.space, l.format = d.Exists(at("")), d.Exists(at(formatFile))
	l.state = read(stateFile)
	for n := range uint64(spares) {
		if name := spareName(n); d.Exists(at(name)) {
			l.spares = append(l.spares, read(name))
		}
	}
	l.reserve, l.reserveSize = d.Exists(at(reserveFile)), len(read(reserveFile))
	for _, name := range namesIn(d, at("")) {
		if isTemp(name) {
			l.temps++
		}
	}
	l.objects, l.holders = namesIn(d, at(objectsDir)), namesIn(d, at(holdersDir))
	return l
}

func namesIn(d *crashtest.Disk, dir string) []string {
	if !d.Exists(dir) {
		return nil
	}
	p := d.Process()
	defer p.Kill()
	open, err := p.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	names, err := open.ReadDir()
	if err != nil {
		panic(err)
	}
	return names
}

type (
	seenOp = pages.Seen[diskLook]

	// An opRun is one call under one holding of the transfer lock, or one that creates.
	opRun struct {
		name   string
		kind   opKind
		before diskLook
		ops    []seenOp
	}
)

// An opKind is what a run is where the disk alone does not tell.
type opKind int

const (
	aCall opKind = iota
	anOpening
	aCreation // by Create or ResumeCreate
	aRestoration
	aResolving // of a commit that nobody has settled
	aResolved  // of one that somebody has
)

// An opRecorder records calls on one disk.
type opRecorder struct {
	disk *crashtest.Disk
	w    *crashtest.Wrapper
	fail func(op fsguard.Op, path string) bool
	err  error
}

func recordOn(d *crashtest.Disk) *opRecorder {
	return &opRecorder{disk: d, w: crashtest.Wrap(d.Process(), crashtest.Plan{})}
}

// whole records a call as one run.
func (r *opRecorder) whole(name string, call func()) opRun {
	before := lookAtDisk(r.disk)
	ops := pages.Recorder[diskLook]{W: r.w, Look: func() diskLook { return lookAtDisk(r.disk) }, Fail: r.fail, Err: r.err}.Record(call)
	return opRun{name: name, before: before, ops: ops}
}

// held records a call as so many runs as it takes the lock.
func (r *opRecorder) held(name string, call func()) []opRun {
	all := r.whole(name, call)
	var runs []opRun
	for from := 0; from < len(all.ops); {
		to := from + 1
		for to < len(all.ops) && !(all.ops[to-1].Op == fsguard.OpUnlock && all.ops[to-1].Path == lockPath) {
			to++
		}
		run := opRun{before: all.before, ops: all.ops[from:to]}
		if from > 0 {
			run.before = all.ops[from-1].After
		}
		runs, from = append(runs, run), to
	}
	for i := range runs {
		runs[i].name = name
		if len(runs) > 1 {
			runs[i].name = fmt.Sprintf("%s (%d of %d)", name, i+1, len(runs))
		}
	}
	return runs
}

// listed is a run as the page lists it.
func (r opRun) listed() pages.Run {
	out := pages.Run{Name: r.name}
	before := r.before
	for i := 0; i < len(r.ops); {
		to := i + 1
		for to < len(r.ops) && r.ops[to].Group != 0 && r.ops[to].Group == r.ops[i].Group {
			to++
		}
		var step pages.Step
		if to-i == 1 {
			step.Op = spelled(r.ops[i], before)
		} else {
			var what []string
			for _, op := range r.ops[i:to] {
				what = append(what, called(op.Path))
			}
			step.Op = "sync together: " + strings.Join(what, ", ")
		}
		for k := i; k < to; k++ {
			for _, key := range r.rows(k) {
				if !slices.Contains(step.Rows, key) {
					step.Rows = append(step.Rows, key)
				}
			}
		}
		slices.SortFunc(step.Rows, byKey)
		out.Steps = append(out.Steps, step)
		before, i = r.ops[to-1].After, to
	}
	return out
}

// spelled gives the words for an operation.
func spelled(op seenOp, before diskLook) string {
	words := opVerbs[op.Op] + " " + called(op.Path)
	switch {
	case op.Path == "." && op.Root != crashDir && op.Root != crashRestored:
		words = opVerbs[op.Op] + " parent"
	case op.Path == turnPath && (op.Op == fsguard.OpLock || op.Op == fsguard.OpUnlock):
		words = opVerbs[op.Op] + " turnstile" // which is the format file
	case op.Op == fsguard.OpRename:
		words = opVerbs[op.Op] + " " + called(op.From) + " to " + called(op.Path)
	case op.Op == fsguard.OpExchange:
		words = opVerbs[op.Op] + " " + called(op.From) + " with " + called(op.Path)
	case op.Op == fsguard.OpWrite && op.Path == lockPath:
		words = map[string]string{
			blankOne: "blank the owner record", ownerRecord: "write the owner record", uncertainRecord: "mark the owner record uncertain",
		}[op.After.record]
		if op.After.record == before.record {
			words += " again"
		}
	}
	if op.Err != nil {
		words += ": fails"
	}
	return words
}

// opVerbs are the operations that a store makes; another has no words, which shows.
var opVerbs = map[fsguard.Op]string{
	fsguard.OpMkdir: "make", fsguard.OpCreate: "create", fsguard.OpWriteFile: "write whole", fsguard.OpRename: "rename",
	fsguard.OpRemove: "remove", fsguard.OpRemoveDir: "remove", fsguard.OpSyncDir: "sync", fsguard.OpSync: "sync",
	fsguard.OpExchange: "exchange", fsguard.OpSyncData: "sync data of",
	fsguard.OpWrite: "write", fsguard.OpAllocate: "allocate", fsguard.OpLock: "lock", fsguard.OpUnlock: "unlock",
}

// called reduces a path below an opened directory to its kind.
func called(at string) string {
	dir, name := path.Split(at)
	_, isToken := parseToken(name)
	switch {
	case at == ".":
		return "root"
	case at == path.Base(crashDir), at == path.Base(crashRestored):
		return "root"
	case at == restoringDir:
		return "restoring namespace"
	case at == namespaceDir:
		return "namespace"
	case isToken && path.Base(dir) == objectsDir:
		return "object"
	case isToken && path.Base(dir) == holdersDir:
		return "holder file"
	case isTemp(name) && strings.HasPrefix(name, reserveTempPrefix):
		return "reserve temp"
	case isTemp(name) && strings.HasPrefix(name, "."+formatFile):
		return "format temp"
	case isTemp(name):
		return "state temp"
	case isSpare(name):
		return "spare"
	case name == lockFile:
		return "transfer lock"
	case name == objectsDir, name == holdersDir:
		return name + "/"
	}
	return name
}

// byKey orders the keys of rows: by letter, and then by number.
func byKey(a, b string) int {
	if a[0] != b[0] || len(a) == len(b) {
		return strings.Compare(a, b)
	}
	return len(a) - len(b)
}
