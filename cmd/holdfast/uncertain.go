//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

// resolveWithin bounds how long the command asks what became of a commit.
const resolveWithin = 30 * time.Second

// certain asks the store what became of an uncertain commit. Committed: what the
// call would have returned, and the refusal that it would have met. Not committed:
// an error that says so. The store cannot tell: the uncertain error stays. Any
// other error, and nil, passes through.
func certain(ctx context.Context, s store, err error) (*queue.UncertainError, error) {
	var u *queue.UncertainError
	if !errors.As(err, &u) {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveWithin)
	defer cancel()
	committed, askErr := s.Resolve(ctx, u)
	switch {
	case askErr != nil:
		return nil, fmt.Errorf("%w (asked again: %v)", err, askErr)
	case !committed:
		return nil, fmt.Errorf("nothing happened: the commit failed: %w", u.Err)
	}
	return u, u.Refused
}
