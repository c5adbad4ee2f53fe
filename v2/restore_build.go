//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"example.com/holdfast/internal/fsguard"
)

// A restoring is a store in the making, of a copy.
type restoring struct {
	s     *Store
	from  source
	space fsguard.Dir // under its name for the time being
	fileBatch

	old       *state // as it was copied; its runs are read where they were put
	text      []byte // of it
	wanted    map[string]wantedFile
	unpacking *unpacking // nil until the first object comes
	runs      int        // of wanted, still to come
	arrived   []manifestFact
	report    Report // of the copy

	st  *state // the new one
	out Restored
}

// A wantedFile is what the copied state says of a file: of a run, or of the messages that
// lie in an object, in their order.
type wantedFile struct {
	run   *sealedObject
	parts []part
}

// newRestoring makes the namespace, as Create does, but for the state and what goes by its
// size.
func (s *Store) newRestoring(root fsguard.Dir, from source) (*restoring, error) {
	x := &restoring{s: s, from: from, fileBatch: fileBatch{fs: s.fs}}
	if err := x.begin(root); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

func (x *restoring) begin(root fsguard.Dir) error {
	err := root.Mkdir(restoringDir)
	if err != nil {
		return err
	}
	if x.space, err = openDir(root, restoringDir); err != nil {
		return err
	}
	for _, name := range []string{objectsDir, holdersDir} {
		if err := x.space.Mkdir(name); err != nil {
			return err
		}
	}
	err = makeFile(x.space, lockFile, func(f fsguard.File) error {
		_, err := f.WriteAt([]byte(blankRecord), 0)
		return err
	})
	if err != nil {
		return err
	}
	x.objects, err = openDir(x.space, objectsDir)
	return err
}

func (x *restoring) close() {
	x.fileBatch.close()
	for _, d := range []fsguard.Dir{x.objects, x.space} {
		if d != nil {
			_ = d.Close() // synced before, or given up
		}
	}
}

// takeAll takes every file of the copy, and the manifest behind them.
func (x *restoring) takeAll(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		path, err := x.from.next()
		switch {
		case err == io.EOF:
			return &BackupError{Entry: manifestFile, Reason: "is missing: the copy is cut off, or was not finished"}
		case err != nil:
			return err
		case path != manifestFile:
			if err := x.take(path); err != nil {
				return err
			}
			continue
		}
		text, err := readWhole(x.from, path, mostManifest(len(x.arrived)))
		if err != nil {
			return err
		}
		if err := x.finish(text); err != nil {
			return err
		}
		if path, err = x.from.next(); err != io.EOF {
			if err == nil {
				err = &BackupError{Entry: path, Reason: "stands behind the manifest"}
			}
			return err
		}
		return x.sync()
	}
}

// take takes one file, if it is one that may come now.
func (x *restoring) take(path string) error {
	if path == stateFile && x.old == nil {
		text, err := readWhole(x.from, path, x.s.mostText())
		if err != nil {
			return err
		}
		x.arrived = append(x.arrived, factOf(path, text))
		return x.state(text)
	}
	want, ok := x.wanted[path]
	if !ok {
		return &BackupError{Entry: path, Reason: x.unwanted(path)}
	}
	delete(x.wanted, path)
	if want.run == nil {
		return x.unpack(path, want.parts)
	}
	text, err := readWhole(x.from, path, want.run.size)
	if err != nil {
		return err
	}
	if int64(len(text)) != want.run.size || checksum(text) != want.run.sum {
		return &BackupError{Entry: path, Reason: "its length or its checksum is not what " + stateFile + " says"}
	}
	if err := x.write(newObject(want.run.name, runFile, text)); err != nil {
		return err
	}
	x.arrived = append(x.arrived, factOf(path, text))
	if x.runs--; x.runs > 0 {
		return nil
	}
	return x.survey()
}

// unwanted says why a file may not come.
func (x *restoring) unwanted(path string) string {
	object, _, ok := splitObject(path)
	switch {
	case slices.ContainsFunc(x.arrived, func(f manifestFact) bool { return f.Path == path }):
		return "comes twice"
	case x.old == nil:
		return "comes before " + stateFile
	case x.runs > 0 && ok:
		return "comes before the runs, or nothing names object " + object.String()
	}
	return "is nothing that " + stateFile + " names"
}

// state takes the copied state, and with it what is to come next.
func (x *restoring) state(text []byte) error {
	sc := newScanner(text)
	o := sc.open(stateFields)
	h := sc.head(&o)
	if sc.err != nil {
		return badState(sc.corrupt(stateFile))
	}
	st, err := decodeState(text, stateFile, h.store)
	if err != nil {
		return badState(err)
	}
	st.reader = newRunFiles(func() fsguard.Dir { return x.objects })
	x.old, x.text = st, text
	x.wanted = map[string]wantedFile{}
	for _, o := range st.sealed() {
		x.wanted[runPath(o.name)] = wantedFile{run: o}
		x.runs++
	}
	if x.runs > 0 {
		return nil
	}
	return x.survey()
}

