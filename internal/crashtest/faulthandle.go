//go:build unix

package crashtest

import (
	"path"

	"example.com/holdfast/internal/fsguard"
)

// A handle is an open description: what a wrapped Dir and File have in common.
type handle struct {
	w       *Wrapper
	inner   description
	path    string
	closed  bool // under w.mu, like unsound
	unsound bool // a sync failed: none may follow
}

// description is what fsguard.Dir and fsguard.File share.
type description interface {
	fsguard.Locker
	fsguard.Syncer
	Name() string
	Info() (fsguard.Info, error)
	Close() error
}

func (w *Wrapper) handle(inner description, path string) *handle {
	h := &handle{w: w, inner: inner, path: path}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[h] = true
	return h
}

func (h *handle) Name() string { return h.inner.Name() }

// run passes on an operation on h itself.
func (h *handle) run(op fsguard.Op, do func() error) error {
	return h.w.run(call{op: op, on: h, name: h.Name(), path: h.path, do: do})
}

// at passes on an operation on a name in directory h.
func (h *handle) at(op fsguard.Op, name string, do func() error) error {
	return h.w.run(h.call(op, name, do))
}

func (h *handle) call(op fsguard.Op, name string, do func() error) call {
	return call{op: op, on: h, name: name, path: path.Join(h.path, name), do: do}
}

func (h *handle) Info() (info fsguard.Info, err error) {
	err = h.run(fsguard.OpInfo, func() (err error) {
		info, err = h.inner.Info()
		return err
	})
	return info, err
}

func (h *handle) Lock(mode fsguard.LockMode) error {
	return h.run(fsguard.OpLock, func() error { return h.inner.Lock(mode) })
}

func (h *handle) TryLock(mode fsguard.LockMode) (ok bool, err error) {
	err = h.run(fsguard.OpLock, func() (err error) {
		ok, err = h.inner.TryLock(mode)
		return err
	})
	return ok && err == nil, err
}

func (h *handle) Unlock() error { return h.run(fsguard.OpUnlock, h.inner.Unlock) }
func (h *handle) Close() error  { return h.run(fsguard.OpClose, h.inner.Close) }

// failSync lets a simulated disk know that a sync fails here.
func (h *handle) failSync() {
	if f, ok := h.inner.(interface{ failSync() }); ok {
		f.failSync()
	}
}
