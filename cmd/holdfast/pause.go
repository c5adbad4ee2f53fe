//go:build unix

package main

import (
	"context"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) pauseCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "pause QUEUE...",
		Short: "Make claims of queues find nothing until resume",
		Long: `Make claims of queues find nothing until "holdfast resume". Enqueue, settling, reap and
load go on. A queue that is paused already stays so; status says which are. One that
does not exist yet is paused all the same, and it says so.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachQueue(cmd, args, "paused", store.Pause, isNew)
		},
	}
}

// isNew reports whether the store has no such queue. What it cannot tell is not new.
func isNew(ctx context.Context, s store, q string) bool {
	st, err := s.Status(ctx, queue.StatusOptions{Queues: []string{q}})
	return err == nil && st.Settled && st.Queues[q] == queue.QueueStatus{}
}

// eachQueue makes one change to every queue given: a name that is bad is reported
// and the others go on. Before that, fresh finds those that are to be told as new.
func (a *app) eachQueue(cmd *cobra.Command, queues []string, result string, change func(s store, ctx context.Context, q string) error, fresh func(ctx context.Context, s store, q string) bool) error {
	ctx := cmd.Context()
	return a.withChange(ctx, func(s store) error {
		ops := make([]operand, len(queues))
		for i, q := range queues {
			ops[i] = operand{key: q, err: queue.CheckQueue(q), do: func(ctx context.Context) (func(), error) {
				isNew := fresh(ctx, s, q)
				_, err := certain(ctx, s, change(s, ctx, q))
				return func() { a.printSwitched(q, result, isNew) }, about(err, facts{queue: q})
			}}
		}
		return a.eachOperand(ctx, result, ops)
	})
}

func (a *app) printSwitched(q, result string, isNew bool) {
	a.did(result, q)
	if a.json {
		a.printJSON(struct {
			Queue  string `json:"queue"`
			Result string `json:"result"` // paused or resumed
			New    bool   `json:"new,omitempty"`
		}{q, result, isNew})
		return
	}
	a.printf("%s %s\n", result, q)
	if isNew {
		a.note("new", "%s is new: it will be paused when messages come", q)
	}
}
