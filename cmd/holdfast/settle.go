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
	switch {
	case a.json:
		a.printJSON(settledLine{r.String(), r.Queue, r.ID, result, failedName})
	case failedName != "":
		a.printf("%s %s %s, kept as failed %s\n", result, r.Queue, r.ID, failedName)
	default:
		a.printf("%s %s %s\n", result, r.Queue, r.ID)
	}
}

// settleEach settles every receipt given: one that is refused is reported and the
// others go on.
func (a *app) settleEach(cmd *cobra.Command, given []string, result string, settle func(context.Context, store, queue.Receipt) error) error {
	ctx := cmd.Context()
	return a.withStore(ctx, func(s store) error {
		leases := leaseFinder{s: s}
		for _, text := range given {
			r, err := leases.find(ctx, text)
			if err == nil {
				_, err = certain(ctx, s, settle(ctx, s, r))
			}
			if err != nil {
				a.report(about(err, facts{queue: r.Queue, id: r.ID, receipt: text}))
				continue
			}
			a.printSettled(r, result, "")
		}
		return nil
	})
}
