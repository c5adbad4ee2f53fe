//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/holdfast/queue"
)

// mostAtOnce bounds how many operands are worked on at once. Calls that are made
// at the same time share a commit.
const mostAtOnce = 256

// An operand is one thing that a command was asked to change.
type operand struct {
	key string                                            // operands with the same key go one after the other
	do  func(ctx context.Context) (say func(), err error) // say prints the result
	err error                                             // what is wrong with it; do is then not called
}

type outcome struct {
	say func()
	err error
}

// A stoppedError says how far an interrupted command came.
type stoppedError struct{ text string }

func (e *stoppedError) Error() string { return e.text }
func (e *stoppedError) Unwrap() error { return context.Canceled }

// eachOperand works on many operands at once and tells the results in the order in
// which they were given. What fails is reported and the others go on. After an
// interrupt one line says how far it came.
func (a *app) eachOperand(ctx context.Context, verb string, ops []operand) error {
	results := make([]chan outcome, len(ops))
	for i := range ops {
		results[i] = make(chan outcome, 1)
	}
	groups := grouped(ops)
	jobs := make(chan []int)
	for range min(mostAtOnce, len(groups)) {
		go func() {
			for group := range jobs {
				for _, i := range group {
					results[i] <- ops[i].run(ctx)
				}
			}
		}()
	}
	go func() {
		defer close(jobs)
		for _, group := range groups {
			jobs <- group
		}
	}()

	done, refused, untried := 0, 0, 0
	for i := range ops {
		r := <-results[i]
		switch {
		case r.err == nil:
			done++
			r.say()
		case interrupted(r.err):
			if len(ops) == 1 {
				return r.err
			}
			untried++
		default:
			refused++
			a.report(r.err)
		}
	}
	if untried == 0 {
		return nil
	}
	parts := []string{fmt.Sprintf("stopped: %d of %d %s", done, len(ops), verb)}
	if refused > 0 {
		parts = append(parts, fmt.Sprintf("%d refused", refused))
	}
	return &stoppedError{strings.Join(append(parts, fmt.Sprintf("%d not tried", untried)), ", ")}
}

func (o *operand) run(ctx context.Context) outcome {
	if o.err != nil {
		return outcome{err: o.err}
	}
	if err := ctx.Err(); err != nil {
		return outcome{err: err}
	}
	say, err := o.do(ctx)
	return outcome{say, err}
}

// interrupted reports whether a call was withdrawn before it entered a commit.
func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) && !errors.Is(err, queue.ErrUncertain)
}

// grouped puts operands with the same key together: the same one twice has the
// same results as one call after the other.
func grouped(ops []operand) [][]int {
	var groups [][]int
	at := map[string]int{}
	for i, o := range ops {
		g, ok := at[o.key]
		if !ok {
			g = len(groups)
			at[o.key], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}
