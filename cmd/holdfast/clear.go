//go:build unix

package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

func (a *app) clearCmd() *cobra.Command {
	var leased, yes bool
	cmd := &cobra.Command{
		Use:   "clear QUEUE",
		Short: "Remove the messages of a queue",
		Long: `Remove the pending and returned messages of a queue, and with --leased those in
the hands of workers too. On a terminal it asks first, unless --yes is given.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := queue.CheckQueue(args[0]); err != nil {
				return err
			}
			ctx := cmd.Context()
			return about(a.withChange(ctx, func(s store) error {
				if !yes && a.tty(a.in) && !a.confirm(fmt.Sprintf("remove the messages of %s?", args[0])) {
					return fmt.Errorf("queue %s is as it was: %w", args[0], errDeclined)
				}
				n, err := s.Clear(ctx, args[0], queue.ClearOptions{Leased: leased})
				u, err := certain(ctx, s, err)
				if err == nil {
					a.did("removed", "the messages of "+args[0])
				}
				switch {
				case err != nil:
					return err
				case u != nil:
					a.note("resolved", "the commit was uncertain, and did happen; how many were removed is in the counters of status")
				case a.json:
					a.printJSON(struct {
						Queue   string `json:"queue"`
						Cleared uint64 `json:"cleared"`
					}{args[0], n})
				default:
					a.printf("removed %s from %s\n", plural(int64(n), "message"), args[0])
				}
				return nil
			}), facts{queue: args[0]})
		},
	}
	cmd.Flags().BoolVar(&leased, "leased", false, "remove leased messages too; their workers are then told that they are gone")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// confirm asks on the terminal.
func (a *app) confirm(question string) bool {
	a.out.Flush()
	fmt.Fprintf(a.stderr, "%s [y/N] ", question)
	answer, _ := bufio.NewReader(a.in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
