//go:build unix

package doctor

import (
	"path/filepath"
	"runtime"
	"time"
)

// eventTests try what tells the time and the changes of others, and then a whole store.
var eventTests = []test{
	{Check: Check{
		Name: "watch", Needed: false,
		Tried: "watch a directory (" + watchName() + ") while a file is renamed over another",
		For:   "waking who waits; else a look every second does",
	}, inside: true, run: (*exam).watch},
	{Check: Check{
		Name: "boot_clock", Needed: false,
		Tried: "read the boot id and the clock since boot",
		For:   "leases by the boot clock; else by the wall clock",
	}, run: (*exam).bootClock},
	{Check: Check{
		Name: "store", Needed: true,
		Tried: "make a store; enqueue, claim, ack, fail; verify; open it again",
		For:   "all of the above at once",
	}, inside: true, run: (*exam).store},
}

// watchFor bounds how long an event may be on its way.
const watchFor = 2 * time.Second

func (e *exam) watch() finding {
	for _, name := range []string{"watched", "next"} {
		if _, err := e.make(name); err != nil {
			return refused(err)
		}
	}
	w, err := e.FS.Watch(filepath.Join(e.report.Place, e.name), "watched")
	if err != nil {
		return refused(err)
	}
	defer w.Close() // nothing is lost by its failing
	e.sure = w.Sure()
	if err := e.scratch.Rename("next", "watched"); err != nil {
		return refused(err)
	}
	select {
	case <-w.C():
		if w.Lost() {
			return broken("the watch was lost")
		}
		return works("")
	case <-e.After(watchFor):
		return broken("nothing was told within " + watchFor.String())
	case <-e.ctx.Done():
		return notTried("interrupted")
	}
}

// A Boot is what tells one boot of the system from another.
type Boot struct {
	ID    string // empty: it cannot be read
	Clock bool   // the time since boot can be read, suspend included
}

func (e *exam) bootClock() finding {
	switch b := e.Boot(); {
	case b.ID == "" && !b.Clock:
		return notTried("neither can be read here: setting the clock moves every deadline")
	case b.ID == "":
		return broken("the boot id cannot be read: setting the clock moves every deadline")
	case !b.Clock:
		return broken("the clock cannot be read: setting the clock moves every deadline")
	}
	return works("")
}

func (e *exam) store() finding {
	if err := e.Trial(e.ctx, filepath.Join(e.report.Place, e.name, "store")); err != nil {
		return refused(err)
	}
	return works("")
}

func watchName() string {
	if runtime.GOOS == "linux" || runtime.GOOS == "android" {
		return "inotify"
	}
	return "kqueue"
}
