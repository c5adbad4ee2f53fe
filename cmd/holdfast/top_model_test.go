//go:build unix

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"example.com/holdfast/queue"
)

// A change is made after y and after no other key, to what was named in the question.
func TestTopAsksBeforeEveryDeed(t *testing.T) {
	for _, try := range []struct{ keys, question, did string }{
		{"p", "pause chat? Claims will find nothing. [y/N]", "pause chat"},
		{"down p", "resume mail? [y/N]", "resume mail"},
		{"2 x", "end the claim of chat a by worker-1 and return it? Its worker loses it. [y/N]", "release chat a"},
		{"3 r", "return failed c to chat? [y/N]", "reprocess chat c c"},
		{"3 down d", "remove failed d~g2 of mail for good? [y/N]", "purge mail d d~g2"},
	} {
		t.Run(try.did, func(t *testing.T) {
			store := &topFake{view: topSurvey()}
			b := newTopBench(t, store, 80, 24)
			for _, no := range []string{"n", "esc", "enter", "q", "p", "x", "r", "d", "tab"} {
				b.press(try.keys)
				b.has(try.question)
				b.press(no)
				b.hasNot("[y/N]")
				b.has("not done")
				if len(store.did) != 0 || b.quit {
					t.Fatalf("after %s: %q, quit %v", no, store.did, b.quit)
				}
				b.press("esc home")
				if strings.HasPrefix(try.keys, "down") {
					b.press("home")
				}
			}
			b.press(try.keys)
			// What is seen changes while it is asked: what was named is what is done.
			store.view = &survey{at: store.view.at, status: store.view.status}
			b.send(tickMsg{})
			b.has(try.question)
			b.press("y")
			if !slices.Equal(store.did, []string{try.did}) {
				t.Errorf("did %q, want %q", store.did, try.did)
			}
			b.has("did " + try.did)
			b.press("y y")
			if len(store.did) != 1 {
				t.Errorf("did it again: %q", store.did)
			}
		})
	}
}

// What is asked of one message is not done to another that has its place meanwhile.
func TestTopDoesWhatWasAsked(t *testing.T) {
	store := &topFake{view: topSurvey()}
	b := newTopBench(t, store, 80, 24)
	b.press("3 d")
	store.view = topSurvey()
	store.view.failed = store.view.failed[1:]
	b.send(tickMsg{})
	b.has("> d~g2")
	b.press("y")
	if len(store.did) != 1 || store.did[0] != "purge chat c c" {
		t.Errorf("did %q", store.did)
	}
}

// The cursor stays on its message when others come and go, and where it stood when that
// has gone.
func TestTopCursorStaysOnItsRow(t *testing.T) {
	store := &topFake{view: topSurvey()}
	b := newTopBench(t, store, 80, 24)
	b.press("3 down")
	b.has("> d~g2")
	again := topSurvey()
	again.failed = slices.Insert(again.failed, 0, queue.Entry{Queue: "chat", FailedName: "new", FailedAt: again.at})
	store.view = again
	b.send(tickMsg{})
	b.has("> d~g2")
	b.press("enter")
	b.has("name       d~g2")
	again = topSurvey()
	again.failed = again.failed[:1]
	store.view = again
	b.send(tickMsg{})
	b.has("> c ")
	b.has("what was shown here is gone")
}

func TestTopShowsErrorsInPlace(t *testing.T) {
	store := &topFake{err: errors.New("state.json: no " + evil)}
	b := newTopBench(t, store, 80, 24)
	b.has("no look: state.json: no \\u001b")
	store.err = context.DeadlineExceeded
	b.send(tickMsg{})
	b.has("no look within 10s")
	store.view, store.err = topSurvey(), nil
	b.send(tickMsg{})
	b.hasNot("no look")
	b.has("> chat")
	store.err = errors.New("gone")
	b.send(tickMsg{})
	b.has("no look: gone")
	b.has("> chat") // what was seen before stays

	store.err = nil
	store.view.status.Settled = false
	b.send(tickMsg{})
	b.has("store busy: another process holds the lock; shown is the last committed state")
	store.view.status.Owner = &queue.Owner{Token: "t", PID: 42, Host: "pho\x1bne", Since: time.Unix(1, 0)}
	b.send(tea.WindowSizeMsg{Width: 200, Height: 24})
	b.send(tickMsg{})
	b.has("store busy: pid 42 on pho\\u001bne is inside a change since " + when(time.Unix(1, 0)) + "; shown is the last committed state; if it does not run any more: holdfast recover --dir /srv/store")
	b.send(tea.WindowSizeMsg{Width: 40, Height: 20})
	b.has("store busy: pid 42 on pho\\u001bne is in…")
	b.send(tea.WindowSizeMsg{Width: 80, Height: 24})

	store.doErr = errors.New("refused: " + evil)
	b.press("p y")
	b.has("refused: \\u001b")
	b.press("j")
	b.hasNot("refused")
}

// While a look or a change takes long the view goes on: one of each at a time.
func TestTopGoesOnWhileTheStoreIsSlow(t *testing.T) {
	store := &topFake{view: topSurvey()}
	b := newTopBench(t, store, 80, 24)
	b.hold = true
	b.send(tickMsg{})
	b.send(tickMsg{})
	if len(b.held) != 1 {
		t.Fatalf("%d looks at once", len(b.held))
	}
	b.press("p y")
	b.has("pause chat …")
	b.press("p")
	b.has("wait: pause is being done")
	b.press("2 down")
	b.has("> chat   b")
	b.press("q")
	b.has("then quit")
	var withdrawn error
	store.before = func(ctx context.Context) { withdrawn = ctx.Err() }
	b.release()
	if !b.quit || withdrawn == nil {
		t.Errorf("quit %v, the change was withdrawn: %v", b.quit, withdrawn)
	}

	b = newTopBench(t, store, 80, 24)
	store.before, store.did = nil, nil
	b.hold = true
	b.send(tickMsg{})
	b.press("p y")
	held := b.held
	b.hold, b.held = true, nil
	b.send(held[1]()) // the change ends while a look is out: what it found is old
	if len(b.held) != 0 {
		t.Error("two looks at once")
	}
	b.send(held[0]())
	if len(b.held) != 1 {
		t.Error("no look after the change")
	}
	b.press("ctrl+c")
	b.release()
	if !b.quit {
		t.Error("ctrl+c does not quit")
	}
}

func TestTopRates(t *testing.T) {
	store := &topFake{view: topSurvey()}
	b := newTopBench(t, store, 80, 24)
	b.has("3d     -      -")
	later := topSurvey()
	later.at = later.at.Add(2 * time.Second)
	q := later.status.Queues["chat"]
	q.Counters.Enqueued, q.Counters.Completed = 9, 3
	later.status.Queues["chat"] = q
	store.view = later
	b.send(tickMsg{})
	b.has("4.5    1.5  1 overdue")
}
