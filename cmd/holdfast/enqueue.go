//go:build unix

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
)

// enqueueFlags are what enqueue was asked for.
type enqueueFlags struct {
	id, ifExists, file string
	key, delay, at     string
	ndjson             bool
}

// A schedule says when messages are due; the zero value is at once.
type schedule struct {
	delay time.Duration // from when the message is handed in
	at    time.Time
}

// from gives the time before which a message that is handed in now is not due.
func (s schedule) from(now time.Time) time.Time {
	if s.delay > 0 {
		return now.Add(s.delay)
	}
	return s.at
}

func (a *app) enqueueCmd() *cobra.Command {
	var f enqueueFlags
	cmd := &cobra.Command{
		Use:   "enqueue QUEUE [PAYLOAD]",
		Short: "Put a message, or a stream of them, into a queue",
		Long: `Put a message into a queue. Its payload is one JSON value of at most 16 MiB: the
argument (after -- if it begins with a minus), the file of --file, or stdin. It
comes back byte for byte.

With --delay or --at it is scheduled: not due before then. Messages with the same
--key are delivered in order and one at a time; one that came back holds the later
ones of its key until it has ended, and one that is scheduled holds nobody before it
is due.

With --ndjson every line of the input is a message. Any number of them streams
through, many per commit. Blank lines are skipped; a bad line is reported with its
number and the rest goes on. --key is that of all, and --delay counts for each from
when it is read. Ctrl-C stops after the commit in flight and says how many messages
were accepted.`,
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
			if set("key") && f.key == "" {
				return usagef("--key is empty: leave it out for none")
			}
			m.Key = f.key
			var due schedule
			switch {
			case set("delay") && set("at"):
				return usagef("give --delay or --at, not both")
			case set("delay"):
				due.delay, err = parseDelay(f.delay)
			case set("at"):
				due.at, err = parseTime(f.at)
			}
			if err != nil {
				return err
			}
			m.NotBefore = due.from(time.Now()) // to be checked; what counts is set when it is handed in
			if err = queue.CheckQueue(args[0]); err == nil {
				err = m.Check()
			}
			if err != nil {
				return err
			}
			if f.ndjson {
				return a.enqueueStream(cmd.Context(), args[0], f.file, m, due)
			}
			return a.enqueueOne(cmd.Context(), args, f.file, m, due)
		},
	}
	cmd.SetFlagErrorFunc(minusPayload)
	flags := cmd.Flags()
	flags.StringVar(&f.id, "id", "", "the message's ID (default: a new UUID)")
	flags.StringVar(&f.ifExists, "if-exists", "refuse", "what to do when the ID is live: refuse, keep or replace")
	flags.StringVar(&f.file, "file", "", "read the payload from this file; - is stdin")
	flags.BoolVar(&f.ndjson, "ndjson", false, "every line of the input is a message")
	flags.StringVar(&f.key, "key", "", "deliver in order, and one at a time, with the others of this key")
	flags.StringVar(&f.delay, "delay", "", "how long until it is due, such as 10m")
	flags.StringVar(&f.at, "at", "", "the time from which it is due, such as 2026-01-31T08:00:00Z")
	return cmd
}

// parseTime reads --at.
func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, usagef("--at %q: want a time such as 2026-01-31T08:00:00Z or 2026-01-31T08:00:00+01:00", s)
	}
	return t, nil
}

func (a *app) enqueueOne(ctx context.Context, args []string, file string, m queue.Message, due schedule) error {
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
		m.NotBefore = due.from(time.Now())
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

// enqueuedLine is the fixed machine form.
type enqueuedLine struct {
	forms.Enqueued
	Line int `json:"line,omitempty"` // of an NDJSON stream, from 1
}

func (a *app) printEnqueued(e queue.Enqueued, line int) {
	a.did("accepted", e.Queue+" "+e.ID)
	switch {
	case a.json:
		a.printJSON(enqueuedLine{forms.Enqueued(e), line})
	case e.Kept:
		a.printf("kept %s %s, which was live already\n", e.Queue, e.ID)
	default:
		a.printf("enqueued %s %s\n", e.Queue, e.ID)
	}
}
