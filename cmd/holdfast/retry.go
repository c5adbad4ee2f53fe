//go:build unix

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) retryCmd() *cobra.Command {
	var o queue.RetryOptions
	var delay string
	cmd := &cobra.Command{
		Use:   "retry RECEIPT...",
		Short: "Return messages after a failure, which counts toward their cap",
		Long: `Return messages after a failure, to be claimed again, at once or after --delay. Each
keeps the text of --cause as its last error. A message that has failed as often as
--max-failures goes to the failed ones instead, under a name that is free: its ID, or
ID~GENERATION where that is taken. The result says which of the two it was; the exit
code is 0 for both. Attempts that were released, reaped or reprocessed are no failures.` + shortReceiptHelp,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Delay, err = parseDelay(delay); err != nil {
				return err
			}
			if o.MaxFailures == 0 {
				return usagef("--max-failures 0: want at least 1")
			}
			return a.eachReceipt(cmd, args, "settled", func(ctx context.Context, s store, r queue.Receipt) (func(), error) {
				returned, err := s.Retry(ctx, r, o)
				u, err := certain(ctx, s, err)
				if u != nil && len(u.Returned) > 0 {
					returned = u.Returned[0]
				}
				result := "retried"
				if returned.FailedName != "" {
					result = "failed"
				}
				return func() { a.printSettled(r, result, returned.FailedName, returned.NotBefore) }, err
			})
		},
	}
	cmd.Flags().StringVar(&delay, "delay", "0s", "how long until they are due again")
	cmd.Flags().Uint64Var(&o.MaxFailures, "max-failures", queue.DefaultMaxFailures,
		"fail a message that has failed this often, this time included")
	causeFlag(cmd, &o.Cause, fmt.Sprintf("why; kept as the last error, up to %d bytes", queue.MaxErrorBytes))
	return cmd
}

// causeFlag is the flag of retry and fail; --error is the same.
func causeFlag(cmd *cobra.Command, cause *string, usage string) {
	cmd.Flags().StringVar(cause, "cause", "", usage+" (--error is the same)")
	cmd.Flags().StringVar(cause, "error", "", usage)
	if err := cmd.Flags().MarkHidden("error"); err != nil {
		panic(err) // the flag is there
	}
	cmd.MarkFlagsMutuallyExclusive("cause", "error")
}
