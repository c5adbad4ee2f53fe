//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

// What the contract has and this version of the store does not. The format has
// room for all of it; see docs/format-v2.md.

func later(what string) error {
	return fmt.Errorf("%s comes with a later version: %w", what, errors.ErrUnsupported)
}

// Retry answers errors.ErrUnsupported in this version: Release or Fail.
func (s *Store) Retry(context.Context, queue.Receipt, queue.RetryOptions) (queue.Returned, error) {
	return queue.Returned{}, later("retry")
}

// Extend answers errors.ErrUnsupported in this version: claim for long enough.
func (s *Store) Extend(context.Context, queue.Receipt, time.Duration) (time.Time, error) {
	return time.Time{}, later("extend")
}

// Reap answers errors.ErrUnsupported in this version: Load takes a lease over that
// is past its deadline or has none.
func (s *Store) Reap(context.Context, queue.ReapOptions) ([]queue.Returned, error) {
	return nil, later("reap")
}

// Reprocess answers errors.ErrUnsupported in this version.
func (s *Store) Reprocess(context.Context, string, queue.ReprocessOptions) error {
	return later("reprocess")
}

// Pause answers errors.ErrUnsupported in this version.
func (s *Store) Pause(context.Context, string) error { return later("pause") }

// Resume answers errors.ErrUnsupported in this version.
func (s *Store) Resume(context.Context, string) error { return later("resume") }

// Update answers errors.ErrUnsupported in this version.
func (s *Store) Update(context.Context, ...queue.Change) ([]queue.Outcome, error) {
	return nil, later("update")
}

// Cursor answers errors.ErrUnsupported in this version.
func (s *Store) Cursor(context.Context, string) (string, error) { return "", later("the cursor") }

// Wait answers errors.ErrUnsupported in this version: ask Status.
func (s *Store) Wait(context.Context, queue.WaitOptions) (queue.Status, error) {
	return queue.Status{}, later("wait")
}

// WaitDue answers errors.ErrUnsupported in this version.
func (s *Store) WaitDue(context.Context, ...string) error { return later("waiting") }

// SetFailedNamespace answers errors.ErrUnsupported in this version.
func (s *Store) SetFailedNamespace(context.Context, string, string) error {
	return later("the failed namespace")
}
