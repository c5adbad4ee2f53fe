//go:build unix

package holdfast

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The same of a directory: what is not a plain file of one link is not read.
func TestRestoreRefusesADirectory(t *testing.T) {
	t.Parallel()
	s, _, _ := backupScene(t, nil)
	copied := filepath.Join(t.TempDir(), "copy")
	mustDo(t, second(s.Backup(t.Context(), copied, BackupOptions{})))
	m, err := decodeManifest(mustRead(t, filepath.Join(copied, manifestFile)))
	mustDo(t, err)
	object := m.Files[len(m.Files)-1].Path
	for _, c := range []struct {
		name, path string
		spoil      func(t *testing.T, path string)
		ok         bool
	}{
		{name: "no manifest", path: manifestFile, spoil: func(t *testing.T, path string) { mustDo(t, os.Remove(path)) }},
		{name: "a manifest cut", path: manifestFile, spoil: func(t *testing.T, path string) { mustDo(t, os.Truncate(path, 100)) }},
		{name: "no state", path: stateFile, spoil: func(t *testing.T, path string) { mustDo(t, os.Remove(path)) }},
		{name: "an object gone", path: object, spoil: func(t *testing.T, path string) { mustDo(t, os.RemoveAll(filepath.Dir(path))) }},
		{name: "an object cut", path: object, spoil: func(t *testing.T, path string) { mustDo(t, os.Truncate(path, 1)) }},
		{name: "a symbolic link", path: object, spoil: func(t *testing.T, path string) {
			mustDo(t, os.Rename(path, path+"-real"), os.Symlink(path+"-real", path))
		}},
		{name: "a symbolic link as a directory", path: object, spoil: func(t *testing.T, path string) {
			dir := filepath.Dir(path)
			mustDo(t, os.Rename(dir, dir+"-real"), os.Symlink(dir+"-real", dir))
		}},
		{name: "a directory as a file", path: stateFile, spoil: func(t *testing.T, path string) { mustDo(t, os.Remove(path), os.Mkdir(path, 0o700)) }},
		{name: "files that are nobody's", path: "notes.txt", spoil: func(t *testing.T, path string) { mustDo(t, os.WriteFile(path, nil, 0o600)) }, ok: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := copyStore(t, copied)
			c.spoil(t, filepath.Join(from, filepath.FromSlash(c.path)))
			dir := filepath.Join(t.TempDir(), "store")
			_, err := Restore(t.Context(), from, dir, &Options{clock: s.clock}, RestoreOptions{})
			if c.ok {
				mustDo(t, err)
				return
			}
			refusal(t, "restore", err, ErrBackup, c.path)
			if _, err := os.Lstat(dir); err == nil {
				t.Error("something is left")
			}
		})
	}
}

// What hard-link backup tools do to a store is noticed, and ends when their copy goes; a
// copy that they have linked is refused by name, and restores from one of its own. (This
// makes hard links, which some sandboxes kill for: kept apart by its name.)
func TestBackupByHardLinks_HardLink(t *testing.T) {
	s, dir := newTestStore(t, &Options{prepare: -1})
	mustEnqueue(t, s, "mail", small("a"))
	linked := filepath.Join(t.TempDir(), "linked")
	link := func(from, to string) {
		mustDo(t, os.MkdirAll(filepath.Dir(to), 0o700), os.Link(from, to))
	}
	link(filepath.Join(dir, namespaceDir, stateFile), filepath.Join(linked, stateFile))
	if _, err := s.Enqueue(t.Context(), "mail", small("b")); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), stateFile) {
		t.Errorf("enqueue beside a linked state: %v", err)
	}
	mustDo(t, os.RemoveAll(linked))
	mustEnqueue(t, s, "mail", small("b"))

	copied := filepath.Join(t.TempDir(), "copy")
	mustDo(t, second(s.Backup(t.Context(), copied, BackupOptions{})))
	own := copyStore(t, copied)
	link(filepath.Join(copied, stateFile), filepath.Join(linked, stateFile))
	_, err := Restore(t.Context(), copied, filepath.Join(t.TempDir(), "store"), nil, RestoreOptions{})
	refusal(t, "restore", err, ErrBackup, "cp -r")
	mustDo(t, second(Restore(t.Context(), own, filepath.Join(t.TempDir(), "store"), nil, RestoreOptions{})))
}

// A file of a copied directory that is larger than the disk is not read.
func TestRestoreRefusesMoreThanTheDisk(t *testing.T) {
	t.Parallel()
	s, _ := newTestStore(t, &Options{prepare: -1})
	mustEnqueue(t, s, "mail", small("a"))
	copied := filepath.Join(t.TempDir(), "copy")
	mustDo(t, second(s.Backup(t.Context(), copied, BackupOptions{})))
	text := mustRead(t, filepath.Join(copied, stateFile))
	st, err := decodeState(text, stateFile, s.id)
	mustDo(t, err)
	slot := st.queues[0].slots[0]
	slot.pending.off, slot.enc = 1<<52, nil
	mustDo(t, os.WriteFile(filepath.Join(copied, stateFile), encodeState(nil, st), 0o600))
	_, err = Restore(t.Context(), copied, filepath.Join(t.TempDir(), "store"), nil, RestoreOptions{})
	refusal(t, "restore", err, unix.ENOSPC, payloadPath(slot.pending.object))
}

// The manifest of a directory is read first, and is no longer than the objects there can make it.
func TestRestoreRefusesAManifestWithoutAnEnd(t *testing.T) {
	t.Parallel()
	s, _ := newTestStore(t, &Options{prepare: -1})
	mustEnqueue(t, s, "mail", small("a"))
	copied := filepath.Join(t.TempDir(), "copy")
	mustDo(t, second(s.Backup(t.Context(), copied, BackupOptions{})))
	mustDo(t, os.Truncate(filepath.Join(copied, manifestFile), 1<<30))
	_, err := Restore(t.Context(), copied, filepath.Join(t.TempDir(), "store"), nil, RestoreOptions{})
	refusal(t, "restore", err, ErrBackup, "is longer than")
}
