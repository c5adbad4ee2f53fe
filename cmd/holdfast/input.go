//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// maxPayload bounds what is read for one payload.
const maxPayload = holdfast.DefaultMaxPayloadBytes

// source opens what --file names: a file, or - for stdin. None was given: stdin,
// unless it is a terminal.
func (a *app) source(file string) (io.ReadCloser, error) {
	switch {
	case file != "" && file != "-":
		f, err := os.Open(file)
		if err != nil {
			return nil, fileError(file, err)
		}
		return f, nil
	case file == "" && a.tty(a.in):
		return nil, usagef("no payload: give it as an argument, by --file, or on stdin")
	}
	return io.NopCloser(a.in), nil
}

// fileError is what goes wrong with a file that is none of the store's.
func fileError(name string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return about(fmt.Errorf("%s: no such file", name), facts{outside: true})
	}
	return about(fmt.Errorf("%s: %w", name, err), facts{outside: true})
}

// readPayload reads one payload and never more than its bound.
func readPayload(r io.Reader) ([]byte, error) {
	payload, err := io.ReadAll(io.LimitReader(r, maxPayload+1))
	if err != nil {
		return nil, err
	}
	if len(payload) > maxPayload {
		return nil, tooLong()
	}
	return payload, nil
}

func tooLong() error {
	return fmt.Errorf("payload of more than %d bytes: %w", maxPayload, queue.ErrTooLarge)
}

// A line is one line of a stream, without its end. On tooLong the text was
// skipped.
type line struct {
	number  int
	text    []byte
	tooLong bool
	err     error // the stream ended with it; the other fields are empty
}

// readLines sends the lines of r until its end or the context's. One line of at
// most the bound is in memory at a time; what is longer is skipped.
func readLines(ctx context.Context, r io.Reader, most int, lines chan<- line) {
	defer close(lines)
	send := func(l line) bool {
		select {
		case lines <- l:
			return true
		case <-ctx.Done():
			return false
		}
	}
	in := bufio.NewReaderSize(r, 64<<10)
	for number := 1; ; number++ {
		text, tooLong, err := readLine(in, most)
		if len(text) > 0 || tooLong || err == nil {
			if !send(line{number: number, text: text, tooLong: tooLong}) {
				return
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			send(line{err: err})
			return
		}
	}
}

// readLine reads up to the next line feed and drops it, and a carriage return
// before it.
func readLine(in *bufio.Reader, most int) (text []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if err == nil {
			part = part[:len(part)-1]
		}
		if len(text)+len(part) > most+1 { // one more for a carriage return
			text, tooLong = nil, true
		}
		if !tooLong {
			text = append(text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if n := len(text); n > 0 && text[n-1] == '\r' {
			text = text[:n-1]
		}
		if len(text) > most {
			text, tooLong = nil, true
		}
		return text, tooLong, err
	}
}

// parseLease reads --lease: none, or how long.
func parseLease(s string) (time.Duration, error) {
	if s == "none" {
		return queue.NoDeadline, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, usagef("--lease %q: want none or a duration such as 90s or 5m", s)
	}
	if d < time.Millisecond || d > queue.MaxLease {
		return 0, usagef("--lease %s: from 1ms to %s, or none", s, maxHours)
	}
	return d, nil
}

// parseDelay reads --delay.
func parseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, usagef("--delay %q: want a duration such as 90s or 5m", s)
	}
	if d < 0 || d > queue.MaxLease {
		return 0, usagef("--delay %s: from 0s to %s", s, maxHours)
	}
	return d, nil
}

// forEver is a --timeout of none.
const forEver time.Duration = -1

// parseTimeout reads --timeout: how long, or forEver.
func parseTimeout(s string) (time.Duration, error) {
	if s == "none" {
		return forEver, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, usagef("--timeout %q: want none or a duration such as 90s or 5m", s)
	}
	return d, nil
}

var maxHours = fmt.Sprintf("%dh", int64(queue.MaxLease/time.Hour))
