//go:build unix

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// demoUpdates are updates as a chat bot gets them, one per line.
//
//go:embed testdata/updates.ndjson
var demoUpdates []byte

const (
	demoQueue   = "updates"
	demoTimeout = 2 * time.Minute
)

func (a *app) demoCmd() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch a store survive two killed workers",
		Long: `Make a store in a temporary folder, put chat-bot updates into it, run two worker
processes, kill one in the middle of a message and one inside a commit, recover,
finish, and prove by a ledger kept outside the store that no message was lost,
altered or acked twice. The temporary folder is made in --dir, else in TMPDIR, else
in the current directory, and removed at the end.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), demoTimeout)
			defer cancel()
			root, err := a.demoRoot()
			if err != nil {
				return err
			}
			a.dir = root
			d := &demo{a: a, ledger: newLedger()}
			err = d.run(ctx)
			if !keep {
				err = errors.Join(err, os.RemoveAll(root))
			} else {
				d.result.Dir = root
				d.say("The store is kept: holdfast status --dir %s", shellWord(root))
			}
			d.result.OK = err == nil
			if a.json {
				a.printJSON(d.result)
			}
			return about(err, facts{run: "holdfast demo --keep"})
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the store for a closer look")
	return cmd
}

// demoRoot makes the temporary folder. The system's folder for such is unusable
// on Android, and TMPDIR may be missing or read-only.
func (a *app) demoRoot() (string, error) {
	places := []string{a.dirFlag}
	if a.dirFlag == "" {
		places = []string{a.env("TMPDIR"), os.TempDir(), "."}
		if runtime.GOOS == "android" {
			places[1] = ""
		}
	}
	var errs []error
	for _, place := range places {
		if place == "" {
			continue
		}
		root, err := os.MkdirTemp(place, "holdfast-demo-")
		if err == nil {
			return root, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// A demo is one performance.
type demo struct {
	a      *app
	s      store
	ledger *ledger
	result demoResult
}

// demoResult is the machine form of the whole demo.
type demoResult struct {
	OK       bool   `json:"ok"`
	Messages int    `json:"messages"`
	Bytes    int    `json:"bytes"`
	Acked    uint64 `json:"acked"`
	verdict
	KilledInMessage string  `json:"killed_in_message"` // the ID
	KilledInCommit  int     `json:"killed_in_commit"`  // the pid
	Looks           int     `json:"looks"`             // until a commit was met
	AckedInFlight   int     `json:"acked_in_flight"`   // acks that happened without an answer
	TakenOver       int     `json:"taken_over"`
	Released        int     `json:"released"`
	Faults          int     `json:"faults"`
	Revision        uint64  `json:"revision"`
	Seconds         float64 `json:"seconds"`
	Dir             string  `json:"dir,omitempty"`
}

func (d *demo) say(format string, args ...any) {
	if d.a.json {
		return
	}
	d.a.printf(format+"\n", args...)
	d.a.out.Flush()
}

// run tells the story from the start to the proof.
func (d *demo) run(ctx context.Context) error {
	begun := time.Now()
	o := d.a.options()
	o.OnDeadOwner = holdfast.Stop // so that the demo can show what the operator sees
	return use(ctx, d.a.engine.create, d.a.dir, o, func(s store) error {
		d.s = s
		for _, act := range []func(context.Context) error{d.fill, d.kill, d.recover, d.takeOver, d.finish, d.prove} {
			if err := act(ctx); err != nil {
				return err
			}
		}
		d.result.Seconds = time.Since(begun).Seconds()
		d.say("Done in %.1f s.", d.result.Seconds)
		return nil
	})
}

// fill enqueues all updates in one commit and books what each one was.
func (d *demo) fill(ctx context.Context) error {
	var ms []queue.Message
	for text := range bytes.Lines(demoUpdates) {
		m := queue.Message{ID: fmt.Sprintf("update-%03d", len(ms)+1), Payload: bytes.TrimSuffix(text, []byte("\n"))}
		d.ledger.sent[m.ID] = hashOf(m.Payload)
		d.result.Bytes += len(m.Payload)
		ms = append(ms, m)
	}
	if _, err := d.s.EnqueueBatch(ctx, demoQueue, ms); err != nil {
		return err
	}
	d.result.Messages = len(ms)
	d.say("1. A store in %s.", printable(d.a.dir))
	d.say("   %d chat updates (%d bytes) enqueued in one commit.", len(ms), d.result.Bytes)
	return nil
}

// finish lets a fresh worker process do the rest.
func (d *demo) finish(ctx context.Context) error {
	d.say("6. A fresh worker does the rest.")
	p, err := d.start("worker-C", nil, "--batch", "40")
	if err != nil {
		return err
	}
	defer p.kill()
	code, err := p.wait()
	if err != nil {
		return err
	}
	if code != exitDone {
		return fmt.Errorf("%w: worker-C ended with %d: %v", errDemo, code, d.ledger.words())
	}
	return nil
}

// prove checks the store with itself and with the ledger.
func (d *demo) prove(ctx context.Context) error {
	st, err := d.s.Status(ctx, queue.StatusOptions{Orphans: true})
	if err != nil {
		return err
	}
	r, err := d.a.engine.verify(ctx, d.a.dir, d.a.options(), holdfast.VerifyOptions{})
	if err != nil {
		return err
	}
	d.result.Revision, d.result.Faults = st.Revision, len(r.Faults)
	d.result.Acked = st.Queues[demoQueue].Counters.Completed
	if !r.OK {
		return fmt.Errorf("%w: verify found %s", errDemo, plural(int64(len(r.Faults)), "fault"))
	}
	if !st.Complete() {
		return fmt.Errorf("%w: the queue is not complete", errDemo)
	}
	d.result.verdict, err = d.ledger.judge(d.result.Acked)
	if err != nil {
		return err
	}
	d.say("   Verify: the store has no fault. The ledger: %d sent, %d acked, none lost, none altered,", d.result.Messages, d.result.Acked)
	d.say("   none acked twice. The final status:")
	if !d.a.json {
		d.a.printStatus(ctx, st)
	}
	return nil
}
