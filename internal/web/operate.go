//go:build unix

package web

import (
	"context"

	"example.com/holdfast/queue"
)

type reapIn struct {
	Queues    []string `json:"queues" doc:"left out: all"`
	Receipt   string   `json:"receipt" doc:"or one claim, which is ended whatever its deadline: the operator's act"`
	Limit     int      `json:"limit" doc:"the most leases to end. Left out: 100"`
	MaxLapses uint64   `json:"max_lapses" doc:"at this many lapses, this one among them, a message is failed. Left out: 10"`
}

type reapOut struct {
	Returned []returnedLine `json:"returned" doc:"empty: no lease is over"`
}

func reap(ctx context.Context, s *Server, in reapIn) (out reapOut, err error) {
	o := queue.ReapOptions{Queues: in.Queues, Limit: in.Limit, MaxLapses: in.MaxLapses}
	if in.Receipt != "" {
		r, err := queue.ParseReceipt(in.Receipt)
		if err != nil {
			return out, err
		}
		o.Receipt = &r
	}
	returned, err := s.Store.Reap(ctx, o)
	u, err := s.certain(ctx, err)
	if u != nil {
		returned = u.Returned
	}
	out.Returned = []returnedLine{}
	for _, r := range returned {
		out.Returned = append(out.Returned, returnedOf(r))
	}
	return out, err
}

type failedIn struct {
	Name      string `json:"failed_name" required:"true"`
	Namespace string `json:"namespace" doc:"left out: the default one"`
}

func reprocess(ctx context.Context, s *Server, in failedIn) (nothing, error) {
	_, err := s.certain(ctx, s.Store.Reprocess(ctx, in.Name, queue.ReprocessOptions{Namespace: in.Namespace}))
	return nothing{}, err
}

func purge(ctx context.Context, s *Server, in failedIn) (nothing, error) {
	_, err := s.certain(ctx, s.Store.Purge(ctx, in.Name, queue.PurgeOptions{Namespace: in.Namespace}))
	return nothing{}, err
}

type queueIn struct {
	Queue string `json:"queue" required:"true"`
}

func pause(ctx context.Context, s *Server, in queueIn) (nothing, error) {
	_, err := s.certain(ctx, s.Store.Pause(ctx, in.Queue))
	return nothing{}, err
}

func resume(ctx context.Context, s *Server, in queueIn) (nothing, error) {
	_, err := s.certain(ctx, s.Store.Resume(ctx, in.Queue))
	return nothing{}, err
}
