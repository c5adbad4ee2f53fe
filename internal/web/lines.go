//go:build unix

package web

import (
	"encoding/json"
	"time"

	"example.com/holdfast/queue"
)

// The forms of answers. Their fields have the names that the command's --json has.

type nothing struct{}

type enqueuedLine struct {
	Queue      string `json:"queue"`
	ID         string `json:"id"`
	Generation string `json:"generation" doc:"names this acceptance"`
	Revision   uint64 `json:"revision" doc:"the store's, in which it became durable"`
	Kept       bool   `json:"kept,omitempty" doc:"the ID was live and if_exists said keep: this is the live one"`
}

func enqueuedLines(all []queue.Enqueued) (lines []enqueuedLine) {
	for _, e := range all {
		lines = append(lines, enqueuedLine(e))
	}
	return lines
}

type deliveryLine struct {
	Receipt    string          `json:"receipt" doc:"proof of this claim: settle with it"`
	Queue      string          `json:"queue"`
	ID         string          `json:"id"`
	Generation string          `json:"generation"`
	Attempt    uint64          `json:"attempt"`
	Fence      uint64          `json:"fence" doc:"grows with every claim of the store"`
	Deadline   *time.Time      `json:"deadline"`
	Key        string          `json:"key,omitempty"`
	EnqueuedAt time.Time       `json:"enqueued_at"`
	LastError  string          `json:"last_error,omitempty"`
	Failures   uint64          `json:"failures" doc:"attempts so far that ended in a real failure"`
	Lapses     uint64          `json:"lapses" doc:"claims so far that ended by reaping"`
	Payload    json.RawMessage `json:"payload" doc:"as it was enqueued, but for white space between its tokens"`
}

func deliveryOf(d queue.Delivery) deliveryLine {
	r := d.Receipt
	return deliveryLine{
		r.String(), r.Queue, r.ID, r.Generation, r.Attempt, d.Fence, orNull(d.Deadline), d.Key,
		d.EnqueuedAt.UTC(), d.LastError, d.Failures, d.Lapses, d.Payload,
	}
}

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
	l := returnedLine{r.Queue, r.ID, "returned", string(r.Cause), r.Attempt, r.Lapses, orNull(r.NotBefore), r.FailedName}
	if r.FailedName != "" {
		l.Result = "failed"
	}
	return l
}

type queueLine struct {
	Pending    uint64         `json:"pending" doc:"ready, scheduled and blocked"`
	Processing uint64         `json:"processing" doc:"leased"`
	Unacked    uint64         `json:"unacked" doc:"pending and processing"`
	Complete   bool           `json:"complete" doc:"nothing is pending and nothing processing"`
	Ready      uint64         `json:"ready"`
	Scheduled  uint64         `json:"scheduled"`
	Blocked    uint64         `json:"blocked"`
	Overdue    uint64         `json:"overdue" doc:"processing past its deadline"`
	Failed     uint64         `json:"failed"`
	Paused     bool           `json:"paused"`
	Importing  bool           `json:"importing,omitempty"`
	Space      string         `json:"failed_namespace" doc:"empty: the default one"`
	Counters   queue.Counters `json:"counters"`
	Oldest     *time.Time     `json:"oldest,omitempty" doc:"when the first of its live messages was enqueued, where it was asked for"`
}

type statusLine struct {
	Store    string               `json:"store" doc:"the store's id"`
	Now      time.Time            `json:"now" doc:"by the server's clock"`
	Revision uint64               `json:"revision"`
	Settled  bool                 `json:"settled" doc:"false: a dead owner's work is open, or the look was not under the lock; the store may need the operator"`
	Owner    *queue.Owner         `json:"owner" doc:"whose work is open"`
	Queues   map[string]queueLine `json:"queues"`
}

func queueOf(q queue.QueueStatus, settled bool) queueLine {
	return queueLine{
		Pending: q.Pending, Processing: q.Processing, Unacked: q.Unacked(), Complete: settled && q.Complete(), Ready: q.Ready,
		Scheduled: q.Scheduled, Blocked: q.Blocked, Overdue: q.Overdue, Failed: q.Failed, Paused: q.Paused,
		Importing: q.Importing, Space: q.FailedNamespace, Counters: q.Counters,
	}
}

type entryLine struct {
	Queue        string     `json:"queue"`
	ID           string     `json:"id"`
	Generation   string     `json:"generation"`
	State        string     `json:"state" doc:"ready, scheduled, blocked, processing or failed"`
	Seq          uint64     `json:"seq" doc:"the order of enqueue"`
	EnqueuedAt   *time.Time `json:"enqueued_at"`
	NotBefore    *time.Time `json:"not_before"`
	Key          string     `json:"key,omitempty"`
	Attempts     uint64     `json:"attempts"`
	Excused      uint64     `json:"excused"`
	Lapses       uint64     `json:"lapses"`
	LastError    string     `json:"last_error,omitempty"`
	PayloadBytes int64      `json:"payload_bytes"`
	Object       string     `json:"object,omitempty"`

	Receipt  string     `json:"receipt,omitempty" doc:"of a message that is processing"`
	Deadline *time.Time `json:"deadline"`
	Overdue  bool       `json:"overdue"`
	Label    string     `json:"label,omitempty" doc:"who claimed, as it said"`
	Fence    uint64     `json:"fence,omitempty"`
	Returned string     `json:"returned,omitempty" doc:"how it came back: reaped, retried, released or reprocessed"`

	FailedName string     `json:"failed_name,omitempty"`
	Namespace  string     `json:"namespace,omitempty"`
	FailedAt   *time.Time `json:"failed_at,omitempty"`

	Payload     json.RawMessage `json:"payload,omitempty" doc:"of one message that was asked for; left out when it is damaged"`
	PayloadText string          `json:"payload_text,omitempty" doc:"the same as text: its exact bytes"`
}

func entryOf(e queue.Entry) entryLine {
	l := entryLine{
		Queue: e.Queue, ID: e.ID, Generation: e.Generation, State: string(e.State), Seq: e.Seq,
		EnqueuedAt: orNull(e.EnqueuedAt), NotBefore: orNull(e.NotBefore), Key: e.Key,
		Attempts: e.Attempts, Excused: e.Excused, Lapses: e.Lapses, LastError: e.LastError,
		PayloadBytes: e.PayloadBytes, Object: e.Object,
		Deadline: orNull(e.Deadline), Overdue: e.Overdue, Label: e.Label, Fence: e.Fence, Returned: e.Returned,
		FailedName: e.FailedName, Namespace: e.Namespace, FailedAt: orNull(e.FailedAt), Payload: e.Payload, PayloadText: string(e.Payload),
	}
	if e.Receipt.Store != "" {
		l.Receipt = e.Receipt.String()
	}
	return l
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

// orNull makes a zero time null.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
