//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"example.com/holdfast/queue"
)

// enqueueFlags are what enqueue was asked for.
type enqueueFlags struct {
	id, ifExists, file, notBefore string
	ndjson                        bool
}

func (a *app) enqueueCmd() *cobra.Command {
	var f enqueueFlags
	cmd := &cobra.Command{
		Use:   "enqueue QUEUE [PAYLOAD]",
		Short: "Put a message, or a stream of them, into a queue",
		Long: `Put a message into a queue. Its payload is one JSON value of at most 16 MiB: the
argument (after -- if it begins with a minus), the file of --file, or stdin. It
comes back byte for byte.

With --ndjson every line of the input is a message. Any number of them streams
through, many per commit. Blank lines are skipped; a bad line is reported with its
number and the rest goes on. Ctrl-C stops after the commit in flight and says how
many messages were accepted.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			set := cmd.Flags().Changed
			if len(args) == 2 && args[1] == "-" {
				return usagef(`the payload "-" is not JSON; --file - reads stdin`)
			}
			if set("id") && f.id == "" {
				return usagef("--id is empty: leave it out for a generated ID")
			}
			if len(args) == 2 && (f.file != "" || f.ndjson) {
				return usagef("give the payload as an argument or as a stream, not both")
			}
			if f.ndjson && f.id != "" {
				return usagef("--id names one message; a stream of --ndjson has many")
			}
			if f.ndjson && f.ifExists != "refuse" {
				return usagef("--if-exists is for a message with an --id; a stream of --ndjson has none")
			}
			m := queue.Message{ID: f.id}
			var err error
			if m.IfExists, err = queue.ParseIfExists(f.ifExists); err != nil {
				return usagef("--if-exists: %v", err)
			}
			if m.NotBefore, err = parseWhen(f.notBefore, time.Now()); err != nil {
				return err
			}
			if err := checkNames(args[0], f.id); err != nil {
				return err
			}
			if f.ndjson {
				return a.enqueueStream(cmd.Context(), args[0], f.file, m)
			}
			return a.enqueueOne(cmd.Context(), args, f.file, m)
		},
	}
	cmd.SetFlagErrorFunc(minusPayload)
	flags := cmd.Flags()
	flags.StringVar(&f.id, "id", "", "the message's ID (default: a new UUID)")
	flags.StringVar(&f.ifExists, "if-exists", "refuse", "what to do when the ID is live: refuse, keep or replace")
	flags.StringVar(&f.file, "file", "", "read the payload from this file; - is stdin")
	flags.BoolVar(&f.ndjson, "ndjson", false, "every line of the input is a message")
	flags.StringVar(&f.notBefore, "not-before", "", "not due before this time, or for this duration")
	return cmd
}

// checkNames refuses a bad name before any input is read.
func checkNames(q, id string) error {
	if err := queue.CheckQueue(q); err != nil {
		return err
	}
	if id == "" {
		return nil
	}
	return queue.CheckID(id)
}

func (a *app) enqueueOne(ctx context.Context, args []string, file string, m queue.Message) error {
	if len(args) == 2 {
		m.Payload = []byte(args[1])
	} else {
		in, err := a.source(file)
		if err != nil {
			return err
		}
		defer in.Close()
		if m.Payload, err = readPayload(in); err != nil {
			if file != "" && !errors.Is(err, queue.ErrTooLarge) {
				err = fileError(file, err)
			}
			return err
		}
	}
	return a.withChange(ctx, func(s store) error {
		done, err := s.Enqueue(ctx, args[0], m)
		u, err := certain(ctx, s, err)
		if err != nil {
			return about(err, facts{queue: args[0], id: m.ID})
		}
		if u != nil && len(u.Enqueued) > 0 {
			done = u.Enqueued[0]
		}
		a.printEnqueued(done, 0)
		return nil
	})
}

// enqueuedLine is the fixed machine form; a JSON number for the revision, as in
// status.
type enqueuedLine struct {
	Queue      string `json:"queue"`
	ID         string `json:"id"`
	Generation string `json:"generation"`
	Revision   uint64 `json:"revision"`
	Kept       bool   `json:"kept,omitempty"`
	Line       int    `json:"line,omitempty"` // of an NDJSON stream, from 1
}

func (a *app) printEnqueued(e queue.Enqueued, line int) {
	a.did("accepted", e.Queue+" "+e.ID)
	switch {
	case a.json:
		a.printJSON(enqueuedLine{e.Queue, e.ID, e.Generation, e.Revision, e.Kept, line})
	case e.Kept:
		a.printf("kept %s %s, which was live already\n", e.Queue, e.ID)
	default:
		a.printf("enqueued %s %s\n", e.Queue, e.ID)
	}
}
