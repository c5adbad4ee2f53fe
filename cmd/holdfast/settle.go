//go:build unix

package main

import (
	"context"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

// settledLine is the machine form of a settlement.
type settledLine struct {
	Receipt    string `json:"receipt"`
	Queue      string `json:"queue"`
	ID         string `json:"id"`
	Result     string `json:"result"` // acked, released or failed
	FailedName string `json:"failed_name,omitempty"`
}

func (a *app) printSettled(r queue.Receipt, result, failedName string) {
	a.did(result, r.Queue+" "+r.ID)
	switch {
	case a.json:
		a.printJSON(settledLine{r.String(), r.Queue, r.ID, result, failedName})
	case failedName != "":
		a.printf("%s %s %s, kept as failed %s\n", result, r.Queue, r.ID, failedName)
	default:
		a.printf("%s %s %s\n", result, r.Queue, r.ID)
	}
}

// A settling settles one claim; fail gives the failed name, for errors too.
type settling func(ctx context.Context, s store, r queue.Receipt) (failedName string, err error)

// settleEach settles every receipt given: one that is refused is reported and the
// others go on.
func (a *app) settleEach(cmd *cobra.Command, given []string, result string, settle settling) error {
	ctx := cmd.Context()
	return a.withChange(ctx, func(s store) error {
		leases := leaseFinder{s: s}
		ops := make([]operand, len(given))
		for i, text := range given {
			r, err := leases.find(ctx, text)
			if err != nil {
				ops[i] = operand{key: text, err: about(err, facts{receipt: text})}
				continue
			}
			ops[i] = operand{key: r.String(), do: func(ctx context.Context) (func(), error) {
				name, err := settle(ctx, s, r)
				if err != nil {
					return nil, about(err, facts{queue: r.Queue, id: r.ID, receipt: text, name: name})
				}
				return func() { a.printSettled(r, result, name) }, nil
			}}
		}
		return a.eachOperand(ctx, "settled", ops)
	})
}
