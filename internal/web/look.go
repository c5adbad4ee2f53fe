//go:build unix

package web

import (
	"context"
	"maps"
	"slices"
	"time"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
)

const (
	maxPage   = 1000 // entries of one answer
	maxOldest = 100  // queues whose oldest message is looked for in one answer
)

type statusIn struct {
	Queues []string `json:"queue" doc:"may stand there several times. Left out: all"`
	Oldest bool     `json:"oldest" doc:"say when the first live message of each queue was enqueued, of the first 100 that have some"`
}

func status(ctx context.Context, s *Server, in statusIn) (out statusLine, err error) {
	for _, name := range in.Queues {
		if err := queue.CheckQueue(name); err != nil {
			return out, err
		}
	}
	st, err := s.Store.Status(ctx, queue.StatusOptions{Queues: in.Queues})
	if err != nil {
		return out, err
	}
	out = statusLine{
		Store: s.Store.ID(), Now: time.Now().UTC(), Revision: st.Revision, Settled: st.Settled, Owner: st.Owner,
		Queues: map[string]queueLine{},
	}
	looked := 0
	for _, name := range slices.Sorted(maps.Keys(st.Queues)) {
		l := queueLine{Queue: forms.QueueOf(st.Queues[name], st.Settled)}
		if in.Oldest && l.Unacked > 0 && looked < maxOldest {
			looked++
			p, err := s.Store.List(ctx, name, queue.ListOptions{Limit: 1})
			if err != nil {
				return out, err
			}
			if len(p.Entries) > 0 {
				l.Oldest = forms.OrNull(p.Entries[0].EnqueuedAt)
			}
		}
		out.Queues[name] = l
	}
	return out, nil
}

type listIn struct {
	After string `json:"after" doc:"next of the page before. Left out: from the start"`
	Limit int    `json:"limit" doc:"the most entries, 1,000 at most. Left out: 100"`
}

func (in listIn) options() (queue.ListOptions, error) {
	if in.Limit < 0 || in.Limit > maxPage {
		return queue.ListOptions{}, badf("limit is %d: from 1 to %d", in.Limit, maxPage)
	}
	return queue.ListOptions{After: in.After, Limit: in.Limit}, nil
}

type messagesIn struct {
	Queue string `json:"queue" required:"true"`
	listIn
}

func messages(ctx context.Context, s *Server, in messagesIn) (out pageLine, err error) {
	o, err := in.options()
	if err != nil {
		return out, err
	}
	p, err := s.Store.List(ctx, in.Queue, o)
	return pageOf(p), err
}

type messageOfIn struct {
	Queue string `json:"queue" required:"true"`
	ID    string `json:"id" required:"true"`
}

type entriesLine struct {
	Entries []entryLine `json:"entries"`
}

func message(ctx context.Context, s *Server, in messageOfIn) (out entriesLine, err error) {
	entries, err := s.Store.Show(ctx, in.Queue, in.ID)
	for _, e := range entries {
		out.Entries = append(out.Entries, entryOf(e))
	}
	return out, err
}

type failedListIn struct {
	Namespace string `json:"namespace" doc:"left out: the default one"`
	Queue     string `json:"queue" doc:"only those that came from this queue"`
	listIn
}

func failed(ctx context.Context, s *Server, in failedListIn) (out pageLine, err error) {
	o, err := in.options()
	if err != nil {
		return out, err
	}
	p, err := s.Store.ListFailed(ctx, queue.FailedOptions{Namespace: in.Namespace, Queue: in.Queue}, o)
	return pageOf(p), err
}

func failedMessage(ctx context.Context, s *Server, in failedIn) (entryLine, error) {
	e, err := s.Store.ShowFailed(ctx, in.Name, queue.FailedOptions{Namespace: in.Namespace})
	return entryOf(e), err
}

// A statsLine is holdfast.Stats.
type statsLine struct {
	Calls           uint64 `json:"calls" doc:"that were served under the lock"`
	Rounds          uint64 `json:"rounds" doc:"in which they were: calls that come together share one"`
	LargestRound    uint64 `json:"largest_round"`
	Commits         uint64 `json:"commits"`
	Retries         uint64 `json:"retries" doc:"commits decided anew for want of room"`
	Uncertain       uint64 `json:"uncertain" doc:"commits that may have happened or not"`
	LockWaits       uint64 `json:"lock_waits" doc:"times that a call alone found the lock taken"`
	Parses          uint64 `json:"parses" doc:"times that the state was read anew, after commits of others"`
	Syncs           uint64 `json:"syncs" doc:"calls of fsync by commits"`
	BytesWritten    uint64 `json:"bytes_written"`
	ObjectsMade     uint64 `json:"objects_made"`
	ObjectsPrepared uint64 `json:"objects_prepared"`
	PreparedUsed    uint64 `json:"prepared_used"`
	RunsSealed      uint64 `json:"runs_sealed"`
	RunsRead        uint64 `json:"runs_read"`
	LastRevision    uint64 `json:"last_revision" doc:"of this server's newest commit"`
}

func statsOf(s holdfast.Stats) statsLine {
	return statsLine{
		s.Calls, s.Rounds, s.LargestRound, s.Commits, s.Retries, s.Uncertain, s.LockWaits, s.Parses, s.Syncs,
		s.BytesWritten, s.ObjectsMade, s.ObjectsPrepared, s.PreparedUsed, s.RunsSealed, s.RunsRead, s.LastRevision,
	}
}

func stats(_ context.Context, s *Server, _ nothing) (statsLine, error) {
	return statsOf(s.Store.Stats()), nil
}
