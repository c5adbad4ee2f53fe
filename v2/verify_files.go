//go:build unix

package holdfast

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"example.com/holdfast/internal/fsguard"
)

// verifyNamespace looks at every name beside the objects.
func verifyNamespace(p *pins, st *state, report *Report) error {
	names, err := p.space.ReadDir()
	if err != nil {
		return err
	}
	for _, name := range names {
		info, err := p.space.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a look without the lock can see a temp go
		}
		if err != nil {
			return err
		}
		switch spare := isSpare(name); {
		case spare && !st.exchange:
			report.fault("file", name, "is not the store's")
			continue
		case spare && !info.Plain():
			report.fault("file", name, "is not a plain file with one link")
			continue
		case spare:
			continue
		}
		switch name {
		case objectsDir, holdersDir:
			if !info.Mode.IsDir() {
				report.fault("file", name, "is not a directory")
			}
		case formatFile, stateFile, reserveFile:
			if !info.Plain() {
				report.fault("file", name, "is not a plain file with one link")
			}
		case lockFile:
			var buf [recordSize + 1]byte // what is there is read: a size may be said wrong
			n, err := readFull(p.lock, buf[:], 0)
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			if !info.Plain() || n != recordSize {
				report.fault("lock", name, fmt.Sprintf("is not a plain file of %d bytes", recordSize))
			}
		default:
			if isTemp(name) {
				report.Temps++
				report.TempBytes += info.Size
			} else {
				report.fault("file", name, "is not the store's")
			}
		}
	}
	return nil
}

// mostOrphaned is how many orphans a report names.
const mostOrphaned = 100

// weighOrphans tells what was listed and is not named. What has gone since was dropped by
// the commit that had made it, and is not counted: collections wait.
func (x *inspection) weighOrphans() error {
	r := &x.report
	if x.damaged {
		r.Orphans, r.OrphanBytes = -1, -1 // what a damaged run names is not known
		return nil
	}
	for _, name := range x.listed {
		if tok, ok := parseToken(name); ok && x.named[tok] {
			continue
		}
		info, err := x.objects.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		size, err := orphanBytes(x.objects, name)
		if err != nil {
			return err
		}
		r.Orphans++
		r.OrphanBytes += size
		r.Orphaned = append(r.Orphaned, Orphan{name, size, time.Unix(0, info.MtimeNanos).UTC()})
	}
	slices.SortFunc(r.Orphaned, func(a, b Orphan) int { return cmp.Or(a.Modified.Compare(b.Modified), cmp.Compare(a.Object, b.Object)) })
	r.Orphaned = slices.Clip(r.Orphaned[:min(len(r.Orphaned), mostOrphaned)])
	return nil
}

// objectsOf gives every object that something refers to, runs included.
func objectsOf(st *state) (map[token]bool, error) {
	named := map[token]bool{}
	for _, q := range st.queues {
		for _, r := range q.runs {
			named[r.name] = true
		}
	}
	for _, f := range st.failed {
		for _, r := range f.runs {
			named[r.name] = true
		}
	}
	err := st.refs(func(_, _ string, r *ref) bool {
		named[r.object] = true
		return true
	})
	return named, err
}

// orphans counts the objects that nothing refers to, and their bytes.
func orphans(p *pins, st *state) (count, bytes int64, err error) {
	names, err := p.objects.ReadDir()
	if err != nil {
		return 0, 0, err
	}
	named, err := objectsOf(st)
	if err != nil {
		return 0, 0, err
	}
	for _, name := range names {
		if tok, ok := parseToken(name); ok && named[tok] {
			continue
		}
		count++
		size, err := orphanBytes(p.objects, name)
		if err != nil {
			return 0, 0, err
		}
		bytes += size
	}
	return count, bytes, nil
}

func orphanBytes(objects fsguard.Dir, name string) (size int64, err error) {
	d, err := objects.OpenDir(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fsguard.ErrNotPlain) || errors.Is(err, fsguard.ErrSymlink) {
		return 0, nil // gone, or nothing that the store made: counted, not weighed
	}
	if err != nil {
		return 0, err
	}
	defer d.Close()
	for _, file := range []string{payloadFile, runFile} {
		info, err := d.Lstat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			size += info.Size
		}
		if err != nil {
			return 0, err
		}
	}
	return size, nil
}
