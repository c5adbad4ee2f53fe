//go:build unix

package holdfast

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// An error of the system tells of which directory it is; one of this package is as it was.
func TestSourceErrorsNameTheDirectory(t *testing.T) {
	d := newUnitDirs(t)
	loop := filepath.Join(filepath.Dir(d.queue), "loop")
	unitOK(t, os.Symlink("loop", loop), os.Mkdir(d.at(markerFile), 0o700), os.Mkdir(filepath.Join(d.failed, markerFile), 0o700))
	x := d.openSource(t, Options{})
	open := func(dir, failed string) error {
		x, err := OpenSource(dir, &Options{FailedDir: failed})
		if err == nil {
			err = x.Close()
		}
		return err
	}
	for _, try := range []struct {
		name string
		err  error
		dir  string // empty: no SourceError
	}{
		{"open", open(loop, d.failed), loop},
		{"open without a failed directory", open(loop, ""), loop},
		{"open the failed one", open(d.queue, loop), loop},
		{"a marker in the way", x.SetMarker([]byte("1")), d.queue},
		{"a failed marker in the way", x.SetFailedMarker([]byte("1")), d.failed},
		{"a marker that is a directory", x.RemoveMarker(), d.queue},
		{"a failed one", x.RemoveFailedMarker(), d.failed},
		{"no directory", open(d.queue+"x", ""), ""},
		{"a symlink in place of the marker", func() error { _, _, err := x.Marker(); return err }(), ""},
	} {
		var source *SourceError
		var errno syscall.Errno
		switch tagged := errors.As(try.err, &source); {
		case try.err == nil || tagged != (try.dir != ""):
			t.Errorf("%s: %v, named %v", try.name, try.err, tagged)
		case tagged && (source.Dir != try.dir || !errors.As(try.err, &errno) || !strings.HasPrefix(try.err.Error(), try.dir+": ")):
			t.Errorf("%s: %v of %s, want %s", try.name, try.err, source.Dir, try.dir)
		}
	}
}

// An ID that the npm package writes and this package has no names for is an entry, that
// nobody takes for a stray.
func TestSourceSurveyOfLongIDs(t *testing.T) {
	d := newUnitDirs(t)
	most := strings.Repeat("m", maxIDBytes)
	for id, entry := range map[string]bool{
		most: true, most + "x": true, most + "x.y-_Z": true, "CON." + most: false, "." + most: false, most + " ": false, most + "ä": false,
	} {
		for _, dir := range []string{d.queue, d.failed} {
			unitPut(t, filepath.Join(dir, id+pendingSuffix), "1")
		}
		x := d.openSource(t, Options{})
		v, err := x.Survey()
		unitOK(t, err)
		if got, left := len(v.Entries), len(v.Strays); entry != (got == 2 && left == 0) || !entry != (got == 0 && left == 2) {
			t.Errorf("%s: %d entries, %d strays", id[max(0, len(id)-8):], got, left)
		}
		for _, e := range v.Entries {
			if e.ID != id || !e.Plain || e.Size != 1 {
				t.Errorf("got %+v", e)
			}
			if _, err := x.Read(e); (err == nil) != (len(id) <= maxIDBytes) {
				t.Errorf("read one of %d bytes: %v", len(id), err)
			}
		}
		if got := LooksLikeQueue([]string{id + pendingSuffix}); got != entry {
			t.Errorf("looks like a queue: %v", got)
		}
		for _, dir := range []string{d.queue, d.failed} {
			unitOK(t, os.Remove(filepath.Join(dir, id+pendingSuffix)))
		}
	}
}
