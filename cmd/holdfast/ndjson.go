//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

// One commit takes at most this much of a stream; a longer message goes alone.
const (
	chunkMessages = 1000
	chunkBytes    = 1 << 20
)

// chunkLinger is how long the first message of a chunk waits for more before the
// chunk is committed.
const chunkLinger = 100 * time.Millisecond

// A feed is a stream of messages on its way into a queue, chunk by chunk.
type feed struct {
	a     *app
	s     store
	queue string
	shape queue.Message // what every message of the stream has in common
	due   schedule

	chunk  []queue.Message
	lines  []int // where each message of the chunk stands in the stream
	bytes  int
	linger <-chan time.Time // the chunk is to be committed then; nil: it is empty

	accepted int64
	refused  int64
	last     int // the last line that was accepted
}

func (a *app) enqueueStream(ctx context.Context, q, file string, shape queue.Message, due schedule) error {
	in, err := a.source(file)
	if err != nil {
		return err
	}
	defer in.Close()
	return a.withStore(ctx, func(s store) error {
		f := feed{a: a, s: s, queue: q, shape: shape, due: due}
		lines := make(chan line)
		reading, stop := context.WithCancel(ctx)
		defer stop()
		go readLines(reading, in, maxPayload, lines)
		err := f.run(ctx, lines)
		f.progress(true)
		if err != nil {
			err = fmt.Errorf("stopped: %s accepted, up to line %d; nothing after that: %w", plural(f.accepted, "message"), f.last, err)
			return about(err, facts{queue: q, accepted: &f.accepted})
		}
		if !a.json {
			a.printf("enqueued %s in %s", plural(f.accepted, "message"), q)
			if f.refused > 0 {
				a.printf("; %s refused", plural(f.refused, "line"))
			}
			a.printf("\n")
		}
		return nil
	})
}

// run takes lines until the stream or the context ends.
func (f *feed) run(ctx context.Context, lines <-chan line) error {
	for {
		l, more, idle := f.nextLine(ctx, lines)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case idle:
			if err := f.flush(ctx); err != nil {
				return err
			}
		case !more:
			return f.flush(ctx)
		case l.err != nil:
			return errors.Join(f.flush(ctx), l.err)
		default:
			if err := f.take(ctx, l); err != nil {
				return err
			}
		}
	}
}

// nextLine waits for a line, with a chunk begun only until that has lingered: a stream
// that never pauses must not hold its first message back.
func (f *feed) nextLine(ctx context.Context, lines <-chan line) (l line, more, idle bool) {
	select {
	case <-f.linger:
		return l, false, true
	default:
	}
	select {
	case l, more = <-lines:
		return l, more, false
	case <-f.linger:
		return l, false, true
	case <-ctx.Done():
		return l, false, false
	}
}

// take puts a line into the chunk, and commits the chunk when it is full.
func (f *feed) take(ctx context.Context, l line) error {
	if l.tooLong {
		f.refuse(l.number, tooLong())
		return nil
	}
	if len(bytes.Trim(l.text, " \t\r")) == 0 {
		return nil
	}
	if len(f.chunk) > 0 && f.bytes+len(l.text) > chunkBytes {
		if err := f.flush(ctx); err != nil {
			return err
		}
	}
	if len(f.chunk) == 0 {
		f.linger = f.a.after(chunkLinger)
	}
	m := f.shape
	m.Payload, m.NotBefore = l.text, f.due.from(time.Now())
	f.chunk, f.lines, f.bytes = append(f.chunk, m), append(f.lines, l.number), f.bytes+len(l.text)
	if len(f.chunk) == chunkMessages || f.bytes >= chunkBytes {
		return f.flush(ctx)
	}
	return nil
}

func (f *feed) refuse(number int, err error) {
	f.refused++
	f.a.report(about(err, facts{queue: f.queue, line: number}))
}

// flush commits the chunk. Messages that are refused are reported and dropped,
// and the rest is sent again; a refusal that is not the message's own fault, such
// as a full store, ends the stream.
func (f *feed) flush(ctx context.Context) error {
	for len(f.chunk) > 0 {
		done, err := f.s.EnqueueBatch(ctx, f.queue, f.chunk)
		u, err := certain(ctx, f.s, err)
		if u != nil && err == nil {
			done = u.Enqueued
			f.a.note("resolved", "lines %d to %d: their commit was uncertain, and did happen", f.lines[0], f.lines[len(f.lines)-1])
		}
		var batch *queue.BatchError
		switch {
		case err == nil:
			f.accept(done)
			return nil
		case !errors.As(err, &batch) || len(batch.Refused) == 0:
			return about(err, facts{line: f.lines[0]})
		}
		if err := f.drop(batch); err != nil {
			return err
		}
	}
	f.empty()
	return nil
}

func (f *feed) accept(done []queue.Enqueued) {
	f.accepted += int64(len(f.chunk))
	f.last = f.lines[len(f.lines)-1]
	if f.a.json {
		for i, e := range done {
			f.a.printEnqueued(e, f.lines[i])
		}
		f.a.flush()
	} else {
		for _, e := range done {
			f.a.did("accepted", e.Queue+" "+e.ID)
		}
	}
	f.empty()
	f.progress(false)
}

// drop takes the refused messages out of the chunk.
func (f *feed) drop(batch *queue.BatchError) error {
	refused := map[int]error{}
	for _, r := range batch.Refused {
		if !errors.Is(r.Err, queue.ErrInvalid) && !errors.Is(r.Err, queue.ErrDuplicate) {
			return about(r.Err, facts{line: f.lines[r.Index]})
		}
		refused[r.Index] = r.Err
	}
	chunk, lines := f.chunk, f.lines
	f.empty()
	for i, m := range chunk {
		if err := refused[i]; err != nil {
			f.refuse(lines[i], err)
			continue
		}
		f.chunk, f.lines, f.bytes = append(f.chunk, m), append(f.lines, lines[i]), f.bytes+len(m.Payload)
	}
	return nil
}

// empty begins a new chunk. The old one may still be in use below.
func (f *feed) empty() { f.chunk, f.lines, f.bytes, f.linger = nil, nil, 0, nil }

// progress shows on a terminal how far the stream is.
func (f *feed) progress(end bool) {
	if f.a.json || !f.a.tty(f.a.stderr) {
		return
	}
	if end {
		fmt.Fprint(f.a.stderr, "\r\x1b[K")
		return
	}
	fmt.Fprintf(f.a.stderr, "\r%d accepted, %d refused", f.accepted, f.refused)
}
