//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"example.com/holdfast/internal/fsguard"
)

// A register is a toy protocol with the same bones as the store: a counter in
// /store/state that names an object directory, replaced by temp, sync, rename,
// directory sync. A bug is planted by name; "" is the right one.
type register struct {
	fs    fsguard.FS
	bug   string
	store fsguard.Dir
	value int
}

const base = 5 // the value that the set-up leaves

func state(value int, object string) string {
	return fmt.Sprintf("value=%04d object=%s.\n", value, object)
}

func payload(value int) string { return fmt.Sprintf("payload of %04d", value) }

func setUpRegister(t testing.TB, d *Disk) {
	d.MkdirAll("/store/objects/o5.0")
	d.WriteRaw("/store/objects/o5.0/payload", []byte(payload(base)))
	d.WriteRaw("/store/state", []byte(state(base, "o5.0")))
}

// openRegister takes the lock, reads the register and publishes what it read as
// new, so that what it answers is durable.
func openRegister(fs_ fsguard.FS, bug string) (*register, error) {
	store, err := fs_.OpenRoot("/store")
	if err != nil {
		return nil, err
	}
	r := &register{fs: fs_, bug: bug, store: store}
	if err := store.Lock(fsguard.Exclusive); err != nil {
		return nil, err
	}
	text, err := r.read("state")
	if bug == "error read as not there" && err != nil {
		text, err = state(0, "none"), nil
	}
	if err != nil {
		return nil, err
	}
	var object string
	if r.value, object, err = parseState(text); err != nil {
		return nil, err
	}
	if object != "none" {
		if err := r.checkObject(object); err != nil {
			return nil, err
		}
	}
	switch bug {
	case "visible state trusted":
		return r, nil
	case "visible state only synced":
		return r, store.Sync()
	case "recovery removes first":
		if _, err := store.Lstat("state.tmp"); err == nil {
			if err := store.Remove("state"); err != nil {
				return nil, err
			}
		}
	}
	return r, r.publish(text)
}

func parseState(text string) (value int, object string, err error) {
	text, ok := strings.CutSuffix(text, ".\n")
	if ok {
		_, err = fmt.Sscanf(text, "value=%04d object=%s", &value, &object)
	}
	if !ok || err != nil {
		return 0, "", fmt.Errorf("state is damaged: %q", text)
	}
	return value, object, nil
}

func (r *register) checkObject(name string) error {
	objects, err := r.store.OpenDir("objects")
	if err != nil {
		return err
	}
	defer objects.Close()
	dir, err := objects.OpenDir(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	text, err := (&register{store: dir}).read("payload")
	if err == nil && text != payload(r.value) {
		err = fmt.Errorf("payload is %q", text)
	}
	return err
}

func (r *register) read(name string) (string, error) {
	f, err := r.store.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := fsguard.ReadAll(f, 1000)
	return string(data), err
}

// increment adds one and returns the new value.
func (r *register) increment() (int, error) {
	next := r.value + 1
	object, err := r.writeObject(next)
	if err != nil {
		return 0, err
	}
	if err := r.publish(state(next, object)); err != nil {
		var e *fsguard.Error
		if r.bug == "failed rename taken for none" && errors.As(err, &e) && e.Op == fsguard.OpRename {
			return 0, errors.Join(err, r.removeObject(object))
		}
		return 0, err
	}
	r.value = next
	return next, nil
}

func (r *register) writeObject(value int) (string, error) {
	objects, err := r.store.OpenDir("objects")
	if err != nil {
		return "", err
	}
	defer objects.Close()
	name := ""
	for i := 0; ; i++ {
		name = fmt.Sprintf("o%d.%d", value, i)
		if err = objects.Mkdir(name); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	dir, err := objects.OpenDir(name)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	f, err := dir.Create("payload")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(payload(value)), 0); err != nil {
		return "", err
	}
	var targets []fsguard.Syncer
	if r.bug != "object file not synced" {
		targets = append(targets, f)
	}
	if r.bug != "object directory not synced" {
		targets = append(targets, dir)
	}
	if r.bug != "object edge not synced" {
		targets = append(targets, objects)
	}
	return name, r.fs.SyncAll(targets...)
}

func (r *register) removeObject(name string) error {
	objects, err := r.store.OpenDir("objects")
	if err != nil {
		return err
	}
	defer objects.Close()
	dir, err := objects.OpenDir(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return errors.Join(dir.Remove("payload"), objects.RemoveDir(name))
}

// publish makes the state be text.
func (r *register) publish(text string) error {
	if r.bug == "in place" {
		return r.inPlace(text)
	}
	f, err := r.store.Create("state.tmp")
	if errors.Is(err, fs.ErrExist) { // left by a crash
		if err := r.store.Remove("state.tmp"); err != nil {
			return err
		}
		f, err = r.store.Create("state.tmp")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), 0); err != nil && r.bug != "write error ignored" {
		return err
	}
	if r.bug != "temp not synced" && r.bug != "temp synced after rename" {
		err := f.Sync()
		if err != nil && r.bug == "sync retried" {
			err = f.Sync()
		}
		if err != nil && r.bug != "sync error ignored" {
			return err
		}
	}
	if r.bug == "directory synced before rename" {
		if err := r.store.Sync(); err != nil {
			return err
		}
	}
	if r.bug == "closed too early" {
		defer r.store.Info()
		r.store.Close()
	}
	if err := r.store.Rename("state.tmp", "state"); err != nil {
		return err
	}
	switch r.bug {
	case "directory not synced", "directory synced before rename":
		return nil
	case "temp synced after rename":
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return r.store.Sync()
}

func (r *register) inPlace(text string) error {
	f, err := r.store.OpenWrite("state")
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	return f.Sync()
}

// readerScenario is registerScenario with a Check that changes nothing of its own
// accord after it has answered.
func readerScenario(bug string) Scenario { return scenario(bug, false) }

// registerScenario increments twice. The journal has the values that were
// acknowledged; a begun increment may have added one.
func registerScenario(bug string) Scenario { return scenario(bug, true) }

func scenario(bug string, goOn bool) Scenario {
	increment := func(r *register, j *Journal) (int, error) {
		j.Begin("add", 1)
		if r.bug == "acknowledged before the sync" {
			j.Ack("value", r.value+1)
		}
		v, err := r.increment()
		if err != nil {
			j.Fail("add", err)
			return 0, err
		}
		j.Ack("value", v)
		return v, nil
	}
	return Scenario{
		Name:  "register",
		Setup: setUpRegister,
		Run: func(fs fsguard.FS, j *Journal) {
			r, err := openRegister(fs, bug)
			for i := 0; i < 2 && err == nil; i++ {
				_, err = increment(r, j)
			}
		},
		Check: func(t testing.TB, fs fsguard.FS, j *Journal) error {
			low, high := base, base
			for _, e := range j.Entries() {
				switch e.State {
				case Acked:
					v := e.Value.(int)
					if v < low || v > high {
						return fmt.Errorf("value %d was answered, want %d to %d", v, low, high)
					}
					low, high = v, v
				case Begun:
					high++
				}
			}
			r, err := openRegister(fs, bug)
			if err != nil {
				return err
			}
			if r.value < low || r.value > high {
				return fmt.Errorf("value is %d, want %d to %d", r.value, low, high)
			}
			j.Ack("value", r.value)
			if !goOn {
				return nil
			}
			v, err := increment(r, j)
			if err == nil && v != r.value {
				t.Fatalf("increment answers %d, register holds %d", v, r.value)
			}
			return err
		},
	}
}
