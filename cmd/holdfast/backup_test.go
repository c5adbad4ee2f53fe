//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	holdfast "example.com/holdfast/v2"
)

type restoredLine struct {
	Dir string `json:"dir"`
	holdfast.Restored
}

// A store is copied and restored by the command, as a directory and as a stream, and each
// refusal has its code.
func TestBackupAndRestore(t *testing.T) {
	s := newStore(t)
	s.must("enqueue", "mail", `{"n":1}`, "--id", "a")
	s.must("enqueue", "mail", `{"n":2}`, "--id", "b")
	claimed := decode[claimLine](t, s.must("claim", "mail", "--lease", "none", "--json"))
	dir := t.TempDir()
	copied, tape := filepath.Join(dir, "copy"), filepath.Join(dir, "copy.tar")

	b := decode[holdfast.BackupReport](t, s.must("backup", copied, "--json"))
	if b.Messages != 2 || b.Files != 4 || b.Bytes == 0 {
		t.Errorf("%+v", b)
	}
	if got := s.run("backup", copied); got.code != exitRefused || !strings.Contains(got.err, "give another directory") {
		t.Errorf("again: %+v", got)
	}
	got := s.run("backup", "-", "--json")
	if got.code != 0 || decode[holdfast.BackupReport](t, got.err).Store != b.Store || os.WriteFile(tape, []byte(got.out), 0o600) != nil {
		t.Fatalf("as a stream: %d, %s", got.code, got.err)
	}
	if got := (&session{t: t, dir: s.dir, tty: true}).run("backup", "-"); got.code != exitUsage || got.out != "" {
		t.Errorf("to a terminal: %+v", got)
	}
	s.refused(exitUsage, "invalid", "backup", filepath.Join(s.dir, "copy"))
	if got := s.run("backup", filepath.Join(dir, "no", "copy")); got.code != exitIO || !strings.Contains(got.err, "make the directory that it is to lie in first") {
		t.Errorf("without its parent: %+v", got)
	}
	if got := (&session{t: t, dir: copied}).run("restore", copied); got.code != exitRefused || strings.Contains(got.err, "init") || !strings.Contains(got.err, "another directory") {
		t.Errorf("into the copy: %+v", got)
	}
	s.refused(exitRefused, "exists", "restore", copied)
	if got := s.run("restore", copied); !strings.HasSuffix(got.err, "; give another directory with --dir\n") {
		t.Errorf("over a store: %q", got.err)
	}

	for name, from := range map[string]string{"directory": copied, "file": tape, "stdin": "-"} {
		r := &session{t: t, dir: filepath.Join(dir, "restored-"+name)}
		l := decode[restoredLine](t, r.mustFeed(got.out, "restore", from, "--json"))
		if l.Dir != r.dir || l.CopyOf != b.Store || l.Store == b.Store || l.Returned != 1 || l.Messages != 2 {
			t.Errorf("%s: %+v", name, l)
		}
		r.refused(exitUsage, "invalid_receipt", "ack", claimed.Receipt)
		if c := decode[claimLine](t, r.must("claim", "mail", "--json")); c.ID != claimed.ID || c.Attempt != 2 {
			t.Errorf("%s: claimed %+v", name, c)
		}
		r.must("verify")
	}
	text := (&session{t: t, dir: filepath.Join(dir, "told")}).must("restore", copied)
	if !strings.Contains(text, "restored a store in ") || !strings.Contains(text, "1 message had been claimed and will be delivered again\n") {
		t.Errorf("for people: %q", text)
	}

	fresh := &session{t: t, dir: filepath.Join(dir, "fresh")}
	if err := os.Remove(filepath.Join(copied, "manifest.json")); err != nil {
		t.Fatal(err)
	}
	if l := decode[errorLine](t, fresh.refused(exitRefused, "bad_copy", "restore", copied).err); !strings.Contains(l.Error, "manifest.json") {
		t.Errorf("%+v", l)
	}
	fresh.refused(exitIO, "io", "restore", filepath.Join(dir, "nowhere"))
	if err := os.MkdirAll(filepath.Join(fresh.dir, ".fs-safe-queue-v2.restoring"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"restore", tape}, {"init"}, {"status"}} {
		l := decode[errorLine](t, fresh.refused(exitOperator, "interrupted_restore", args...).err)
		if l.Run != "rm -r "+fresh.dir+"/.fs-safe-queue-v2.restoring" {
			t.Errorf("%q: %+v", args, l)
		}
	}
}

// A damaged payload stops a backup, and the next command is the one that names them all.
func TestBackupOfADamagedStore(t *testing.T) {
	s := &session{t: t, dir: filepath.Join(t.TempDir(), "store")}
	s.must("init")
	s.must("enqueue", "chat", `"whole"`, "--id", "m")
	payloads, err := filepath.Glob(filepath.Join(s.dir, ".fs-safe-queue-v2", "objects", "*", "payload.json"))
	if err != nil || len(payloads) != 1 || os.WriteFile(payloads[0], []byte(`"wh0le"`), 0o600) != nil {
		t.Fatal(payloads, err)
	}
	l := decode[errorLine](t, s.refused(exitRefused, "damaged", "backup", s.dir+"-copy").err)
	if !strings.Contains(l.Error, "chat/m") || l.Run != "holdfast verify --dir "+s.dir {
		t.Errorf("%+v", l)
	}
}

// A shortWriter takes so many bytes, then answers an error.
type shortWriter struct {
	room int
	err  error
}

func (w *shortWriter) Write(b []byte) (int, error) {
	n := min(w.room, len(b))
	if w.room -= n; n < len(b) {
		return n, w.err
	}
	return n, nil
}

// Where the stream of a backup cannot be written, what was written is said to be no copy,
// once, and nothing is said of the store.
func TestBackupToAReaderThatEnds(t *testing.T) {
	s := &session{t: t, dir: filepath.Join(t.TempDir(), "store")}
	s.must("init")
	s.must("enqueue", "mail", `"`+strings.Repeat("x", 200_000)+`"`)
	whole := len(s.must("backup", "-"))
	for _, c := range []struct {
		err   error
		rooms []int
		says  string
	}{
		{syscall.EPIPE, []int{0, 100, whole - 1}, "the program that reads the stream has ended before it: "},
		{syscall.ENOSPC, []int{100}, "standard output could not be written: "},
	} {
		for _, room := range c.rooms {
			for _, json := range []bool{false, true} {
				var out strings.Builder
				args := []string{"backup", "-", "--dir", s.dir}
				if json {
					args = append(args, "--json")
				}
				code := newApp(strings.NewReader(""), &shortWriter{room, c.err}, &out).run(t.Context(), args)
				told := out.String()
				if code != exitIO || strings.Count(told, "\n") != 1 || !strings.Contains(told, c.says+"what it was given is not a whole copy") ||
					!strings.Contains(told, "; back up again, to ") || strings.Contains(told, s.dir) {
					t.Errorf("%v after %d bytes: %d, %s", c.err, room, code, told)
				}
			}
		}
	}
}

// A copy that the disk had no room for leaves a part of one, which the next backup into the
// same directory would be refused for.
func TestBackupWithoutRoomSaysWhatToRemove(t *testing.T) {
	for err, want := range map[syscall.Errno]string{
		syscall.ENOSPC: "no copy: remove it",
		syscall.EDQUOT: "no copy: remove it",
		syscall.EROFS:  "a directory that can be written",
	} {
		if f := factsOf(aboutCopy(err, "copy")); !strings.Contains(f.advice, want) || f.place != "copy" {
			t.Errorf("%v: %q about %q, want %q", err, f.advice, f.place, want)
		}
	}
}
