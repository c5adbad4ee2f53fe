//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// facts are what an error is about. They fill in the next command, and stand
// beside the error in its JSON form.
type facts struct {
	queue, id, receipt string
	name               string // of a failed message
	space              string // its failed namespace; empty: the default one
	line               int    // of an NDJSON stream, from 1
	accepted           *int64 // messages of a stream that were accepted before it
	run                string // the next command, where the kind of error does not know it
	advice             string // stands in the place of a next command
	outside            bool   // it is not about the store: no path and no next command
	place              string // what it is about where that is not the store's directory
	ready, processing  uint64 // with the next three, what a queue holds though nothing is due
	blocked, scheduled uint64
	overdue            uint64
	receipts           []string // of claims that happened and could not be printed
}

// A factError is an error with its facts.
type factError struct {
	err   error
	facts facts
}

func (e *factError) Error() string { return e.err.Error() }
func (e *factError) Unwrap() error { return e.err }

// about joins facts to an error. A nil error stays nil.
func about(err error, f facts) error {
	if err == nil {
		return nil
	}
	return &factError{err, f}
}

// factsOf collects what is known along the chain; what is nearer to the cause
// was said first and stays.
func factsOf(err error) facts {
	var f facts
	var fe *factError
	if errors.As(err, &fe) {
		f = fe.facts
		inner := factsOf(fe.err)
		f.queue, f.id = pick(inner.queue, f.queue), pick(inner.id, f.id)
		f.receipt, f.name = pick(inner.receipt, f.receipt), pick(inner.name, f.name)
		f.space = pick(inner.space, f.space)
		f.run, f.advice = pick(inner.run, f.run), pick(inner.advice, f.advice)
		f.outside = f.outside || inner.outside
		f.place = pick(inner.place, f.place)
		f.ready, f.processing, f.blocked = max(f.ready, inner.ready), max(f.processing, inner.processing), max(f.blocked, inner.blocked)
		f.scheduled, f.overdue = max(f.scheduled, inner.scheduled), max(f.overdue, inner.overdue)
		f.receipts = append(f.receipts, inner.receipts...)
		if inner.line != 0 {
			f.line = inner.line
		}
		if inner.accepted != nil {
			f.accepted = inner.accepted
		}
	}
	var lost *queue.LostError
	if errors.As(err, &lost) {
		f.queue, f.id = lost.Queue, lost.ID
	}
	var importing *holdfast.ImportingError
	if errors.As(err, &importing) {
		f.queue = importing.Queue
	}
	var damaged *queue.DamagedError
	if errors.As(err, &damaged) {
		f.queue, f.id, f.name = damaged.Queue, damaged.ID, damaged.FailedName
	}
	return f
}

