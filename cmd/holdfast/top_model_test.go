//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"example.com/holdfast/queue"
)

// A topFake is a store that shows what it is given and notes what it is asked to do.
type topFake struct {
	view   *survey
	err    error
	did    []string
	doErr  error
	before func(ctx context.Context) // runs when a deed begins
}

func (f *topFake) look(context.Context) (*survey, error) { return f.view, f.err }

func (f *topFake) do(ctx context.Context, d deed) (string, error) {
	if f.before != nil {
		f.before(ctx)
	}
	did := strings.Join(strings.Fields(strings.Join([]string{d.verb, d.queue, d.entry.ID, d.entry.FailedName}, " ")), " ")
	if f.doErr != nil {
		return "", f.doErr
	}
	f.did = append(f.did, did)
	return "did " + did, nil
}

// A topBench drives a model without a terminal: commands run at once, and the time to look
// again comes when the test says so.
type topBench struct {
	t     *testing.T
	m     tea.Model
	store *topFake
	quit  bool
	held  []tea.Cmd // with hold: commands that wait to be run
	hold  bool
}

type topAsleep struct{} // what the tick of a bench gives

func newTopBench(t *testing.T, store *topFake, width, height int) *topBench {
	t.Helper()
	b := &topBench{t: t, store: store}
	b.m = newTop(t.Context(), store, "/srv/store", style{noColour: true, plain: true}, func() tea.Msg { return topAsleep{} })
	b.run(b.m.Init())
	b.send(tea.WindowSizeMsg{Width: width, Height: height})
	return b
}

func (b *topBench) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	if b.hold {
		b.held = append(b.held, cmd)
		return
	}
	b.send(cmd())
}

func (b *topBench) send(msg tea.Msg) {
	switch msg.(type) {
	case topAsleep:
		return
	case tea.QuitMsg:
		b.quit = true
		return
	}
	m, cmd := b.m.Update(msg)
	b.m = m
	b.run(cmd)
	b.check()
}

// release runs what was held.
func (b *topBench) release() {
	held := b.held
	b.hold, b.held = false, nil
	for _, cmd := range held {
		b.run(cmd)
	}
}

var topNamed = map[string]tea.Key{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown},
	"end": {Code: tea.KeyEnd}, "home": {Code: tea.KeyHome}, "pgdown": {Code: tea.KeyPgDown}, "backspace": {Code: tea.KeyBackspace},
	"ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift},
}

// press presses keys, named or single characters, with spaces between them.
func (b *topBench) press(keys string) {
	b.t.Helper()
	for key := range strings.FieldsSeq(keys) {
		k, named := topNamed[key]
		if !named {
			r := []rune(key)[0]
			k = tea.Key{Code: r, Text: key}
		}
		if got := tea.KeyPressMsg(k).String(); got != key {
			b.t.Fatalf("key %q is %q", key, got)
		}
		b.send(tea.KeyPressMsg(k))
	}
}

func (b *topBench) screen() []string { return strings.Split(b.m.View().Content, "\n") }

// check holds every screen to what must be true of all: it fits the window, and nothing in
// it steers the terminal.
func (b *topBench) check() {
	b.t.Helper()
	m := b.m.(*topModel)
	lines := b.screen()
	if len(lines) != m.height {
		b.t.Fatalf("%d lines in %d:\n%s", len(lines), m.height, strings.Join(lines, "\n"))
	}
	for _, l := range lines {
		if ansi.StringWidth(l) > m.width {
			b.t.Errorf("%d cells in %d: %q", ansi.StringWidth(l), m.width, l)
		}
		if found := unsafeIn(l); found != nil {
			b.t.Errorf("%v in %q", found, l)
		}
	}
}

func (b *topBench) has(text string) {
	b.t.Helper()
	if joined := strings.Join(b.screen(), "\n"); !strings.Contains(joined, text) {
		b.t.Errorf("no %q on the screen:\n%s", text, joined)
	}
}

func (b *topBench) hasNot(text string) {
	b.t.Helper()
	if joined := strings.Join(b.screen(), "\n"); strings.Contains(joined, text) {
		b.t.Errorf("%q on the screen:\n%s", text, joined)
	}
}

// evil is what somebody may write who wants to have the terminal do something.
const evil = "\x1b]0;owned\a\x1b[2Jred\u009b31m\u202e\r\nnext"

