//go:build unix

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

// demoWork is how long a message of the demo takes.
const demoWork = 2 * time.Millisecond

// A demoWorker claims, works and acks until nothing is due. It writes one line
// for each step, so that the demo can keep its ledger:
//
//	claimed ID ATTEMPT SHA256-OF-THE-PAYLOAD RECEIPT
//	acked ID
//	stalled ID
type demoWorker struct {
	label      string
	batch      int
	stallAfter int // hang in the middle of this message, from 1; 0: never

	mu   sync.Mutex // one line at a time
	seen int
}

func (a *app) demoWorkerCmd() *cobra.Command {
	var w demoWorker
	cmd := &cobra.Command{
		Use:    "demo-worker",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd.Context(), func(s store) error { return w.run(cmd.Context(), a, s) })
		},
	}
	cmd.Flags().StringVar(&w.label, "label", "", "")
	cmd.Flags().IntVar(&w.batch, "batch", 1, "")
	cmd.Flags().IntVar(&w.stallAfter, "stall-after", 0, "")
	return cmd
}

func (w *demoWorker) run(ctx context.Context, a *app, s store) error {
	say := func(format string, args ...any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		a.printf(format+"\n", args...)
		a.out.Flush()
	}
	for {
		claimed, err := s.Claim(ctx, demoQueue, queue.ClaimOptions{
			Max: w.batch, Lease: queue.NoDeadline, Label: w.label, WithoutHolder: true,
		})
		if err != nil {
			return err
		}
		if len(claimed.Deliveries) == 0 {
			return nil
		}
		errs := make(chan error, len(claimed.Deliveries))
		for _, d := range claimed.Deliveries {
			say("claimed %s %d %s %s", d.Receipt.ID, d.Receipt.Attempt, hashOf(d.Payload), d.Receipt)
			if w.seen++; w.seen == w.stallAfter {
				say("stalled %s", d.Receipt.ID)
				<-ctx.Done()
				return ctx.Err()
			}
			time.Sleep(demoWork)
			go func() { // acks made at once share a commit
				err := s.Ack(ctx, d.Receipt)
				if err == nil {
					say("acked %s", d.Receipt.ID)
				} else {
					err = fmt.Errorf("ack of %s: %w", d.Receipt.ID, err)
				}
				errs <- err
			}()
		}
		var first error
		for range claimed.Deliveries {
			if err := <-errs; first == nil {
				first = err
			}
		}
		if first != nil {
			return first
		}
	}
}

func hashOf(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}
