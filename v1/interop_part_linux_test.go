//go:build linux

package holdfast

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	roles["interop produce"] = interopProduce
	roles["interop consume"] = interopConsume
}

// An interopEvent is one call of one process, with the time before and after it by the
// clock that all processes share.
type interopEvent struct {
	What          string // enqueue, load, pending, ack, fail
	ID            string
	Gen           int // what was written, loaded or settled; 0: nothing was there
	Begin, End    int64
	Code, Message string

	by string
}

// An interopEntry is what a producer writes, and the payload.
type interopEntry struct {
	ID   string `json:"id"`
	Gen  int    `json:"gen"`
	Form int    `json:"form,omitempty"` // 2 once it was migrated

	// Alone: it is written only when nothing is left of its ID. Not part of the payload.
	Alone bool `json:"alone,omitempty"`
}

// An interopPart is what a Go process does in the load test.
type interopPart struct {
	Dirs     interopDirs
	Route    Route
	Entries  []interopEntry // of a producer
	Prefixes []string       // of a consumer
	Ahead    time.Duration  // of the clock once it is to end
}

func interopNow() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // it is there on every Linux
	return ts.Nano()
}

// interopNote performs f and tells what came of it.
func interopNote(e interopEvent, f func(e *interopEvent) error) error {
	e.Begin = interopNow()
	err := f(&e)
	e.End = interopNow()
	if err != nil {
		e.Code, e.Message = codeOf(err), err.Error()
		if errors.Is(err, ErrNotFound) {
			e.Code = "ENOENT"
		}
	}
	interopTell(e)
	return err
}

func interopTell(e interopEvent) {
	text, _ := json.Marshal(map[string]interopEvent{"event": e}) // strings and numbers
	os.Stdout.Write(append(text, '\n'))
}

// interopOpen opens a part's store. The part is to end when its input does.
func interopOpen(arg string) (interopPart, *Store, *atomic.Bool, error) {
	var p interopPart
	if err := json.Unmarshal([]byte(arg), &p); err != nil {
		return p, nil, nil, err
	}
	var ending atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		ending.Store(true)
	}()
	s, err := Open(p.Dirs.Queue, &Options{FailedDir: p.Dirs.Failed, ClaimBy: p.Route, now: func() time.Time {
		now := time.Now()
		if ending.Load() {
			now = now.Add(p.Ahead)
		}
		return now
	}})
	return p, s, &ending, err
}

func interopProduce(args []string) error {
	p, s, ending, err := interopOpen(args[0])
	if err != nil {
		return err
	}
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for _, entry := range p.Entries {
		for entry.Alone && !ending.Load() && p.left(entry.ID) {
			<-poll.C
		}
		if ending.Load() {
			return nil
		}
		entry.Alone = false
		payload, _ := json.Marshal(entry) // a string and a number
		_ = interopNote(interopEvent{What: "enqueue", ID: entry.ID, Gen: entry.Gen}, func(*interopEvent) error {
			_, err := s.Enqueue(context.Background(), entry.ID, payload)
			return err
		}) // the judge has it
	}
	return nil
}

// left reports whether an ID is claimed, or pending, or now claimed: between the first
// two looks it can only have gone from pending to claimed.
func (p interopPart) left(id string) bool {
	for _, suffix := range []string{processingSuffix, pendingSuffix, processingSuffix} {
		if _, err := os.Lstat(filepath.Join(p.Dirs.Queue, id+suffix)); err == nil {
			return true
		}
	}
	return false
}

// interopConsume does what consume in load.mjs does.
func interopConsume(args []string) error {
	p, s, ending, err := interopOpen(args[0])
	if err != nil {
		return err
	}
	ctx := context.Background()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for round := 0; !ending.Load(); round++ {
		var claims []*Claim
		if round%8 == 0 {
			begin := interopNow()
			_ = interopNote(interopEvent{What: "pending"}, func(*interopEvent) error {
				b, err := s.LoadPending(ctx, nil)
				claims = b.Claims
				return err
			})
			end := interopNow()
			for _, c := range claims {
				interopTell(interopEvent{What: "load", ID: c.ID, Gen: interopGenOf(c), Begin: begin, End: end})
			}
		} else {
			list, err := os.ReadDir(p.Dirs.Queue)
			if err != nil {
				return err
			}
			var names []string
			for _, e := range list {
				names = append(names, e.Name())
			}
			ids := entryIDs(names)
			rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			for _, id := range ids[:min(4, len(ids))] {
				_ = interopNote(interopEvent{What: "load", ID: id}, func(e *interopEvent) error {
					c, err := s.Load(ctx, id, &LoadOptions{Migrate: interopMigrate})
					if errors.Is(err, ErrNotFound) {
						return nil
					}
					if err == nil {
						e.Gen = interopGenOf(c)
						claims = append(claims, c)
					}
					return err
				})
			}
		}
		if len(claims) == 0 {
			<-poll.C
		}
		for _, c := range claims {
			if err := p.settle(s, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// interopMigrate gives every fifth generation a second form, once.
func interopMigrate(_ context.Context, _ string, payload []byte) ([]byte, error) {
	var e interopEntry
	if err := json.Unmarshal(payload, &e); err != nil || e.Gen%5 != 3 || e.Form == 2 {
		return nil, err
	}
	e.Form = 2
	return json.Marshal(e)
}

func interopGenOf(c *Claim) int {
	var e interopEntry
	if json.Unmarshal(c.Payload, &e) != nil || e.ID != c.ID {
		return -1 // nobody wrote that
	}
	return e.Gen
}

// settle acknowledges or sets aside a claim that is this part's.
func (p interopPart) settle(s *Store, c *Claim) error {
	if !slices.ContainsFunc(p.Prefixes, func(prefix string) bool { return strings.HasPrefix(c.ID, prefix) }) {
		return c.Close()
	}
	gen := interopGenOf(c)
	if gen%10 == 7 {
		err := interopNote(interopEvent{What: "fail", ID: c.ID, Gen: gen}, func(*interopEvent) error { return s.Fail(context.Background(), c) })
		if !errors.Is(err, ErrAlreadyExists) {
			return c.Close()
		}
	}
	_ = interopNote(interopEvent{What: "ack", ID: c.ID, Gen: gen}, func(*interopEvent) error { return s.Ack(context.Background(), c) })
	return c.Close()
}
