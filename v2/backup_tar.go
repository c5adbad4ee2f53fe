//go:build unix

package holdfast

import (
	"archive/tar"
	"io"
	"time"
)

// A tarSink writes a copy as a tar stream.
type tarSink struct {
	w     *tar.Writer
	taken time.Time
}

func newTarSink(w io.Writer, taken time.Time) sink {
	return &tarSink{tar.NewWriter(w), taken.UTC().Truncate(time.Second)}
}

func (t *tarSink) put(path string, data []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: path, Size: int64(len(data)), Mode: 0o600, ModTime: t.taken}
	if err := t.w.WriteHeader(h); err != nil {
		return err
	}
	_, err := t.w.Write(data)
	return err
}

func (t *tarSink) seal(manifest []byte) error {
	if err := t.put(manifestFile, manifest); err != nil {
		return err
	}
	return t.w.Close()
}

// close writes nothing: a stream that was given up has no end.
func (t *tarSink) close() {}
