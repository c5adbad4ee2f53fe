package forms

import (
	"time"

	"example.com/holdfast/queue"
)

// A Delivery is a claimed message without its payload.
type Delivery struct {
	Receipt    string     `json:"receipt" doc:"proof of this claim: settle with it"`
	Queue      string     `json:"queue"`
	ID         string     `json:"id"`
	Generation string     `json:"generation"`
	Attempt    uint64     `json:"attempt"`
	Fence      uint64     `json:"fence" doc:"grows with every claim of the store"`
	Deadline   *time.Time `json:"deadline"`
	Key        string     `json:"key,omitempty"`
	EnqueuedAt time.Time  `json:"enqueued_at"`
	LastError  string     `json:"last_error,omitempty"`
	Failures   uint64     `json:"failures" doc:"attempts so far that ended in a real failure"`
	Lapses     uint64     `json:"lapses" doc:"claims so far that ended by reaping"`
}

// DeliveryOf gives the form of a delivery.
func DeliveryOf(d queue.Delivery) Delivery {
	r := d.Receipt
	return Delivery{
		r.String(), r.Queue, r.ID, r.Generation, r.Attempt, d.Fence, OrNull(d.Deadline), d.Key,
		d.EnqueuedAt.UTC(), d.LastError, d.Failures, d.Lapses,
	}
}
