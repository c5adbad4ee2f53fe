//go:build unix

package main

import (
	"context"
	"reflect"
	"strconv"
	"strings"
	"time"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
)

// How often status --watch looks. A look takes the store's lock, shared with other
// looks: what looks without pause would keep writers waiting.
const (
	defaultInterval = 2 * time.Second
	minInterval     = 100 * time.Millisecond
)

// A watch is what status --watch has shown so far.
type watch struct {
	before *survey         // the look before this one
	shown  *survey         // what was shown last, with its flows
	flows  map[string]flow // of shown
	screen string          // what stands on the terminal
}

// watchStatus shows the status at once and then looks again and again: on a terminal a
// table in one place; elsewhere, and with --json, what is new, each time that a look finds
// something new by a commit of anybody, by the passing of time, or because it could not be
// settled. An interrupt is its proper end.
func (a *app) watchStatus(ctx context.Context, queues []string, interval time.Duration) error {
	var w watch
	for {
		v, err := a.survey(ctx, queues, false)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		flows := map[string]flow{}
		for name := range v.status.Queues {
			flows[name] = flowOf(w.before, v, name)
		}
		w.before = v
		switch isNew := w.isNew(v, flows); {
		case a.json && isNew:
			a.printJSON(watchLineOf(v, flows))
		case !a.json && a.tty(a.stdout) && a.env("TERM") != "dumb":
			a.redraw(&w, v, flows)
		case !a.json && isNew:
			a.appendLines(w.shown == nil, v, flows)
		}
		w.shown, w.flows = v, flows
		if err := a.out.Flush(); err != nil {
			return nil // run tells it
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.after(interval):
		}
	}
}

// isNew tells whether a look found something else than was shown last. Ages grow all the
// time and are nothing new.
func (w *watch) isNew(v *survey, flows map[string]flow) bool {
	if w.shown == nil || !reflect.DeepEqual(w.shown.status, v.status) {
		return true
	}
	for name, f := range flows {
		if f.moved(w.flows[name]) {
			return true
		}
	}
	return false
}

// watchLine is the machine form: that of status, and what only one who watches knows.
type watchLine struct {
	At time.Time `json:"at"`
	statusLine
	Watch map[string]watchedLine `json:"watch"`
}

type watchedLine struct {
	Oldest *time.Time `json:"oldest"` // when the oldest live message was enqueued; null: none
	flow
}

func watchLineOf(v *survey, flows map[string]flow) watchLine {
	l := watchLine{v.at.UTC(), statusLineOf(v.status), map[string]watchedLine{}}
	for name, f := range flows {
		l.Watch[name] = watchedLine{forms.OrNull(v.oldest[name]), f}
	}
	return l
}

// queueColumns are those of a table of queues, on a screen of any width.
var queueColumns = []column{
	{head: "QUEUE", least: 10},
	{head: "READY", right: true},
	{head: "SCHED", right: true, rank: 5},
	{head: "BLOCK", right: true, rank: 6}, // behind a key or an older generation
	{head: "PROC", right: true},
	{head: "FAIL", right: true},
	{head: "OLDEST", right: true, rank: 2},
	{head: "IN/S", right: true, rank: 4},
	{head: "OUT/S", right: true, rank: 3},
	{head: "", least: 6, rank: 1}, // what else there is to say
}

func queueRow(v *survey, name string, f flow) []string {
	q := v.status.Queues[name]
	return []string{
		name, utoa(q.Ready), utoa(q.Scheduled), utoa(q.Blocked), utoa(q.Processing), utoa(q.Failed),
		v.age(name), rateText(f.In), rateText(f.Out), queueNote(q),
	}
}

func queueNote(q queue.QueueStatus) string {
	var notes []string
	if q.Overdue > 0 {
		notes = append(notes, utoa(q.Overdue)+" overdue")
	}
	if q.Paused {
		notes = append(notes, "paused")
	}
	if q.Importing {
		notes = append(notes, "importing")
	}
	return strings.Join(notes, ", ")
}

// redraw puts the table where it stood before. Every line is written over the one before
// and its rest erased, all in one write: nothing flickers. Nothing is written where the
// screen would be the same.
func (a *app) redraw(w *watch, v *survey, flows map[string]flow) {
	width, height := a.size(a.stdout)
	screen := strings.Join(a.frame(v, flows, width, height), "\x1b[K\n") + "\x1b[K\n"
	if screen == w.screen {
		return
	}
	if w.screen == "" {
		a.printf("\x1b[2J")
	}
	w.screen = screen
	a.printf("\x1b[H%s\x1b[J", screen)
}

// frame gives the lines of the table, at most so many and so wide, and one less than the
// screen has, where the cursor stands.
func (a *app) frame(v *survey, flows map[string]flow, width, height int) []string {
	style := a.style()
	lines := []string{cutCells(when(v.at)+", revision "+utoa(v.status.Revision), width)}
	if busy := v.busy(a.dir); busy != "" {
		lines = append(lines, style.warn(cutCells(printable(busy), width)))
	}
	if len(v.status.Queues) == 0 {
		return append(lines, "no queues")
	}
	var rows [][]string
	for _, name := range v.names() {
		rows = append(rows, queueRow(v, name, flows[name]))
	}
	table := layOut(queueColumns, rows, width)
	if room := height - 1 - len(lines); height > 0 && len(table) > room {
		hidden := len(table) - max(room-1, 1)
		table = append(table[:max(room-1, 1)], cutCells("… "+plural(int64(hidden), "more queue"), width))
	}
	table[0] = style.bold(table[0])
	return append(lines, table...)
}

// appendLines writes a line for each queue, with the time, for a file or a pipe.
func (a *app) appendLines(head bool, v *survey, flows map[string]flow) {
	columns := append([]column{{head: "TIME"}, {head: "REVISION"}}, queueColumns...)
	columns[len(columns)-1].head = "NOTE"
	var rows [][]string
	for _, name := range v.names() {
		row := queueRow(v, name, flows[name])
		if last := len(row) - 1; !v.status.Settled {
			row[last] = strings.TrimPrefix(row[last]+", unsettled", ", ")
		}
		rows = append(rows, append([]string{when(v.at), utoa(v.status.Revision)}, row...))
	}
	lines := layOut(widened(columns), rows, 0)
	if !head {
		lines = lines[1:]
	}
	for _, line := range lines {
		a.printf("%s\n", line)
	}
	if len(rows) == 0 {
		a.printf("%s, revision %d: no queues\n", when(v.at), v.status.Revision)
	}
}

// widened makes every column stay and stand at the same place in most lines.
func widened(columns []column) []column {
	out := make([]column, len(columns))
	for i, c := range columns {
		out[i] = column{head: c.head, right: c.right}
		if c.head == "QUEUE" {
			out[i].head = pad(c.head, 24, false)
		} else if c.head != "NOTE" {
			out[i].head = pad(c.head, 8, c.right)
		}
	}
	return out
}

func itoa(n int) string    { return strconv.Itoa(n) }
func utoa(n uint64) string { return strconv.FormatUint(n, 10) }
