//go:build unix

package holdfast

import "example.com/holdfast/internal/fsguard"

// orphan removes an object that nothing refers to: its file, then its directory. An object
// is a directory with a payload, a run, or nothing, where a removal or a making was cut
// off. Everything else stays. It is looked at and removed through its own descriptor, so
// that what a path means by then does not matter.
func (c *collection) orphan(p *pins, t token) error {
	if x := c.s.pool.ready; x != nil && x.name == t { // commits of ours will write into it
		return c.keep(KeptAhead, objectPath(t), nil)
	}
	name := t.String()
	d, err := p.objects.OpenDir(name)
	switch {
	case gone(err):
		return nil
	case otherKind(err):
		return c.keep(KeptKind, objectPath(t), nil)
	case err != nil:
		return c.keep(KeptUnreadable, objectPath(t), err)
	}
	defer d.Close() // only passed through
	files, size, err := objectFiles(d)
	switch {
	case otherKind(err):
		return c.keep(KeptKind, objectPath(t), nil)
	case err != nil:
		return c.keep(KeptUnreadable, objectPath(t), err)
	}
	if !c.o.DryRun {
		for _, file := range files {
			if err := d.Remove(file); err != nil && !gone(err) {
				return c.keep(KeptRefused, objectPath(t), err)
			}
		}
		if err := p.objects.RemoveDir(name); err != nil && !gone(err) {
			return c.keep(KeptRefused, objectPath(t), err)
		}
	}
	c.report.Objects++
	c.report.Bytes += size
	return nil
}

// objectFiles gives the files of an object, which are what an object has and nothing else.
func objectFiles(d fsguard.Dir) (names []string, size int64, err error) {
	names, err = d.ReadDir()
	if err != nil {
		return nil, 0, err
	}
	for _, name := range names {
		if name != payloadFile && name != runFile {
			return nil, 0, fsguard.ErrNotPlain
		}
		info, err := d.Lstat(name)
		if err != nil {
			return nil, 0, err
		}
		if !info.Plain() {
			return nil, 0, fsguard.ErrNotPlain
		}
		size += info.Size
	}
	return names, size, nil
}

// temp removes what a writer left that was cut off. Under the lock no writer is at work.
func (c *collection) temp(p *pins, name string) error {
	info, err := p.space.Lstat(name)
	switch {
	case gone(err):
		return nil
	case err != nil:
		return c.keep(KeptUnreadable, name, err)
	case !info.Plain():
		return c.keep(KeptTemp, name, nil)
	}
	if !c.o.DryRun {
		if err := p.space.Remove(name); err != nil && !gone(err) {
			return c.keep(KeptRefused, name, err)
		}
	}
	c.report.Temps++
	c.report.TempBytes += info.Size
	return nil
}

func objectPath(t token) string { return objectsDir + "/" + t.String() }
