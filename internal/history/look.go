package history

import (
	"context"
	"fmt"

	"example.com/holdfast/queue"
)

// look makes a call that changes nothing.
func look(ctx context.Context, s queue.Store, st Step) (a Answer, err error) {
	var entries []queue.Entry
	switch st.Op {
	case Status:
		var status queue.Status
		status, err = s.Status(ctx, queue.StatusOptions{Queues: st.Queues})
		if err == nil && !status.Settled {
			err = fmt.Errorf("an unsettled status: %+v", status.Owner)
		}
		a.Revision, a.Gauges, a.Complete = status.Revision, status.Queues, status.Complete()
	case Cursor:
		a.Cursor, err = s.Cursor(ctx, st.Queue)
	case List:
		var page queue.Page
		page, err = s.List(ctx, st.Queue, queue.ListOptions{Limit: queue.MaxClaim})
		a.Revision, entries = page.Revision, page.Entries
	case ListFailed:
		var page queue.Page
		page, err = s.ListFailed(ctx, queue.FailedOptions{Namespace: st.Space, Queue: st.Queue}, queue.ListOptions{Limit: queue.MaxClaim})
		a.Revision, entries = page.Revision, page.Entries
	case Peek:
		entries, err = s.Peek(ctx, st.Queue, st.N)
	case Show:
		entries, err = s.Show(ctx, st.Queue, st.IDs[0])
	default:
		err = fmt.Errorf("no step %q", st.Op)
	}
	for _, e := range entries {
		seen, wrong := sight(e)
		if wrong != nil {
			return a, wrong
		}
		a.Seen = append(a.Seen, seen)
	}
	return a, err
}

func sight(e queue.Entry) (Sight, error) {
	s := Sight{
		Queue: e.Queue, ID: e.ID, Gen: e.Generation, State: e.State, Key: e.Key,
		EnqueuedAt: millis(e.EnqueuedAt), NotBefore: millis(e.NotBefore),
		Attempts: e.Attempts, Excused: e.Excused, Lapses: e.Lapses, LastError: e.LastError,
		Returned: e.Returned, Fence: e.Fence, Deadline: millis(e.Deadline), Overdue: e.Overdue,
		Failed: e.FailedName, Space: e.Namespace, FailedAt: millis(e.FailedAt),
	}
	if e.State == queue.Processing {
		s.Receipt = e.Receipt.String()
	}
	var err error
	if e.Payload != nil {
		s.Version, err = versionOf(e.ID, e.Payload)
	}
	return s, err
}
