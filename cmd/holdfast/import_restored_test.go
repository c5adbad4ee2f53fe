//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	v1 "example.com/holdfast/v1"
)

// importBack puts the copy of a store back in its place.
func importBack(t *testing.T, copied, dir string) {
	t.Helper()
	for _, err := range []error{os.RemoveAll(dir), os.Rename(copied, dir), os.Chmod(dir, 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A store that was put back from an older copy leads out, step by step, by the commands
// that it names.
func TestImportIntoARestoredStore(t *testing.T) {
	for _, open := range []bool{false, true} {
		t.Run(fmt.Sprintf("open %v", open), func(t *testing.T) {
			s := newStore(t)
			from, failed := importDirs(t, map[string]string{"q/a.json": "1", "f/b.json": "2"})
			args := []string{"import-v1", "--from", from, "--failed", failed, "--queue", "mail", stopped}
			if open {
				s.importCut("importing: ", args...)
			}
			copied := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(copied, os.DirFS(s.dir)); err != nil {
				t.Fatal(err)
			}
			s.must(args...)
			importBack(t, copied, s.dir)

			calls := [][]string{
				args, {"import-v1", "--from", from, "--queue", "news", stopped}, {"import-v1", "--from", from, "--queue", "mail", "--dry-run"},
				{"import-v1", "--from", from, "--queue", "mail", "--abandon"}, {"import-v1", "--from", from, "--queue", "mail", "--remove-source", "--yes"},
			}
			abandon := "holdfast import-v1 --queue mail --abandon --dir " + s.dir
			remove := "rm " + from + "/.holdfast-import " + failed + "/.holdfast-import"
			if open {
				for _, call := range calls {
					s.importNext("was the store put back from an older copy?; if it was: take back what is open there, then run this again; run: "+abandon, exitRefused, call...)
				}
				if got := (&session{t: t}).must(strings.Fields(abandon)[1:]...); strings.Contains(got, "a later import of it goes on") || !strings.Contains(got, "closed ones are refused") {
					t.Errorf("taken back: %q", got)
				}
			}
			for _, call := range calls {
				s.importNext("was the store put back from an older copy?; if it was: nothing of it is in the store; remove the markers, then import again: what had been done already comes again; run: "+remove,
					exitRefused, call...)
			}
			s.refused(exitRefused, "not_closed", args...)
			if out, err := exec.Command("sh", "-c", remove).CombinedOutput(); err != nil {
				t.Fatalf("%s: %s", err, out)
			}
			if got := s.must(args...); !strings.HasPrefix(got, "imported 2 messages into mail: ") {
				t.Errorf("again: %q", got)
			}
		})
	}
}

// When the failed directory was deleted meanwhile the old files go all the same, and that
// is said.
func TestImportRemovesWithoutTheFailedDirectory(t *testing.T) {
	s := newStore(t)
	from, failed := importDirs(t, map[string]string{"q/a.json": "1", "f/b.json": "2"})
	s.must("import-v1", "--from", from, "--failed", failed, "--queue", "mail", stopped)
	if err := os.RemoveAll(failed); err != nil {
		t.Fatal(err)
	}
	remove := []string{"import-v1", "--from", from, "--queue", "mail", "--remove-source", "--yes"}
	want := "removed 1 file that had been imported into mail; 1 were gone before\n" +
		"the failed directory " + failed + " is not there: nothing was to be removed in it; if it was moved, name it (--failed)\n"
	if got := s.must(remove...); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := importFiles(t, from); got != ".holdfast-import" {
		t.Errorf("left %q", got)
	}
	if l := decode[removalLine](t, s.must(append(remove, "--json")...)); l.FailedGone != failed || l.Gone != 2 {
		t.Errorf("%+v", l)
	}
}

// What the system says about a v1 directory is not told of the store.
func TestImportBlamesTheDirectory(t *testing.T) {
	s := newStore(t)
	from, _ := importDirs(t, map[string]string{"q/a.json": "1"})
	loop := filepath.Join(filepath.Dir(from), "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--from", loop}, {"--from", from, "--failed", loop}} {
		got := s.importNext("; run: df "+loop, exitIO, append([]string{"import-v1", "--queue", "mail", stopped}, flags...)...)
		if !strings.HasPrefix(got.err, "holdfast: "+loop+": ") || strings.Contains(got.err, s.dir) {
			t.Errorf("%q", got.err)
		}
	}

	c := &importCall{from: "/q", failed: "/f", queue: "mail", fenced: true, claimBy: "rename"}
	for errno, want := range map[syscall.Errno]string{
		syscall.EACCES: "holdfast: /f: open a.json: permission denied; run: ls -la /f\n",
		syscall.EPERM:  "holdfast: /f: open a.json: operation not permitted; run: ls -la /f\n",
		syscall.EROFS:  "holdfast: /f: open a.json: read-only file system; run: df /f\n",
		syscall.ENOSPC: "holdfast: /f: open a.json: no space left on device; run: df /f\n",
	} {
		var errs strings.Builder
		a := newApp(strings.NewReader(""), io.Discard, &errs)
		a.dir, a.command = "/s", "holdfast import-v1"
		a.report(a.aboutImport(c, &v1.SourceError{Dir: "/f", Err: &os.PathError{Op: "open", Path: "a.json", Err: errno}}))
		if errs.String() != want || a.worst != exitIO {
			t.Errorf("got %q, exit %d; want %q", errs.String(), a.worst, want)
		}
	}
}
