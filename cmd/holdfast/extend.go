//go:build unix

package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
)

func (a *app) extendCmd() *cobra.Command {
	var lease string
	cmd := &cobra.Command{
		Use:   "extend RECEIPT...",
		Short: "Move the deadline of claims",
		Long: `Move the deadline of claims to --lease from now. A message that was reaped and that
nobody has claimed since goes back to its worker, and the lapse is forgotten: give its
whole receipt, for a short one is looked up among the current claims.` + shortReceiptHelp,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := parseLease(lease)
			if err != nil {
				return err
			}
			return a.eachReceipt(cmd, args, "extended", func(ctx context.Context, s store, r queue.Receipt) (func(), error) {
				deadline, err := s.Extend(ctx, r, d)
				u, err := certain(ctx, s, err)
				if u != nil {
					deadline = u.Deadline
				}
				return func() { a.printExtended(r, deadline) }, err
			})
		},
	}
	leaseFlag(cmd, &lease)
	return cmd
}

// extendedLine is the machine form of an extension.
type extendedLine struct {
	Receipt  string     `json:"receipt"`
	Queue    string     `json:"queue"`
	ID       string     `json:"id"`
	Result   string     `json:"result"`   // extended
	Deadline *time.Time `json:"deadline"` // null: none
}

func (a *app) printExtended(r queue.Receipt, deadline time.Time) {
	a.did("extended", r.Queue+" "+r.ID)
	switch {
	case a.json:
		a.printJSON(extendedLine{r.String(), r.Queue, r.ID, "extended", forms.OrNull(deadline)})
	case deadline.IsZero():
		a.printf("extended %s %s, no deadline\n", r.Queue, r.ID)
	default:
		a.printf("extended %s %s until %s\n", r.Queue, r.ID, when(deadline))
	}
}
