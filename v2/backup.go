//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// BackupOptions shape a Backup.
type BackupOptions struct {
	// Progress is called with bytes, without the lock. It must return soon. Nil: it is not
	// called.
	Progress func(done, total int64)
}

// A BackupReport tells what was copied.
type BackupReport struct {
	Store    string    `json:"store"`
	Revision uint64    `json:"revision"`
	Taken    time.Time `json:"taken"`
	Messages int64     `json:"messages"` // live ones
	Failed   int64     `json:"failed"`
	Files    int64     `json:"files"` // the manifest included
	Bytes    int64     `json:"bytes"` // of these files
}

// Backup writes a copy of the store into dir, which is made if it is missing (its parent is
// not) and must else be empty. It is a copy of one revision, whatever work goes on: the lock
// is held while the state is taken, and then only collections wait. Each payload's
// checksum is looked at on the way. A copy is no store: Restore makes one of it.
//
// On nil the copy is whole and durable, its manifest last. On an error dir may hold a part
// of a copy, without a manifest, which Restore refuses: remove it. Errors: ErrNotEmpty;
// ErrStaleLock, for what an unfinished commit left is not known to last: recover first;
// queue.ErrDamaged, when a payload is damaged, and ErrCorrupt, when a run is: the message or
// the file is named, and Verify tells all of them. A handle that was opened for looking
// serves as well.
func (s *Store) Backup(ctx context.Context, dir string, o BackupOptions) (BackupReport, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return BackupReport{}, err
	}
	if err := s.outside(dir); err != nil {
		return BackupReport{}, err
	}
	return s.backup(ctx, o, func(time.Time) (sink, error) { return newDirSink(s.fs, dir, &s.opts) })
}

// outside refuses a directory, there or to be made, that is the store's own or lies inside of
// it, whatever links lead there: the directories above it are compared one by one.
func (s *Store) outside(dir string) error {
	root, err := s.fs.Stat(s.dir)
	if err != nil {
		return err
	}
	at := dir
	if there, err := s.fs.Stat(at); errors.Is(err, fs.ErrNotExist) || err == nil && !there.Mode.IsDir() {
		at = filepath.Dir(at)
	}
	var below fsguard.Identity
	for {
		is, err := s.fs.Stat(at)
		switch {
		case err != nil:
			return fmt.Errorf("the directory that %s is to lie in: %w", dir, err)
		case is.Identity == root.Identity:
			return fmt.Errorf("%s is the store's own directory, or leads into it: a copy must lie elsewhere: %w", dir, queue.ErrInvalid)
		case is.Identity == below: // nothing is above it
			return nil
		}
		at, below = at+"/..", is.Identity
	}
}

// BackupTar is Backup as a tar stream. Whether what w took is durable is the caller's to
// see to; that it is whole shows in that its manifest comes last.
func (s *Store) BackupTar(ctx context.Context, w io.Writer, o BackupOptions) (BackupReport, error) {
	return s.backup(ctx, o, func(taken time.Time) (sink, error) { return newTarSink(w, taken), nil })
}

// A sink takes the files of a copy.
type sink interface {
	// put takes a file. Its path is state.json, or a file in objects/TOKEN.
	put(path string, data []byte) error

	// seal takes the manifest, when all that it names is there to stay.
	seal(manifest []byte) error

	close()
}

func (s *Store) backup(ctx context.Context, o BackupOptions, open func(taken time.Time) (sink, error)) (BackupReport, error) {
	c := &copying{progress: o.Progress}
	defer func() { c.release() }()
	err := s.submit(ctx, &call{decide: func(v *view) error {
		c.release() // of a commit that was decided before, and is decided anew
		return c.take(v)
	}})
	if err != nil {
		return BackupReport{}, err
	}
	c.sink, err = open(c.now.Wall)
	if err != nil {
		return BackupReport{}, err
	}
	defer c.sink.close()
	if err := c.copy(ctx); err != nil {
		return BackupReport{}, err
	}
	return c.report, nil
}

// A copying is a backup on its way.
type copying struct {
	*held
	sink     sink
	text     []byte // of the state
	manifest manifest
	report   BackupReport

	progress    func(done, total int64)
	done, total int64
}

// take holds the state and takes its text, under the lock: what is encoded there is
// remembered by what the pipeline goes on with.
func (c *copying) take(v *view) (err error) {
	c.held = nil
	if !v.settled {
		return &StaleLockError{Owner: *v.owner}
	}
	if c.held, err = v.hold(); err != nil {
		return err
	}
	c.text = encodeState(nil, v.draft.base)
	return nil
}