func badState(err error) error {
	return &BackupError{Entry: stateFile, Reason: err.Error(), Err: err}
}

func badFault(f *Fault) error {
	return &BackupError{Entry: f.where(), Reason: f.Reason, Err: &CorruptError{File: f.File, Offset: -1, Reason: f.Reason}}
}

// survey finds out, when all runs are there, which objects are to come.
func (x *restoring) survey() error {
	h := &held{st: x.old, objects: x.objects, now: x.s.clock.Now(), settled: true}
	i := &inspection{held: h, named: map[token]bool{}}
	if err := i.gather(); err != nil {
		return err
	}
	if len(i.report.Faults) > 0 {
		return badFault(&i.report.Faults[0])
	}
	x.report = i.report
	space, err := x.space.Space()
	if err != nil {
		return err
	}
	var all uint64
	for parts := range byObject(i.parts) {
		last := parts[len(parts)-1]
		path, end := payloadPath(last.object), uint64(last.off+last.size)
		if all += end; end > space.Free || all > space.Free {
			return fmt.Errorf("%s of the copy takes %d bytes, the disk has %d left: %w", path, end, space.Free-(all-end), unix.ENOSPC)
		}
		x.wanted[path] = wantedFile{parts: parts}
	}
	return nil
}

// finish holds the manifest against what has come.
func (x *restoring) finish(text []byte) error {
	m, err := decodeManifest(text)
	if err != nil {
		return err
	}
	if x.old == nil {
		return &BackupError{Entry: stateFile, Reason: "is missing"}
	}
	for path := range x.wanted {
		return &BackupError{Entry: path, Reason: "is missing"}
	}
	for i, got := range x.arrived {
		switch {
		case i >= len(m.Files) || m.Files[i].Path != got.Path:
			return &BackupError{Entry: got.Path, Reason: "is not what the manifest names there"}
		case m.Files[i] != got:
			return &BackupError{Entry: got.Path, Reason: "was changed: its length or its SHA-256 is not what the manifest says"}
		}
	}
	if len(m.Files) > len(x.arrived) {
		return &BackupError{Entry: m.Files[len(x.arrived)].Path, Reason: "is missing"}
	}
	want := newManifest(x.old, instant{Wall: m.Taken}, x.report)
	if want.Files = m.Files; string(want.encode()) != string(text) {
		return &BackupError{Entry: manifestFile, Reason: "tells of another state than that of the copy"}
	}
	return nil
}

// found makes what the new state needs beside the objects, and the state itself last.
func (x *restoring) found() error {
	exchange, err := x.s.proveExchange(x.space)
	if err != nil {
		return err
	}
	var store, commit token
	for _, t := range []*token{&store, &commit} {
		if *t, err = newToken(x.s.rand); err != nil {
			return err
		}
	}
	x.st, x.out.Returned = x.old.restored(store, commit, exchange)
	if err := x.st.representable(); err != nil {
		return err
	}
	size := int64(len(x.text)) + recoveryRoom + (&draft{st: x.st}).owed()
	reserve := int64(minReserve)
	for reserve < size {
		reserve *= 2
	}
	err = makeFile(x.space, reserveFile, func(f fsguard.File) error { return f.Allocate(reserve) })
	if err != nil {
		return err
	}
	if err := x.objects.Sync(); err != nil {
		return err
	}
	return x.s.found(x.space, x.st)
}

// verify reads the new store from the disk, all of it, before it is called one.
func (x *restoring) verify(ctx context.Context, o VerifyOptions) error {
	p := &pins{space: x.space, objects: x.objects}
	var err error
	if p.format, err = openFile(x.space.Open, formatFile); err != nil {
		return err
	}
	defer p.format.Close() // only read
	if p.lock, err = openFile(x.space.Open, lockFile); err != nil {
		return err
	}
	defer p.lock.Close() // only read
	file, err := openState(p)
	if err != nil {
		return err
	}
	c := &cachedState{file: file}
	err = x.s.readState(p, c)
	c.close()
	if err != nil {
		return err
	}
	h := &held{objects: x.objects, now: x.s.clock.Now(), settled: true}
	h.st = h.reading(c.st)
	i := &inspection{held: h, named: map[token]bool{}}
	if err := i.look(p, h.st); err != nil {
		return err
	}
	if err := i.finish(ctx, o); err != nil {
		return err
	}
	r := &i.report
	if len(r.Faults) > 0 {
		return badFault(&r.Faults[0])
	}
	if c.st.store != x.st.store || c.st.commit != x.st.commit || r.Processing != 0 || r.Orphans != 0 ||
		r.Messages != x.report.Messages || r.Failed != x.report.Failed || !sameCounts(x.old, c.st, x.out.Returned) {
		return errors.New("what was restored is not what was copied: a fault of this program")
	}
	x.out = Restored{
		Store: r.Store, Revision: r.Revision, CopyOf: x.old.store.String(), CopyRevision: x.old.revision,
		Messages: r.Messages, Failed: r.Failed, Returned: x.out.Returned, OpenImports: r.OpenImports,
		Objects: r.Objects, PayloadBytes: r.PayloadBytes,
	}
	return nil
}
