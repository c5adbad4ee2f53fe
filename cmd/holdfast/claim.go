//go:build unix

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
)

func (a *app) claimCmd() *cobra.Command {
	var n int
	var lease, label string
	var payload, fair bool
	cmd := &cobra.Command{
		Use:   "claim QUEUE",
		Short: "Claim the oldest due messages",
		Long: `Claim the oldest due messages of a queue and print a receipt for each: settle it
with ack, retry, release or fail, or move its deadline with extend. The claim outlives
this command: it names no holder, so it ends when it is settled, or by "holdfast reap"
once it is past its deadline. Until then it shows as overdue, its receipt still
settles it, and claim does not give the message out again. Exit code 1: nothing is
due. Messages whose payload is damaged are moved to failed and reported; the exit code
is then 5, and the deliveries that were printed are good all the same.

Messages of one key come in order and one at a time. With --fair each turn takes the
oldest message of the next key, so that a key with many messages does not hold up
the others; messages without a key share one turn.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := parseLease(lease)
			switch {
			case err != nil:
				return err
			case n < 1:
				return usagef("-n %d: want at least 1", n)
			case payload && n != 1:
				return usagef("--payload prints one payload; it goes with -n 1 only")
			case payload && a.json:
				return usagef("--payload prints bytes; with --json the payload is in the line")
			}
			ctx := cmd.Context()
			return about(a.withChange(ctx, func(s store) error {
				o := queue.ClaimOptions{Max: n, Lease: d, Label: label, Fair: fair, WithoutHolder: true}
				claimed, err := s.Claim(ctx, args[0], o)
				u, err := certain(ctx, s, err)
				if err != nil {
					return err
				}
				if u != nil {
					claimed.Deliveries, claimed.Damaged = u.Deliveries, u.Damaged
				}
				for _, d := range claimed.Deliveries {
					a.printDelivery(d, payload)
				}
				for _, damaged := range claimed.Damaged {
					a.report(about(damaged, facts{space: spaceOf(ctx, s, args[0])}))
				}
				if len(claimed.Deliveries)+len(claimed.Damaged) == 0 {
					return nothingDue(ctx, s, args[0])
				}
				return nil
			}), facts{queue: args[0]})
		},
	}
	cmd.Flags().IntVarP(&n, "number", "n", 1, "claim up to this many messages")
	cmd.Flags().BoolVar(&fair, "fair", false, "rotate over the keys in place of the oldest first")
	leaseFlags(cmd, &lease, &label, &payload)
	return cmd
}

// leaseFlags are the flags of claim and load.
func leaseFlags(cmd *cobra.Command, lease, label *string, payload *bool) {
	leaseFlag(cmd, lease)
	cmd.Flags().StringVar(label, "label", "", "who claims, for people who look")
	cmd.Flags().BoolVar(payload, "payload", false, "print exactly the payload's bytes, and the receipt on stderr")
}

func leaseFlag(cmd *cobra.Command, lease *string) {
	cmd.Flags().StringVar(lease, "lease", queue.DefaultLease.String(), "how long the claim holds; none is for ever")
}

func (a *app) printDelivery(d queue.Delivery, payload bool) {
	r := d.Receipt
	a.did("claimed", r.Queue+" "+r.ID)
	if !payload { // there the receipt goes to stderr anyway
		a.undone.receipts = append(a.undone.receipts, r.String())
	}
	switch {
	case payload:
		a.out.Write(d.Payload)
		a.flush()
		fmt.Fprintln(a.stderr, r)
	case a.json:
		a.printJSONPayload(forms.DeliveryOf(d), d.Payload)
	default:
		a.printf("%s %s\n", r.Queue, r.ID)
		a.row("receipt", "%s", r)
		if d.Deadline.IsZero() {
			a.row("lease", "attempt %d, no deadline", r.Attempt)
		} else {
			a.row("lease", "attempt %d, until %s", r.Attempt, when(d.Deadline))
		}
		if d.LastError != "" {
			a.row("last error", "%s", d.LastError)
		}
		a.printf("  %s\n", printable(string(appendOneLine(nil, d.Payload))))
	}
}