func pick(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// errorLine is the JSON form of an error. Code is stable, Error is for people.
type errorLine struct {
	Error    string `json:"error"`
	Code     string `json:"code"`
	Exit     int    `json:"exit"`
	Queue    string `json:"queue,omitempty"`
	ID       string `json:"id,omitempty"`
	Receipt  string `json:"receipt,omitempty"`
	Name     string `json:"failed_name,omitempty"`
	Space    string `json:"namespace,omitempty"`
	Line     int    `json:"line,omitempty"`
	Accepted *int64 `json:"accepted,omitempty"`

	// What the queue holds though nothing is due.
	Ready      uint64 `json:"ready,omitempty"`
	Processing uint64 `json:"processing,omitempty"`
	Blocked    uint64 `json:"blocked,omitempty"`
	Scheduled  uint64 `json:"scheduled,omitempty"`
	Overdue    uint64 `json:"overdue,omitempty"`

	Receipts []string `json:"receipts,omitempty"`
	Run      string   `json:"run"` // empty: no command helps
}

// A stoppedLine is the errorLine of an interrupt, which calls for no next command.
type stoppedLine struct {
	errorLine
	Run string `json:"run,omitempty"`
}

// report tells one error on stderr and counts it into the exit code. What was
// written to stdout before stands before it.
func (a *app) report(err error) {
	k, f := kindOf(err), factsOf(err)
	a.worst = worse(a.worst, k.exit)
	a.flush() // its error is sticky and comes out at the end
	run := a.next(k, f)
	text := strings.ReplaceAll(err.Error(), "\n", " ")
	switch {
	case k.err == holdfast.ErrImporting:
		text += "; that is the import of a v1 directory"
	case a.onV1(k):
		text += "; this is a v1 queue directory: make a store elsewhere, and import this into it"
		run = "holdfast import-v1 --help"
	case k.err == holdfast.ErrNoStore && !f.outside && f.place == "" && f.run == "":
		var more string
		more, k.next = aboutNoStore(pick(a.dir, "."))
		text, run = text+more, a.next(k, f)
	}
	if advice := pick(f.advice, adviceFor(k, err)); advice != "" {
		text, run = text+"; "+advice, ""
	}
	if a.json {
		l := errorLine{
			Error: text, Code: k.code, Exit: k.exit, Queue: f.queue, ID: f.id, Receipt: f.receipt, Name: f.name, Space: f.space,
			Line: f.line, Accepted: f.accepted, Ready: f.ready, Processing: f.processing, Blocked: f.blocked, Scheduled: f.scheduled,
			Overdue: f.overdue, Receipts: f.receipts, Run: run,
		}
		if k.err == context.Canceled {
			a.errJSON(stoppedLine{l, run})
		} else {
			a.errJSON(l)
		}
		return
	}
	where := ""
	if place := pick(f.place, a.dir); k.exit != exitUsage && place != "" && !f.outside && !strings.Contains(text, place) {
		where = place + ": "
	}
	if f.line != 0 {
		where += fmt.Sprintf("line %d: ", f.line)
	}
	if run != "" {
		run = "; run: " + run
	}
	told := fmt.Sprintf("holdfast: %s%s%s\n", where, printable(text), run)
	for _, receipt := range f.receipts {
		told += receipt + "\n"
	}
	io.WriteString(a.stderr, told)
}

// note tells people something that is no error.
func (a *app) note(code, format string, args ...any) {
	a.flush()
	text := fmt.Sprintf(format, args...)
	if a.json {
		a.errJSON(struct {
			Note string `json:"note"`
			Code string `json:"code"`
		}{text, code})
		return
	}
	fmt.Fprintf(a.stderr, "holdfast: %s\n", printable(text))
}

func (a *app) errJSON(v any) {
	a.stderr.Write(append(encode(v), '\n'))
}

// next spells the next command. A fact that is missing makes it the general one;
// where no command helps, there is none.
func (a *app) next(k kind, f facts) string {
	if f.outside {
		return ""
	}
	dir := a.dir
	if dir == "" {
		dir = "."
	}
	space := ""
	if f.space != "" {
		space = " --namespace " + shellWord(f.space)
	}
	known := []struct{ mark, value string }{
		{"{dir}", shellWord(dir)},
		{"{queue}", shellWord(f.queue)}, {"{id}", shellWord(f.id)}, {"{receipt}", shellWord(f.receipt)},
		{"{name}", shellWord(f.name)}, {"{command}", pick(a.command, "holdfast")},
	}
	run := pick(f.run, k.next)
	if a.command == "holdfast verify" && strings.HasPrefix(run, "holdfast verify") {
		return ""
	}
	if k.err == holdfast.ErrUnsafe && othersWrite(a.dir) {
		run = "chmod 700 {dir}"
	}
	for _, fact := range known {
		if fact.value == "" && strings.Contains(run, fact.mark) {
			run = otherwise
		}
	}
	for _, fact := range known {
		run = strings.ReplaceAll(run, fact.mark, fact.value)
	}
	return strings.ReplaceAll(run, "{space}", space)
}

// shellWord quotes s where a shell would not take it as one plain word.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._-~:+,=@%", r)
	}
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
