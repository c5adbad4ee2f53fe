//go:build unix

package web

import (
	"encoding/json"
	"time"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
)

// The forms of answers that the command does not share, or that have more here.

type nothing struct{}

func enqueuedLines(all []queue.Enqueued) (told []forms.Enqueued) {
	for _, e := range all {
		told = append(told, forms.Enqueued(e))
	}
	return told
}

type deliveryLine struct {
	forms.Delivery
	Payload json.RawMessage `json:"payload" doc:"as it was enqueued, but for white space between its tokens"`
}

func deliveryOf(d queue.Delivery) deliveryLine { return deliveryLine{forms.DeliveryOf(d), d.Payload} }

type damagedLine struct {
	Queue      string `json:"queue"`
	ID         string `json:"id"`
	FailedName string `json:"failed_name"`
	Reason     string `json:"reason"`
}

type claimedLine struct {
	Deliveries []deliveryLine `json:"deliveries" doc:"empty: nothing is due"`
	Damaged    []damagedLine  `json:"damaged,omitempty" doc:"messages whose payload is damaged: they were set aside as failed instead"`
}

func claimedOf(deliveries []queue.Delivery, damaged []*queue.DamagedError) claimedLine {
	l := claimedLine{Deliveries: []deliveryLine{}}
	for _, d := range deliveries {
		l.Deliveries = append(l.Deliveries, deliveryOf(d))
	}
	for _, d := range damaged {
		l.Damaged = append(l.Damaged, damagedLine{d.Queue, d.ID, d.FailedName, d.Reason})
	}
	return l
}

type returnedLine struct {
	Queue      string     `json:"queue"`
	ID         string     `json:"id"`
	Result     string     `json:"result" doc:"returned, or failed: it reached the cap"`
	Cause      string     `json:"cause,omitempty" doc:"of a reaping: deadline, proof or operator"`
	Attempt    uint64     `json:"attempt" doc:"of the claim that ended"`
	Lapses     uint64     `json:"lapses,omitempty"`
	NotBefore  *time.Time `json:"not_before,omitempty" doc:"when it is due again; left out: at once"`
	FailedName string     `json:"failed_name,omitempty"`
}

func returnedOf(r queue.Returned) returnedLine {
	l := returnedLine{r.Queue, r.ID, "returned", string(r.Cause), r.Attempt, r.Lapses, forms.OrNull(r.NotBefore), r.FailedName}
	if r.FailedName != "" {
		l.Result = "failed"
	}
	return l
}

type queueLine struct {
	forms.Queue
	Oldest *time.Time `json:"oldest,omitempty" doc:"when the first of its live messages was enqueued, where it was asked for"`
}

type statusLine struct {
	Store    string               `json:"store" doc:"the store's id"`
	Now      time.Time            `json:"now" doc:"by the server's clock"`
	Revision uint64               `json:"revision"`
	Settled  bool                 `json:"settled" doc:"false: a dead owner's work is open, or the look was not under the lock; the store may need the operator"`
	Owner    *queue.Owner         `json:"owner" doc:"whose work is open"`
	Queues   map[string]queueLine `json:"queues"`
}

type entryLine struct {
	forms.Entry
	Payload     json.RawMessage `json:"payload,omitempty" doc:"of one message that was asked for; left out when it is damaged"`
	PayloadText string          `json:"payload_text,omitempty" doc:"the same as text: its exact bytes"`
}

func entryOf(e queue.Entry) entryLine {
	return entryLine{forms.EntryOf(e), e.Payload, string(e.Payload)}
}

type pageLine struct {
	Entries  []entryLine `json:"entries"`
	Next     string      `json:"next" doc:"pass as after for the next page; empty: this was the last"`
	Revision uint64      `json:"revision"`
	Settled  bool        `json:"settled"`
}

func pageOf(p queue.Page) pageLine {
	l := pageLine{Entries: []entryLine{}, Next: p.Next, Revision: p.Revision, Settled: p.Settled}
	for _, e := range p.Entries {
		l.Entries = append(l.Entries, entryOf(e))
	}
	return l
}
