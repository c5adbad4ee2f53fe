//go:build unix

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
)

// pageSize is how many entries one page of a listing asks for.
const pageSize = 5000

// eachLive goes over all live messages of a queue in order of delivery.
func eachLive(ctx context.Context, s store, q string, see func(queue.Entry)) error {
	o := queue.ListOptions{Limit: pageSize}
	return eachPage(&o, func() (queue.Page, error) { return s.List(ctx, q, o) }, func(p queue.Page) {
		for _, e := range p.Entries {
			see(e)
		}
	})
}

// eachFailed goes over the failed messages that f names, in order of their names.
func eachFailed(ctx context.Context, s store, f queue.FailedOptions, see func(queue.Entry)) error {
	o := queue.ListOptions{Limit: pageSize}
	return eachPage(&o, func() (queue.Page, error) { return s.ListFailed(ctx, f, o) }, func(p queue.Page) {
		for _, e := range p.Entries {
			see(e)
		}
	})
}

// eachPage goes on from page to page; get reads the page that o names.
func eachPage(o *queue.ListOptions, get func() (queue.Page, error), see func(queue.Page)) error {
	for {
		p, err := get()
		if err != nil {
			return err
		}
		see(p)
		if p.Next == "" {
			return nil
		}
		o.After = p.Next
	}
}

// entryLine is the JSON form of an entry, without its payload.
type entryLine struct {
	forms.Entry
	Settled bool `json:"settled"`
}

func lineOf(e queue.Entry, settled bool) entryLine { return entryLine{forms.EntryOf(e), settled} }

// printEntry writes one entry in full: for show and peek, payload included.
func (a *app) printEntry(e queue.Entry, settled bool) {
	if a.json {
		a.printJSONPayload(lineOf(e, settled), e.Payload)
		return
	}
	a.printf("%s %s\n", e.Queue, e.ID)
	a.row("state", "%s", stateText(e))
	if e.FailedName != "" {
		a.row("failed", "as %s at %s", e.FailedName, when(e.FailedAt))
	}
	if e.Namespace != "" {
		a.row("namespace", "%s", e.Namespace)
	}
	if e.Key != "" {
		a.row("key", "%s", e.Key)
	}
	a.row("enqueued", "%s", when(e.EnqueuedAt))
	if !e.NotBefore.IsZero() && e.State != queue.Scheduled { // there the state says it
		a.row("not before", "%s", when(e.NotBefore))
	}
	a.row("attempts", "%s", attemptsText(e))
	if e.LastError != "" {
		a.row("last error", "%s", e.LastError)
	}
	if e.Receipt.Store != "" {
		a.row("receipt", "%s", e.Receipt)
	}
	if a.verbose {
		a.row("generation", "%s, place %d", e.Generation, e.Seq)
		a.row("object", "%s", e.Object)
		a.row("fence", "%d", e.Fence)
	}
	a.row("payload", "%d bytes", e.PayloadBytes)
	if len(e.Payload) > 0 {
		a.printf("  %s\n", printable(string(appendOneLine(nil, e.Payload))))
	}
}

func (a *app) row(name, format string, args ...any) {
	a.printf("  %-11s %s\n", name, printable(fmt.Sprintf(format, args...)))
}

// attemptsText counts the claims of a message, and those that are no failures apart.
func attemptsText(e queue.Entry) string {
	text := strconv.FormatUint(e.Attempts, 10)
	if e.Excused > 0 {
		text += fmt.Sprintf(", %d excused", e.Excused)
	}
	if e.Lapses > 0 {
		text += fmt.Sprintf(", %d lapsed", e.Lapses)
	}
	return text
}

// stateText says in a few words where a message stands and until when.
func stateText(e queue.Entry) string {
	var b strings.Builder
	b.WriteString(string(e.State))
	switch {
	case e.State == queue.Processing && e.Deadline.IsZero():
		b.WriteString(", no deadline")
	case e.State == queue.Processing && e.Overdue:
		fmt.Fprintf(&b, ", overdue since %s", when(e.Deadline))
	case e.State == queue.Processing:
		fmt.Fprintf(&b, " until %s", when(e.Deadline))
	case e.State == queue.Scheduled:
		fmt.Fprintf(&b, " for %s", when(e.NotBefore))
	}
	if e.Label != "" {
		fmt.Fprintf(&b, " (%s)", e.Label)
	}
	if e.Returned != "" {
		fmt.Fprintf(&b, ", returned: %s", e.Returned)
	}
	return b.String()
}
