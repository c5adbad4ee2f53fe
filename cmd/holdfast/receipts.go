//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/holdfast/queue"
)

const (
	shortReceiptRule = "a short receipt is the end of a whole one: at least 8 characters of the generation's token and the whole attempt, as in u4uxfcv2.0:1"
	shortReceiptHelp = `

A receipt may be shortened to its end, as ls shows it: at least 8 characters of the
generation's token and the whole attempt, as in u4uxfcv2.0:1. It must be the end of
one current claim's receipt.`
)

// A leaseFinder turns what the caller gave into receipts. It lists the current
// leases once, and only if something is no full receipt.
type leaseFinder struct {
	s      store
	listed bool
	texts  []string
}

func (l *leaseFinder) find(ctx context.Context, given string) (queue.Receipt, error) {
	r, err := queue.ParseReceipt(given)
	if err == nil {
		if id := l.s.ID(); r.Store != id && strings.HasSuffix(id, r.Store) {
			r.Store = id // a suffix that lacks only a part of the store's ID
		}
		return r, nil
	}
	hint := facts{run: "holdfast ls QUEUE --dir {dir}"}
	parts := strings.Split(given, ":") // of the store's own ID the queue follows
	if len(parts) > 1 && len(parts[0]) >= minShort && strings.HasSuffix(l.s.ID(), parts[0]) && queue.CheckQueue(parts[1]) == nil {
		hint = facts{queue: parts[1]}
	}
	if !pins(given) {
		return r, about(fmt.Errorf("%w; %s", err, shortReceiptRule), hint)
	}
	if err := l.list(ctx); err != nil {
		return r, err
	}
	m := matcher{given: given}
	for _, text := range l.texts {
		if strings.HasSuffix(text, given) {
			m.look(text)
		}
	}
	text, matchErr := m.one("receipt")
	switch {
	case errors.Is(matchErr, errNone):
		return r, about(fmt.Errorf("no current lease has a receipt that ends with %q: %w", given, queue.ErrInvalidReceipt), hint)
	case matchErr != nil:
		return r, about(matchErr, hint)
	}
	return queue.ParseReceipt(text)
}

// pins reports whether a short receipt can stand for one claim only: it holds the
// whole attempt, and enough of the generation's random token before it.
//
//	…u4uxfcv2.0:1
//	 token    | attempt
//	          place in its commit
func pins(given string) bool {
	i := strings.LastIndexByte(given, ':')
	if i < 0 {
		return false
	}
	attempt, err := strconv.ParseUint(given[i+1:], 10, 64)
	if err != nil || attempt == 0 || strconv.FormatUint(attempt, 10) != given[i+1:] {
		return false
	}
	generation := given[strings.LastIndexByte(given[:i], ':')+1 : i]
	return strings.LastIndexByte(generation, '.') >= minShort
}

// shortReceipt is the shortest end of a receipt that is taken for it.
func shortReceipt(r queue.Receipt) string {
	dot := strings.LastIndexByte(r.Generation, '.')
	if dot < minShort {
		return r.String()
	}
	return r.Generation[dot-minShort:] + ":" + strconv.FormatUint(r.Attempt, 10)
}

func (l *leaseFinder) list(ctx context.Context) error {
	if l.listed {
		return nil
	}
	st, err := l.s.Status(ctx, queue.StatusOptions{})
	if err != nil {
		return err
	}
	for q, gauges := range st.Queues {
		if gauges.Unacked() == 0 {
			continue
		}
		err := eachLive(ctx, l.s, q, func(e queue.Entry) {
			if e.Receipt.Store != "" {
				l.texts = append(l.texts, e.Receipt.String())
			}
		})
		if err != nil {
			return err
		}
	}
	l.listed = true
	return nil
}
