//go:build unix

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
)

// settledLine is the machine form of a settlement.
type settledLine struct {
	Receipt    string     `json:"receipt"`
	Queue      string     `json:"queue"`
	ID         string     `json:"id"`
	Result     string     `json:"result"` // acked, released, retried or failed
	FailedName string     `json:"failed_name,omitempty"`
	NotBefore  *time.Time `json:"not_before,omitempty"` // of a retry with a delay
}

// printSettled tells a settlement. A message that went to failed has a name there;
// one that is due later was returned.
func (a *app) printSettled(r queue.Receipt, result, failedName string, notBefore time.Time) {
	a.did(result, r.Queue+" "+r.ID)
	switch {
	case a.json:
		a.printJSON(settledLine{r.String(), r.Queue, r.ID, result, failedName, forms.OrNull(notBefore)})
	case failedName != "":
		a.printf("%s %s %s, kept as failed %s\n", result, r.Queue, r.ID, failedName)
	case !notBefore.IsZero():
		a.printf("%s %s %s, due again at %s\n", result, r.Queue, r.ID, when(notBefore))
	default:
		a.printf("%s %s %s\n", result, r.Queue, r.ID)
	}
}

// An acting does something to one claim; say prints what came of it.
type acting func(ctx context.Context, s store, r queue.Receipt) (say func(), err error)

// eachReceipt acts on every receipt given: one that is refused is reported and the
// others go on. Verb says what an interrupted command had done to some of them.
func (a *app) eachReceipt(cmd *cobra.Command, given []string, verb string, act acting) error {
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
				say, err := act(ctx, s, r)
				return say, about(err, facts{queue: r.Queue, id: r.ID, receipt: text})
			}}
		}
		return a.eachOperand(ctx, verb, ops)
	})
}
