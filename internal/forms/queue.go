package forms

import "example.com/holdfast/queue"

// A Queue is the gauges and counters of one queue.
type Queue struct {
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
}

// QueueOf gives the form of a queue; settled says whether completeness may be told.
func QueueOf(q queue.QueueStatus, settled bool) Queue {
	return Queue{
		Pending: q.Pending, Processing: q.Processing, Unacked: q.Unacked(), Complete: settled && q.Complete(), Ready: q.Ready,
		Scheduled: q.Scheduled, Blocked: q.Blocked, Overdue: q.Overdue, Failed: q.Failed, Paused: q.Paused,
		Importing: q.Importing, Space: q.FailedNamespace, Counters: q.Counters,
	}
}
