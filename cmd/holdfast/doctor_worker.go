//go:build unix

package main

import (
	"context"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"example.com/holdfast/internal/doctor/steps"
)

// A doctorWorker goes on with a script where another process was killed, and says so
// before and after each step:
//
//	trying N
//	acknowledged N
type doctorWorker struct{ seed, from, steps uint64 }

func (a *app) doctorWorkerCmd() *cobra.Command {
	var w doctorWorker
	cmd := &cobra.Command{
		Use:    "doctor-worker",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			signal.Ignore(os.Interrupt) // that of the terminal is for the doctor, which kills this process
			return a.withStore(cmd.Context(), func(s store) error { return w.run(cmd.Context(), a, s) })
		},
	}
	flags := cmd.Flags()
	flags.Uint64Var(&w.seed, "seed", 0, "")
	flags.Uint64Var(&w.from, "from", 0, "")
	flags.Uint64Var(&w.steps, "steps", 0, "")
	return cmd
}

func (w doctorWorker) run(ctx context.Context, a *app, s store) error {
	state := steps.New(w.seed)
	for state.Steps < w.from {
		state.Skip()
	}
	for state.Steps < w.from+w.steps {
		if err := a.sayStep("trying", state.Steps+1); err != nil {
			return nil // run tells that stdout is gone
		}
		if err := state.Do(ctx, s); err != nil {
			return err
		}
		if err := a.sayStep("acknowledged", state.Steps); err != nil {
			return nil
		}
	}
	return nil
}

// sayStep writes one line for who outlives this process.
func (a *app) sayStep(word string, n uint64) error {
	a.printf("%s %d\n", word, n)
	return a.out.Flush()
}
