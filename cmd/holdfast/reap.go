//go:build unix

package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) reapCmd() *cobra.Command {
	var o queue.ReapOptions
	var receipts []string
	cmd := &cobra.Command{
		Use:   "reap [QUEUE...]",
		Short: "Return messages whose lease is over",
		Long: `End the leases that are past their deadline, and those whose holder is proven dead, in
the queues named or in all, and return their messages. A message that was reaped as
often as --max-lapses goes to the failed ones instead, under a name that is free: its
ID, or ID~GENERATION where that is taken. Until its next claim the last receipt of a
reaped message still settles it. Exit code 1: no lease is over.

With --receipt that one claim is ended whatever its deadline: use it for a claim
without deadline whose worker is known to be gone. It may be given several times.` + shortReceiptHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.Limit < 1 || o.Limit > queue.MaxClaim:
				return usagef("--limit %d: from 1 to %d", o.Limit, queue.MaxClaim)
			case o.MaxLapses == 0:
				return usagef("--max-lapses 0: want at least 1")
			case len(receipts) > 0 && len(args) > 0:
				return usagef("give queues or --receipt, not both; each receipt has a --receipt of its own")
			case len(receipts) > 0:
				return a.reapNamed(cmd, receipts, o)
			}
			for _, q := range args {
				if strings.Contains(q, ":") { // no queue has one
					return usagef("to end one named claim: reap --receipt RECEIPT")
				}
				if err := queue.CheckQueue(q); err != nil {
					return err
				}
			}
			o.Queues = args
			return a.reapOver(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Limit, "limit", queue.DefaultReapLimit, "end at most this many leases")
	flags.Uint64Var(&o.MaxLapses, "max-lapses", queue.DefaultMaxLapses, "fail a message that was reaped this often, this time included")
	flags.StringArrayVar(&receipts, "receipt", nil, "end the claim of this receipt, whatever its deadline")
	return cmd
}

// reapOver ends the leases that are over.
func (a *app) reapOver(ctx context.Context, o queue.ReapOptions) error {
	return a.withChange(ctx, func(s store) error {
		reaped, err := s.Reap(ctx, o)
		u, err := certain(ctx, s, err)
		if err != nil {
			return err
		}
		if u != nil {
			reaped = u.Returned
		}
		for _, r := range reaped {
			a.printReaped(r, "")
		}
		switch len(reaped) {
		case 0:
			where := ""
			if len(o.Queues) > 0 {
				where = " in " + strings.Join(o.Queues, ", ")
			}
			return nothingf("no lease is over%s", where)
		case o.Limit:
			a.note("more", "there may be more; run: holdfast %s --dir %s", strings.Join(append([]string{"reap"}, o.Queues...), " "), shellWord(a.dir))
		}
		return nil
	})
}

// reapNamed ends each claim named, the operator's act.
func (a *app) reapNamed(cmd *cobra.Command, given []string, o queue.ReapOptions) error {
	return a.eachReceipt(cmd, given, "reaped", func(ctx context.Context, s store, r queue.Receipt) (func(), error) {
		o := o
		o.Receipt = &r
		reaped, err := s.Reap(ctx, o)
		u, err := certain(ctx, s, err)
		if u != nil {
			reaped = u.Returned
		}
		return func() {
			for _, returned := range reaped {
				a.printReaped(returned, r.String())
			}
		}, err
	})
}

// reapedLine is the machine form of a lease that was ended.
type reapedLine struct {
	Receipt    string `json:"receipt,omitempty"` // as it was named
	Queue      string `json:"queue"`
	ID         string `json:"id"`
	Result     string `json:"result"`  // reaped or failed
	Cause      string `json:"cause"`   // deadline, proof or operator
	Attempt    uint64 `json:"attempt"` // of the claim that ended
	Lapses     uint64 `json:"lapses"`
	FailedName string `json:"failed_name,omitempty"`
}

func (a *app) printReaped(r queue.Returned, receipt string) {
	result, kept := "reaped", ""
	if r.FailedName != "" {
		result, kept = "failed", ", kept as failed "+r.FailedName
	}
	a.did(result, r.Queue+" "+r.ID)
	if a.json {
		a.printJSON(reapedLine{receipt, r.Queue, r.ID, result, string(r.Cause), r.Attempt, r.Lapses, r.FailedName})
		return
	}
	why := map[queue.ReapCause]string{
		queue.ByDeadline: "its lease was past its deadline",
		queue.ByProof:    "its holder is dead",
		queue.ByOperator: "it was named",
	}[r.Cause]
	a.printf("%s %s %s%s: %s; attempt %d, reaped %s so far\n", result, r.Queue, r.ID, kept, why, r.Attempt, plural(int64(r.Lapses), "time"))
}
