package forms

import (
	"time"

	"example.com/holdfast/queue"
)

// An Entry is one message of a listing, without its payload.
type Entry struct {
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
}

// EntryOf gives the form of an entry.
func EntryOf(e queue.Entry) Entry {
	l := Entry{
		Queue: e.Queue, ID: e.ID, Generation: e.Generation, State: string(e.State), Seq: e.Seq,
		EnqueuedAt: OrNull(e.EnqueuedAt), NotBefore: OrNull(e.NotBefore), Key: e.Key,
		Attempts: e.Attempts, Excused: e.Excused, Lapses: e.Lapses, LastError: e.LastError,
		PayloadBytes: e.PayloadBytes, Object: e.Object,
		Deadline: OrNull(e.Deadline), Overdue: e.Overdue, Label: e.Label, Fence: e.Fence, Returned: e.Returned,
		FailedName: e.FailedName, Namespace: e.Namespace, FailedAt: OrNull(e.FailedAt),
	}
	if e.Receipt.Store != "" {
		l.Receipt = e.Receipt.String()
	}
	return l
}