func topSurvey() *survey {
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.Local)
	receipt := func(q, id string) queue.Receipt {
		return queue.Receipt{Store: "s", Queue: q, ID: id, Generation: "0123456789abcdef.0", Attempt: 1}
	}
	return &survey{
		at: at,
		status: queue.Status{Revision: 41, Settled: true, Queues: map[string]queue.QueueStatus{
			"chat":                             {Pending: 7, Ready: 5, Scheduled: 1, Blocked: 1, Processing: 2, Overdue: 1, Failed: 1},
			"mail":                             {Paused: true, Failed: 1, Counters: queue.Counters{Enqueued: 1, Failed: 1}},
			"uploads/thumbnails-of-everything": {Pending: 1234567, Ready: 1234567},
		}},
		oldest: map[string]time.Time{"chat": at.Add(-time.Hour), "uploads/thumbnails-of-everything": at.Add(-3 * 24 * time.Hour)},
		claims: []queue.Entry{
			{Queue: "chat", ID: "a", State: queue.Processing, Label: "worker-1", Receipt: receipt("chat", "a"), Attempts: 1, Deadline: at.Add(5 * time.Minute)},
			{Queue: "chat", ID: "b", State: queue.Processing, Label: evil, Receipt: receipt("chat", "b"), Attempts: 3, Deadline: at.Add(-time.Minute), Overdue: true, LastError: evil},
		},
		failed: []queue.Entry{
			{Queue: "chat", ID: "c", FailedName: "c", Generation: "g1", FailedAt: at.Add(-2 * time.Minute), Attempts: 5, LastError: "no route to host"},
			{Queue: "mail", ID: "d", FailedName: "d~g2", Generation: "g2", FailedAt: at.Add(-4 * time.Hour), Attempts: 1, LastError: evil},
		},
	}
}

func TestTopScreens(t *testing.T) {
	for _, try := range []struct {
		name, keys string
		width      int
		height     int
	}{
		{"queues", "", 80, 24},
		{"claims", "2", 80, 24},
		{"failed", "3 down", 80, 24},
		{"failed-detail", "3 down enter", 80, 24},
		{"claim-detail", "2 down enter", 80, 24},
		{"keys", "?", 80, 24},
		{"phone-queues", "", 40, 20},
		{"phone-claims", "2 down", 40, 20},
		{"phone-failed", "3", 40, 20},
		{"phone-purge", "3 down d", 40, 20},
		{"phone-release", "2 down x", 40, 20},
		{"phone-queue-detail", "enter", 40, 20},
	} {
		t.Run(try.name, func(t *testing.T) {
			b := newTopBench(t, &topFake{view: topSurvey()}, try.width, try.height)
			b.press(try.keys)
			cliGolden(t, "top-"+try.name+".txt", strings.Join(b.screen(), "\n")+"\n")
		})
	}
}

// Whatever the window, whatever is open.
func TestTopFitsEveryWindow(t *testing.T) {
	for _, keys := range []string{"", "2", "3 end", "2 down x", "3 down d", "? tab", "enter", "2 down enter", "/ ö ö", "3 down r y"} {
		b := newTopBench(t, &topFake{view: topSurvey(), doErr: errors.New("no " + evil + strings.Repeat("so long a story ", 60))}, 80, 24)
		b.press(keys)
		for width := 12; width < 130; width += 3 {
			b.send(tea.WindowSizeMsg{Width: width, Height: 6 + width%20}) // check looks at each
		}
	}
}

// On a phone a question about long names is whole, where the window has lines for it.
func TestTopAsksWhole(t *testing.T) {
	v := topSurvey()
	id := strings.Repeat("x", 125) + "end"
	v.claims[0].ID, v.claims[0].Label = id, strings.Repeat("l", 128)
	b := newTopBench(t, &topFake{view: v}, 40, 20)
	b.press("2 x")
	b.has("xxend")
	b.has("it. [y/N]")
}

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

func TestTopKeys(t *testing.T) {
	view := topSurvey()
	for i := range 50 {
		view.failed = append(view.failed, queue.Entry{Queue: "chat", FailedName: fmt.Sprintf("m%02d", i), FailedAt: view.at, LastError: "timeout"})
	}
	b := newTopBench(t, &topFake{view: view}, 80, 24)
	for _, try := range []struct{ keys, has, hasNot string }{
		{"tab", "[2 claims]", "[1"},
		{"tab", "[3 failed]", "[2 c"},
		{"tab", "[1 queues]", "[3"},
		{"shift+tab", "[3 failed]", "[1"},
		{"end", "> m49", "> c "},
		{"k", "> m48", "> m49"},
		{"home", "> c ", "> m"},
		{"pgdown", "> m", "> c "},
		{"/ N O T space", "nothing here has", "> m"},
		{"ctrl+u r o u t e enter", "> c ", "m49"},
		{"enter", "last error no route to host", "> c "},
		{"esc", "> c ", "last error no route"},
		{"esc", "m00", "/route"},
		{"x", "release is on page 2", "[y/N]"},
		{"?", "remove the failed message for good", "> c "},
		{"1 ?", "pause the queue", "purge"},
		{"?", "uploads", "pause the queue,"},
		{"/ z z z enter p", "nothing to pause", "[y/N]"},
		{"esc / a backspace esc", "chat", "/a"},
	} {
		b.press(strings.ReplaceAll(try.keys, "space", "-"))
		b.has(try.has)
		b.hasNot(try.hasNot)
	}
	b.press("q")
	if !b.quit {
		t.Error("q does not quit")
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
