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
load go on. A queue that is paused already stays so; status says which are.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.eachQueue(cmd, args, "paused", store.Pause)
		},
	}
}

// eachQueue makes one change to every queue given: a name that is bad is reported
// and the others go on.
func (a *app) eachQueue(cmd *cobra.Command, queues []string, result string, change func(s store, ctx context.Context, q string) error) error {
	ctx := cmd.Context()
	return a.withChange(ctx, func(s store) error {
		ops := make([]operand, len(queues))
		for i, q := range queues {
			ops[i] = operand{key: q, err: queue.CheckQueue(q), do: func(ctx context.Context) (func(), error) {
				_, err := certain(ctx, s, change(s, ctx, q))
				return func() { a.printSwitched(q, result) }, about(err, facts{queue: q})
			}}
		}
		return a.eachOperand(ctx, result, ops)
	})
}

func (a *app) printSwitched(q, result string) {
	a.did(result, q)
	if a.json {
		a.printJSON(struct {
			Queue  string `json:"queue"`
			Result string `json:"result"` // paused or resumed
		}{q, result})
		return
	}
	a.printf("%s %s\n", result, q)
}
