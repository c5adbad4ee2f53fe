//go:build unix

package holdfast

import "example.com/holdfast/internal/fsguard"

// records looks into every retirement record.
func records(q fsguard.Dir) ([]Record, error) {
	root, err := openIn(q, retirementsDir)
	if root == nil || err != nil {
		return nil, err
	}
	defer root.Close()
	listed, err := root.ReadDir()
	if err != nil {
		return nil, err
	}
	var out []Record
	for _, name := range listed {
		r := Record{File: retirementsDir + "/" + name}
		id, ok := cutID(name, pendingSuffix)
		if !ok {
			r.Why = "its name is no entry's"
		} else {
			r.ID = id
			if r.Why, err = doubt(q, root, namesOf(id)); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
	}
	return out, nil
}

// doubt says why the record of n cannot be finished without a guess; empty: it can.
func doubt(q, root fsguard.Dir, n names) (string, error) {
	info, there, err := lstat(root, n.pending)
	switch {
	case err != nil || !there:
		return "", err
	case !info.Mode.IsDir():
		return "it is no directory", nil
	}
	record, err := openIn(root, n.pending)
	if record == nil || err != nil {
		return "", err
	}
	defer record.Close()
	inside, err := record.ReadDir()
	switch {
	case err != nil || len(inside) == 0:
		return "", err
	case len(inside) != 1 || inside[0] != retiredEntry:
		return "it holds something else than one entry", nil
	}
	for _, file := range []struct {
		dir       fsguard.Dir
		name, why string
	}{{record, retiredEntry, "its entry is not a plain file"}, {q, n.processing, "it stands beside no claim"}} {
		info, there, err := lstat(file.dir, file.name)
		if err != nil {
			return "", err
		}
		if !there || !info.Mode.IsRegular() {
			return file.why, nil
		}
	}
	return "", nil
}
