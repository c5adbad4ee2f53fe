//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"

	"example.com/holdfast/queue"
)

// takeOver brings back what the dead workers held: worker-A's message by load,
// worker-B's, if it held one, by release.
func (d *demo) takeOver(ctx context.Context) error {
	d.say("5. What the dead workers held:")
	if err := d.decideInFlight(ctx); err != nil {
		return err
	}
	var held []queue.Entry
	err := eachLive(ctx, d.s, demoQueue, func(e queue.Entry) {
		if e.State == queue.Processing {
			held = append(held, e)
		}
	})
	if err != nil {
		return err
	}
	for _, e := range held {
		d.say("   %s, held by %s as attempt %d:", e.ID, e.Label, e.Attempts)
		if e.Label == "worker-A" {
			err = d.load(ctx, e)
		} else {
			err = d.release(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	if d.result.TakenOver != 1 {
		return fmt.Errorf("%w: worker-A's message was taken over %d times", errDemo, d.result.TakenOver)
	}
	return nil
}

// decideInFlight settles the claims of which no ack was seen: where the message is
// gone from the store, its ack did happen and only the answer was lost.
func (d *demo) decideInFlight(ctx context.Context) error {
	for id := range d.ledger.openOf("worker-B") {
		_, err := d.s.Show(ctx, demoQueue, id)
		switch {
		case errors.Is(err, queue.ErrNotFound):
			d.ledger.ack(id)
			d.result.AckedInFlight++
			d.say("   %s is gone: worker-B's ack was committed, only its answer was lost.", id)
		case err != nil:
			return err
		}
	}
	return nil
}

// load takes a lease over, shows that the old receipt is refused from then on,
// and finishes the message.
func (d *demo) load(ctx context.Context, e queue.Entry) error {
	old := d.ledger.openOf("worker-A")[e.ID].receipt
	taken, err := d.s.Load(ctx, demoQueue, e.ID, queue.LoadOptions{Label: "demo", WithoutHolder: true})
	if err != nil {
		return err
	}
	if hashOf(taken.Payload) != d.ledger.sent[e.ID] {
		d.ledger.altered = append(d.ledger.altered, e.ID)
	}
	late := d.s.Ack(ctx, old)
	if !errors.Is(late, queue.ErrStale) {
		return fmt.Errorf("%w: the dead worker's receipt was answered with: %v", errDemo, late)
	}
	if err := d.s.Ack(ctx, taken.Receipt); err != nil {
		return err
	}
	d.ledger.ack(e.ID)
	d.result.TakenOver++
	d.say("   Load takes it over as attempt %d; worker-A's receipt is refused from now on:", taken.Receipt.Attempt)
	d.say("   %v. Worked and acked.", late)
	return nil
}

func (d *demo) release(ctx context.Context, e queue.Entry) error {
	if err := d.s.Release(ctx, e.Receipt, queue.ReleaseOptions{}); err != nil {
		return err
	}
	d.result.Released++
	d.say("   Released: it is pending again, in its old place.")
	return nil
}