// copy copies the state, then its runs, then what these name.
func (c *copying) copy(ctx context.Context) error {
	st, err := decodeState(c.text, stateFile, c.st.store)
	if err != nil {
		return err
	}
	c.st = c.reading(st)
	x, err := c.inventory()
	if err != nil {
		return err
	}
	c.total = int64(len(c.text))
	for _, p := range x.parts {
		c.total += p.size
	}
	runs := c.st.sealed()
	for _, o := range runs {
		c.total += o.size
	}
	c.manifest = newManifest(c.st, c.now, x.report)
	if err := c.put(stateFile, c.text, int64(len(c.text))); err != nil {
		return err
	}
	files := newRunFiles(func() fsguard.Dir { return c.objects })
	for _, o := range runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := files.whole(o)
		if err == nil && (int64(len(text)) != o.size || checksum(text) != o.sum) {
			err = &CorruptError{File: runPath(o.name), Offset: -1, Reason: "changed while it was copied"}
		}
		if err == nil {
			err = c.put(runPath(o.name), text, o.size)
		}
		if err != nil {
			return err
		}
	}
	for parts := range byObject(x.parts) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.object(parts); err != nil {
			return err
		}
	}
	return c.seal()
}

// inventory tells what the state and its runs name. Whatever is wrong with them stops the
// backup.
func (h *held) inventory() (*inspection, error) {
	x := &inspection{held: h, named: map[token]bool{}}
	if err := x.gather(); err != nil {
		return nil, err
	}
	for _, f := range x.report.Faults {
		return nil, &CorruptError{File: f.where(), Offset: -1, Reason: f.Reason}
	}
	return x, nil
}

// sealed gives the runs of the state, in its order.
func (st *state) sealed() (runs []*sealedObject) {
	for _, q := range st.queues {
		for _, r := range q.runs {
			runs = append(runs, &r.sealedObject)
		}
	}
	for _, f := range st.failed {
		for _, r := range f.runs {
			runs = append(runs, &r.sealedObject)
		}
	}
	return runs
}

// byObject gives parts object by object, in the order of their tokens.
func byObject(parts []part) func(yield func([]part) bool) {
	parts = slices.Clone(parts)
	slices.SortFunc(parts, comparePlaces)
	return func(yield func([]part) bool) {
		for len(parts) > 0 {
			n := 1
			for n < len(parts) && parts[n].object == parts[0].object {
				n++
			}
			if !yield(parts[:n]) {
				return
			}
			parts = parts[n:]
		}
	}
}

// object copies of an object what is named of it, and holds each message against its
// checksum. Nothing else that lies in it is copied: it may be of messages that were settled,
// or of a commit to come. One message stands for itself, several are an array; where each
// has its place, the state says.
func (c *copying) object(parts []part) error {
	path := payloadPath(parts[0].object)
	reader := &payloads{objects: c.objects}
	defer reader.close()
	var text []byte
	var size int64
	for i := range parts {
		p := &parts[i]
		payload, why, err := p.read(reader)
		switch {
		case err != nil:
			return err
		case why != "":
			return fmt.Errorf("%s: the payload of %s/%s: %s: %w", path, p.queue, p.id, why, queue.ErrDamaged)
		case len(parts) == 1:
			text = payload
		default:
			text = append(append(text, opening(i)), payload...)
		}
		size += p.size
	}
	if len(parts) > 1 {
		text = append(text, ']')
	}
	return c.put(path, text, size)
}

// opening is what stands before an element of an array.
func opening(i int) byte { return "[,"[min(i, 1)] }

// put gives the sink a file, which counts for so many bytes of progress.
func (c *copying) put(path string, data []byte, counts int64) error {
	if err := c.sink.put(path, data); err != nil {
		return err
	}
	c.manifest.add(path, data)
	c.done += counts
	if c.progress != nil {
		c.progress(c.done, c.total)
	}
	return nil
}

func (c *copying) seal() error {
	text := c.manifest.encode()
	if err := c.sink.seal(text); err != nil {
		return err
	}
	m := &c.manifest
	c.report = BackupReport{
		Store: m.Store, Revision: c.st.revision, Taken: m.Taken, Messages: m.Messages, Failed: m.Failed,
		Files: int64(len(m.Files) + 1), Bytes: int64(len(text)),
	}
	for _, f := range m.Files {
		c.report.Bytes += f.Size
	}
	return nil
}
