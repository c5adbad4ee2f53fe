//go:build unix

package main

import (
	"github.com/spf13/cobra"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

func (a *app) recoverCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "recover",
		Short: "Let a store go on whose last writer died inside a commit",
		Long: `Let a store go on after a program was killed inside a commit, or was left uncertain
of one. Running this is your consent; that the writer is dead is known from the
kernel, which let go of its lock. The state that is there is committed afresh:
nothing that was accepted is lost, nothing is undone. Where there is nothing to
recover, nothing is changed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			a.bound = lookBytes // it adds next to nothing to a state of any size
			return a.withChange(ctx, func(s store) error {
				r, err := s.Recover(ctx)
				if err != nil {
					return err
				}
				if r.Owner != nil {
					a.did("recovered", "the store in "+a.dir)
				}
				a.printRecovery(r)
				return nil
			})
		},
	}
}

func (a *app) printRecovery(r holdfast.Recovery) {
	switch {
	case a.json:
		a.printJSON(struct {
			Recovered    bool         `json:"recovered"`
			Owner        *queue.Owner `json:"owner"`
			Revision     uint64       `json:"revision"`
			TempsRemoved int          `json:"temps_removed"`
		}{r.Owner != nil, r.Owner, r.Revision, r.TempsRemoved})
	case r.Owner == nil:
		a.printf("nothing to recover\n")
	default:
		a.printf("%s\n", printable((&holdfast.StaleLockError{Owner: *r.Owner}).Error()))
		a.printf("recovered at revision %d\n", r.Revision)
	}
	if !a.json && r.TempsRemoved > 0 {
		a.printf("removed %s\n", plural(int64(r.TempsRemoved), "leftover temp"))
	}
}
