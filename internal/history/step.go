package history

import (
	"encoding/json"
	"time"

	"example.com/holdfast/queue"
)

// What a step does. Each is the call of [queue.Store] of the same name, where no
// other is named.
const (
	Enqueue        = "enqueue" // EnqueueBatch, if there are several IDs
	Claim          = "claim"
	Load           = "load"
	Ack            = "ack"
	Release        = "release"
	Retry          = "retry"
	Extend         = "extend"
	Fail           = "fail"
	ReplacePayload = "replace payload"
	Reap           = "reap" // of one claim, if there is a receipt
	Reprocess      = "reprocess"
	Clear          = "clear"
	Purge          = "purge"
	Pause          = "pause"
	Resume         = "resume"
	Namespace      = "namespace" // SetFailedNamespace
	Update         = "update"

	// Looks.
	Status     = "status"
	List       = "list"
	ListFailed = "list failed"
	Peek       = "peek"
	Show       = "show"
	Cursor     = "cursor" // inside an update it sets the cursor

	// These are no calls: Perform does not know them.
	Advance = "advance" // the clock is moved
	Die     = "die"     // the process that Holder names is gone
)

// A Step is one call on a store, as its caller notes it before making it. Times are
// Unix milliseconds, 0 is none.
type Step struct {
	Op      string   `json:"op"`
	Queue   string   `json:"queue,omitempty"`
	IDs     []string `json:"ids,omitempty"`     // enqueue: the messages; load, show: the one; purge, reprocess: the failed name
	Receipt string   `json:"receipt,omitempty"` // what settles, extend, reap, replace payload

	Keys      []string       `json:"keys,omitempty"` // enqueue: of the messages; missing: none
	NotBefore int64          `json:"not_before,omitempty"`
	IfExists  queue.IfExists `json:"if_exists,omitempty"`

	N      int           `json:"n,omitempty"`      // claim, peek: so many messages; reap: so many leases, 0: the default
	Fair   bool          `json:"fair,omitempty"`   // claim
	Lease  time.Duration `json:"lease,omitempty"`  // claim, load, extend; 0: no deadline
	Holder string        `json:"holder,omitempty"` // claim, load: the process that makes the call, to be named in the lease; empty: WithoutHolder

	Delay   time.Duration `json:"delay,omitempty"`  // release, retry; advance: by so much
	Most    uint64        `json:"most,omitempty"`   // retry, reap: the cap; 0: the default
	Cause   string        `json:"cause,omitempty"`  // retry, fail
	As      string        `json:"as,omitempty"`     // fail
	Leased  bool          `json:"leased,omitempty"` // clear
	Version int           `json:"version,omitempty"`

	Space   string   `json:"space,omitempty"`  // purge, reprocess, list failed: the failed namespace; namespace: the one to set
	Cursor  string   `json:"cursor,omitempty"` // cursor, inside an update
	Queues  []string `json:"queues,omitempty"` // status, reap
	Changes []Step   `json:"changes,omitempty"`
}

// With gives the step, and its changes, the receipt where they need one.
func (st Step) With(receipt string) Step {
	switch st.Op {
	case Ack, Release, Retry, Extend, Fail, ReplacePayload:
		st.Receipt = receipt
	}
	changes := st.Changes
	st.Changes = nil
	for _, c := range changes {
		st.Changes = append(st.Changes, c.With(receipt))
	}
	return st
}

// An Answer is what a call returned: of its fields those that belong to the step.
type Answer struct {
	// Unknown says that the caller died: the call happened, or not.
	Unknown bool `json:"unknown,omitempty"`

	Refused string `json:"refused,omitempty"` // the sentinel's text
	At      []int  `json:"at,omitempty"`      // which ones of a batch were refused; which change of an update
	Current uint64 `json:"current,omitempty"` // a lost receipt: the attempt that is current

	Gens     []string `json:"gens,omitempty"`     // enqueue
	Kept     []bool   `json:"kept,omitempty"`     // enqueue
	Revision uint64   `json:"revision,omitempty"` // enqueue, unless Kept; status

	Deliveries []Delivered `json:"deliveries,omitempty"` // claim, load
	Until      int64       `json:"until,omitempty"`      // extend: the deadline; retry: when it is due again
	Failed     string      `json:"failed,omitempty"`     // fail, retry: the failed name
	Reaped     []Reaped    `json:"reaped,omitempty"`
	Count      uint64      `json:"count,omitempty"`  // clear
	Cursor     string      `json:"cursor,omitempty"` // cursor
	Seen       []Sight     `json:"seen,omitempty"`   // list, list failed, peek, show

	Gauges   map[string]queue.QueueStatus `json:"gauges,omitempty"` // status
	Complete bool                         `json:"complete,omitempty"`

	Outcomes []Answer `json:"outcomes,omitempty"` // update
}

// Receipts gives those of the deliveries, of an update too.
func (a Answer) Receipts() []string {
	var out []string
	for _, d := range a.Deliveries {
		out = append(out, d.Receipt)
	}
	for _, o := range a.Outcomes {
		out = append(out, o.Receipts()...)
	}
	return out
}

// A Delivered is a queue.Delivery.
type Delivered struct {
	Receipt    string `json:"receipt"`
	Version    int    `json:"version,omitempty"` // of the payload
	Key        string `json:"key,omitempty"`
	Fence      uint64 `json:"fence"`
	Deadline   int64  `json:"deadline,omitempty"`
	EnqueuedAt int64  `json:"enqueued_at"`
	LastError  string `json:"last_error,omitempty"`
	Failures   uint64 `json:"failures,omitempty"`
	Lapses     uint64 `json:"lapses,omitempty"`
}

// A Reaped is a queue.Returned, as Reap gives it.
type Reaped struct {
	Queue   string          `json:"queue"`
	ID      string          `json:"id"`
	Attempt uint64          `json:"attempt"`
	Cause   queue.ReapCause `json:"cause"`
	Lapses  uint64          `json:"lapses"`
	Failed  string          `json:"failed,omitempty"`
}

// A Sight is a queue.Entry, as far as every engine shows the same.
type Sight struct {
	Queue      string      `json:"queue"`
	ID         string      `json:"id"`
	Gen        string      `json:"gen"`
	State      queue.State `json:"state"`
	Key        string      `json:"key,omitempty"`
	EnqueuedAt int64       `json:"enqueued_at"`
	NotBefore  int64       `json:"not_before,omitempty"`
	Attempts   uint64      `json:"attempts,omitempty"`
	Excused    uint64      `json:"excused,omitempty"`
	Lapses     uint64      `json:"lapses,omitempty"`
	LastError  string      `json:"last_error,omitempty"`
	Returned   string      `json:"returned,omitempty"`
	Receipt    string      `json:"receipt,omitempty"`
	Fence      uint64      `json:"fence,omitempty"`
	Deadline   int64       `json:"deadline,omitempty"`
	Overdue    bool        `json:"overdue,omitempty"`
	Failed     string      `json:"failed,omitempty"`
	Space      string      `json:"space,omitempty"`
	FailedAt   int64       `json:"failed_at,omitempty"`
	Version    int         `json:"version,omitempty"` // of the payload; peek and show only
}

// text shows a step or an answer in a line: what is not set does not show.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // plain data
	}
	return string(b)
}
