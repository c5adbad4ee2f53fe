//go:build unix

package holdfast

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/holdfast/queue"
)

// maxClaim bounds one claim.
const maxClaim = 10000

// Claim leases the oldest due messages of a queue, in order of their enqueue. On
// nil the leases are durable; nothing due is an empty result. A message that is
// leased is not due, though its deadline have passed: in this version only Load takes
// it over (List shows which are Overdue). Errors: queue.ErrInvalid…, ErrStaleLock,
// queue.ErrUncertain, and those of the filesystem. A message whose
// payload is damaged moves to failed in the same commit and is reported in Damaged.
// A payload that cannot be read now (EIO, EMFILE, EACCES) fails the claim, and
// nothing moves.
func (s *Store) Claim(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
	if err := queue.CheckQueue(name); err != nil {
		return queue.Claimed{}, err
	}
	if o.Fair {
		return queue.Claimed{}, fmt.Errorf("fair rotation comes with a later version: %w", errors.ErrUnsupported)
	}
	t, err := newTaking(o.Max, o.Lease, o.Label)
	if err != nil {
		return queue.Claimed{}, err
	}
	var out queue.Claimed
	err = s.submit(ctx, &call{
		writes: true, grows: true,
		decide: func(v *view) (err error) {
			out, err = v.draft.claim(name, t, v.load)
			return err
		},
		uncertain: func(u *queue.UncertainError) { u.Deliveries, u.Damaged = out.Deliveries, out.Damaged },
	})
	if err != nil {
		return queue.Claimed{}, err
	}
	return out, nil
}

// Load claims one named message whatever its schedule. Of two live generations it
// takes the older. A lease that has no deadline or is past it is taken over, which
// counts as a lapse; its receipt is stale from then on. Refusals: queue.ErrNotFound,
// queue.ErrLeased. A *queue.DamagedError says that the message moved to failed, durably.
func (s *Store) Load(ctx context.Context, name, id string, o queue.LoadOptions) (queue.Delivery, error) {
	if err := checkNames(name, id); err != nil {
		return queue.Delivery{}, err
	}
	t, err := newTaking(1, o.Lease, o.Label)
	if err != nil {
		return queue.Delivery{}, err
	}
	var out queue.Delivery
	err = s.submit(ctx, &call{
		writes: true, grows: true,
		decide: func(v *view) (err error) {
			out, err = v.draft.load(name, id, t, v.load)
			return err
		},
		uncertain: func(u *queue.UncertainError) { u.Deliveries = []queue.Delivery{out} },
	})
	if err != nil {
		return queue.Delivery{}, err
	}
	return out, nil
}

func checkNames(name, id string) error {
	if err := queue.CheckQueue(name); err != nil {
		return err
	}
	return queue.CheckID(id)
}

func newTaking(most int, lease time.Duration, label string) (taking, error) {
	t := taking{max: most, lease: lease, label: label}
	switch {
	case most < 0 || most > maxClaim:
		return t, fmt.Errorf("a claim of %d messages: from 1 to %d: %w", most, maxClaim, queue.ErrInvalid)
	case most == 0:
		t.max = 1
	}
	if err := queue.CheckText("label", label); err != nil {
		return t, err
	}
	var err error
	t.lease, err = checkLease(lease)
	return t, err
}

// maxLease keeps deadlines inside what the store writes.
const maxLease = 100 * 365 * 24 * time.Hour

func checkLease(lease time.Duration) (time.Duration, error) {
	switch {
	case lease == 0:
		return queue.DefaultLease, nil
	case lease == queue.NoDeadline:
		return lease, nil
	case lease < time.Millisecond || lease > maxLease:
		return 0, fmt.Errorf("lease %s: from 1ms to %s, or none: %w", lease, maxLease, queue.ErrInvalid)
	}
	return lease, nil
}

// Ack settles a message for good. On nil its removal is durable. Refusals:
// queue.ErrStale, queue.ErrGone, queue.ErrInvalidReceipt. As every call that changes
// the store it may also answer ErrStaleLock (nothing happened) or queue.ErrUncertain.
// A deadline that has passed does not spoil a receipt; only another claim does.
func (s *Store) Ack(ctx context.Context, r queue.Receipt) error {
	return s.settle(ctx, r, func(d *draft) error { return d.ack(r) })
}

// Release returns a message at once; the attempt is excused. Refusals:
// queue.ErrStale, queue.ErrGone. A Delay answers errors.ErrUnsupported in this
// version.
func (s *Store) Release(ctx context.Context, r queue.Receipt, o queue.ReleaseOptions) error {
	if o.Delay != 0 {
		return fmt.Errorf("a release with a delay comes with a later version: %w", errors.ErrUnsupported)
	}
	return s.settle(ctx, r, func(d *draft) error { return d.release(r) })
}

// Fail moves a message to the failed ones under o.As, or its ID, and gives that
// name. Refusals: queue.ErrStale, queue.ErrGone; queue.ErrFailedExists, and the
// claim stays as it was.
func (s *Store) Fail(ctx context.Context, r queue.Receipt, o queue.FailOptions) (string, error) {
	if o.As != "" {
		if err := queue.CheckID(o.As); err != nil {
			return "", err
		}
	}
	var as string
	err := s.settle(ctx, r, func(d *draft) (err error) {
		as, err = d.fail(r, bounded(o.Cause), o.As)
		return err
	})
	if err != nil {
		return "", err
	}
	return as, nil
}

func (s *Store) settle(ctx context.Context, r queue.Receipt, f func(*draft) error) error {
	return s.submit(ctx, &call{writes: true, settles: true, decide: func(v *view) error { return f(v.draft) }})
}

// ReplacePayload gives a claimed message another payload, as a migration of its
// content. The generation, the claim and the place in the line stay; the old payload
// stays on the disk until it is collected. On nil the next delivery has the new one.
// Refusals: queue.ErrStale, queue.ErrGone, queue.ErrInvalidPayload, queue.ErrTooLarge.
func (s *Store) ReplacePayload(ctx context.Context, r queue.Receipt, payload []byte) error {
	if err := queue.CheckPayload(payload, s.opts.MaxPayloadBytes, s.opts.MaxPayloadDepth); err != nil {
		return err
	}
	payload = append([]byte(nil), payload...)
	return s.submit(ctx, &call{
		writes: true, grows: true, bytes: int64(len(payload)), objects: ownObjects(arrival{payload: payload}),
		decide: func(v *view) error { return v.draft.replacePayload(r, payload) },
	})
}
