//go:build unix

package holdfast

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/fsguard"
	"example.com/holdfast/queue"
)

// A watch that was lost is closed and another made before anybody looks; while none
// can be made, the poll goes by the second and tries again every 30.
func TestLostWatch(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
		wait := sc.due(t.Context(), "mail")
		sc.parked(t, wait)
		first, _ := sc.fs.last()
		first.lost.Store(true)
		first.signal()
		sc.parked(t, wait)
		second, n := sc.fs.last()
		if n != 2 || first.closes.Load() != 1 || second.closes.Load() != 0 {
			t.Fatalf("%d watches; the first closed %d times, the second %d", n, first.closes.Load(), second.closes.Load())
		}
		sc.counted(t, "looks", &sc.wake.looks, 2)

		// What nobody told of is found by the poll.
		second.lost.Store(true)
		sc.fs.refuseWith(syscall.EMFILE)
		sc.pass(t, pollBehindEvents, wait)
		sc.counted(t, "polls", &sc.wake.polls, 1)
		sc.counted(t, "looks", &sc.wake.looks, 3)
		if second.closes.Load() != 1 {
			t.Error("the second watch is not closed")
		}
		sc.pass(t, pollBehindEvents-1, wait)
		sc.counted(t, "polls", &sc.wake.polls, 1+29)
		sc.counted(t, "watches tried", &sc.wake.watches, 3)
		sc.counted(t, "looks", &sc.wake.looks, 3)
		sc.fs.refuseWith(nil)
		sc.pass(t, 1, wait)
		sc.counted(t, "watches tried", &sc.wake.watches, 4)
		sc.counted(t, "looks", &sc.wake.looks, 4) // armed anew, so looked anew
		sc.pass(t, pollBehindEvents, wait)
		sc.counted(t, "polls", &sc.wake.polls, 1+30+1)

		third, _ := sc.fs.last()
		mustEnqueue(t, sc.other(t), "mail", small("a"))
		sc.parked(t, wait)
		third.signal()
		sc.over(t, wait)
	})
}

// Without a watch another process's commit is found by the poll, within a second,
// and where there can never be one nobody tries again. A watch that is not sure is
// polled behind as often.
func TestPollFindsACommit(t *testing.T) {
	for _, c := range []struct {
		name   string
		refuse error
		unsure bool
		every  time.Duration
		tried  int
	}{
		{"no events here", errors.ErrUnsupported, false, pollWithoutEvents, 1},
		{"refused", syscall.ENOSPC, false, pollWithoutEvents, 3},
		{"a watch that is not sure", nil, true, pollWithoutEvents, 1},
		{"a watch that is sure and tells nothing", nil, false, pollBehindEvents, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, Options{}, func(t *testing.T, sc *wakeScene) {
				sc.fs.refuse, sc.fs.unsure = c.refuse, c.unsure
				wait := sc.due(t.Context(), "mail")
				sc.parked(t, wait)
				sc.pass(t, time.Minute, wait)
				sc.counted(t, "looks", &sc.wake.looks, 1)
				sc.counted(t, "polls", &sc.wake.polls, int64(time.Minute/c.every))
				mustEnqueue(t, sc.other(t), "mail", small("a"))
				sc.pass(t, c.every-1, wait)
				sc.pass(t, 1)
				sc.over(t, wait)
				sc.counted(t, "looks", &sc.wake.looks, 2)
				sc.counted(t, "watches tried", &sc.wake.watches, int64(c.tried))
			})
		})
	}
}

// What a poll tells, case by case.
func TestPollTells(t *testing.T) {
	file := fsguard.Info{Identity: fsguard.Identity{Dev: 1, Ino: 2}, Size: 3, CtimeNanos: 4}
	with := func(change func(*fsguard.Info)) fsguard.Info {
		f := file
		change(&f)
		return f
	}
	now := systemClock{}.Now().millis()
	for _, c := range []struct {
		name  string
		file  fsguard.Info
		err   error
		saw   sight
		watch *wakeWatch
		want  bool
	}{
		{"the same", file, nil, sight{file: file}, nil, false},
		{"another file", with(func(f *fsguard.Info) { f.Ino++ }), nil, sight{file: file}, nil, true},
		{"on another device", with(func(f *fsguard.Info) { f.Dev++ }), nil, sight{file: file}, nil, true},
		{"another size", with(func(f *fsguard.Info) { f.Size++ }), nil, sight{file: file}, nil, true},
		{"changed later", with(func(f *fsguard.Info) { f.CtimeNanos++ }), nil, sight{file: file}, nil, true},
		{"gone", file, syscall.ENOENT, sight{file: file}, nil, true},
		{"never looked", file, nil, sight{}, nil, true},
		{"young, no watch", file, nil, sight{file: file, young: true}, nil, true},
		{"young, a watch", file, nil, sight{file: file, young: true}, &wakeWatch{}, false},
		{"young, a watch that is not sure", file, nil, sight{file: file, young: true}, &wakeWatch{unsure: true}, true},
		{"due", file, nil, sight{file: file, next: now}, nil, true},
		{"not due", file, nil, sight{file: file, next: now + time.Hour.Milliseconds()}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &sentry{w: &waker{fs: wakeStat{file: c.file, err: c.err}, clock: systemClock{}, waiters: map[*parked]bool{}}, never: true}
			if c.watch != nil {
				s.watch = c.watch
			}
			p := &parked{told: make(chan struct{}, 1), last: c.saw}
			s.w.waiters[p] = true
			s.poll()
			if got := len(p.told) == 1; got != c.want {
				t.Errorf("told %v, want %v", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		ctime time.Time
		want  bool
	}{
		{time.Now(), true}, {time.Now().Add(-youngFile), false}, {time.Now().Add(time.Hour), false}, {time.Unix(0, 1), false},
	} {
		if got := young(fsguard.Info{CtimeNanos: c.ctime.UnixNano()}); got != c.want {
			t.Errorf("made at %v: young %v, want %v", c.ctime, got, c.want)
		}
	}
}

// On a real filesystem a look right after a commit sees a young file.
func TestLookAfterACommitSeesAYoungFile(t *testing.T) {
	s, dir := newTestStore(t, nil)
	two, err := Open(t.Context(), dir, &Options{pollOff: true})
	mustDo(t, err)
	defer two.Close()
	mustEnqueue(t, s, "other", small("a"))
	wait := wakeGo(func() error { return two.WaitDue(t.Context(), "mail") })
	var saw sight
	until(func() bool {
		two.wake.mu.Lock()
		defer two.wake.mu.Unlock()
		for p := range two.wake.waiters {
			saw = p.last
		}
		return saw.commit != token{}
	})
	stands, err := fsguard.OS().Stat(filepath.Join(dir, namespaceDir, stateFile))
	mustDo(t, err)
	if !saw.young || !sameFile(saw.file, stands) {
		t.Errorf("saw %+v, there stands %+v", saw, stands)
	}
	mustDo(t, two.Close())
	refusal(t, "a wait", <-wait, queue.ErrClosed, "")
}

// A wakeStat answers Stat and nothing else.
type wakeStat struct {
	fsguard.FS
	file fsguard.Info
	err  error
}

func (s wakeStat) Stat(string) (fsguard.Info, error) { return s.file, s.err }
