//go:build unix

package main

import (
	"context"
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
