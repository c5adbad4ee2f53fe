//go:build unix

package crashtest

import (
	"path"

	"example.com/holdfast/internal/fsguard"
)

// A faultWatch is a watch under a Wrapper, which counts it among what is open until
// it is closed. What it tells is no operation.
type faultWatch struct {
	fsguard.Watch
	w *Wrapper
	h *handle // for Open and for a second Close
}

// Watch implements fsguard.FS.
func (w *Wrapper) Watch(dir, name string) (fsguard.Watch, error) {
	var watch fsguard.Watch
	c := call{op: fsguard.OpWatch, name: dir, path: path.Join(dir, name)}
	c.do = func() (err error) {
		watch, err = w.inner.Watch(dir, name)
		return err
	}
	c.undo = func() { _ = watch.Close() }
	if err := w.run(c); err != nil {
		return nil, err
	}
	return &faultWatch{watch, w, w.handle(nil, c.path)}, nil
}

func (f *faultWatch) Close() error {
	return f.w.run(call{op: fsguard.OpClose, on: f.h, name: path.Dir(f.h.path), path: f.h.path, do: f.Watch.Close})
}
