//go:build unix

package holdfast

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Nothing is overwritten, and what stood there stands there.
func TestRestoreOverwritesNothing(t *testing.T) {
	t.Parallel()
	good := tape(t, tapedStore(t))
	for _, c := range []struct {
		name  string
		there func(t *testing.T, dir string)
		want  error
		names string
	}{
		{"a store", func(t *testing.T, dir string) {
			s, err := Create(t.Context(), dir, nil)
			mustDo(t, err, s.Close())
		}, ErrExists, "store"},
		{"a file", func(t *testing.T, dir string) {
			mustDo(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600))
		}, ErrNotEmpty, "notes.txt"},
		{"an interrupted restore", func(t *testing.T, dir string) {
			mustDo(t, os.MkdirAll(filepath.Join(dir, restoringDir, objectsDir), 0o700))
		}, ErrInterruptedRestore, "store"},
		{"an interrupted creation", func(t *testing.T, dir string) { mustDo(t, os.Mkdir(filepath.Join(dir, namespaceDir), 0o700)) }, ErrExists, "store"},
		{"a directory that others write", func(t *testing.T, dir string) { mustDo(t, os.Chmod(dir, 0o777)) }, ErrUnsafe, "0777"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			mustDo(t, os.Mkdir(dir, 0o700))
			c.there(t, dir)
			before := treeOf(t, dir)
			_, err := RestoreTar(t.Context(), bytes.NewReader(good), dir, nil, RestoreOptions{})
			refusal(t, "restore", err, c.want, c.names)
			unchanged(t, dir, before)
		})
	}
	// An empty directory of one's own serves.
	dir := t.TempDir()
	mustDo(t, os.Chmod(dir, 0o700), second(RestoreTar(t.Context(), bytes.NewReader(good), dir, nil, RestoreOptions{})))
	mustVerify(t, dir)
}

// While a restore waits for its stream, others wait for it no longer than they want to.
func TestOpenBesideARestore(t *testing.T) {
	t.Parallel()
	good := tape(t, tapedStore(t))
	r, w := io.Pipe()
	dir := filepath.Join(t.TempDir(), "store")
	done := make(chan error, 1)
	go func() { done <- second(RestoreTar(context.Background(), r, dir, nil, RestoreOptions{})) }()
	mustDo(t, second(w.Write(good[:1000])))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for what, err := range map[string]error{
		"open":    second(Open(ctx, dir, nil)),
		"restore": second(RestoreTar(ctx, bytes.NewReader(good), dir, nil, RestoreOptions{})),
	} {
		if want := context.DeadlineExceeded; !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	mustDo(t, second(w.Write(good[1000:])), w.Close(), <-done)
	mustVerify(t, dir)
}
