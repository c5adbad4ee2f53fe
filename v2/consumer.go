//go:build unix

package holdfast

import (
	"context"
	"errors"
	"slices"
	"time"

	"example.com/holdfast/queue"
)

// maxClaim bounds one claim.
const maxClaim = queue.MaxClaim

// Claim leases the oldest due messages of a queue, in order of their enqueue; of the
// messages of one key only the first, and none while another of them is leased. On
// nil the leases are durable; nothing due is an empty result. A message that is
// leased is not due, though its deadline have passed: Reap ends it (List shows which
// are Overdue). Errors: queue.ErrInvalid…, ErrImporting, ErrStaleLock, queue.ErrUncertain, and
// those of the filesystem. A message whose payload is damaged moves to failed in the
// same commit and is reported in Damaged. After some 1,000 of them others have their turn, and
// a claim that has come to no whole one goes on in another commit. A payload that cannot be
// read now (EIO, EMFILE, EACCES) fails the claim, and nothing moves; behind a damaged message
// it ends the claim with what was taken before.
//
// The lease names this process as its holder, unless WithoutHolder says otherwise:
// Reap then returns the message as soon as the process is gone, before the deadline.
func (s *Store) Claim(ctx context.Context, name string, o queue.ClaimOptions) (queue.Claimed, error) {
	if err := queue.CheckQueue(name); err != nil {
		return queue.Claimed{}, err
	}
	o, err := o.Checked()
	if err != nil {
		return queue.Claimed{}, err
	}
	var aside []*queue.DamagedError // in commits before
	for {
		out, more, err := s.claimOnce(ctx, name, o, aside)
		if err != nil && !errors.Is(err, queue.ErrUncertain) && len(aside) > 0 {
			return queue.Claimed{Damaged: aside}, nil // what was done stands; the next claim meets the error
		}
		if err != nil {
			return queue.Claimed{}, err
		}
		out.Damaged = append(aside, out.Damaged...)
		if len(out.Deliveries) > 0 || !more {
			return out, nil
		}
		aside = out.Damaged
	}
}

// claimOnce claims in one commit, behind others that set messages aside for the same call.
// more says that it came to its bound.
func (s *Store) claimOnce(ctx context.Context, name string, o queue.ClaimOptions, aside []*queue.DamagedError) (out queue.Claimed, more bool, err error) {
	err = s.submit(ctx, &call{
		writes: true, grows: true,
		decide: func(v *view) (err error) {
			out, err = s.claim(v, name, o)
			more = v.draft.aside >= maxAside && len(out.Damaged) >= o.Max
			return err
		},
		uncertain: func(u *queue.UncertainError) {
			u.Deliveries, u.Damaged = out.Deliveries, slices.Concat(aside, out.Damaged)
		},
	})
	return out, more, err
}

func (s *Store) claim(v *view, name string, o queue.ClaimOptions) (queue.Claimed, error) {
	holder, err := s.holderUnless(o.WithoutHolder, v.pins)
	if err != nil {
		return queue.Claimed{}, err
	}
	return v.draft.claim(name, taking{max: o.Max, bytes: o.MaxBytes, lease: o.Lease, holder: holder, label: o.Label, fair: o.Fair}, v.load)
}

// holderUnless gives the holder that a claim names: this process, or nobody.
func (s *Store) holderUnless(without bool, p *pins) (token, error) {
	if without {
		return token{}, nil
	}
	return s.holder(p)
}

// Load claims one named message whatever its schedule, its place among those of its
// key, and a pause. Of two live generations it takes the older. A lease that is past
// its deadline or whose holder is proven dead, and one without deadline that names no
// holder, is taken over, which counts as a lapse; its receipt is stale from then on.
// Refusals: queue.ErrNotFound; queue.ErrLeased, also for another message of its key.
// A *queue.DamagedError says that the message moved to failed, durably.
func (s *Store) Load(ctx context.Context, name, id string, o queue.LoadOptions) (queue.Delivery, error) {
	if err := checkNames(name, id); err != nil {
		return queue.Delivery{}, err
	}
	o, err := o.Checked()
	if err != nil {
		return queue.Delivery{}, err
	}
	var out queue.Delivery
	err = s.submit(ctx, &call{
		writes: true, grows: true,
		decide: func(v *view) (err error) {
			out, err = s.load(v, name, id, o)
			return err
		},
		uncertain: func(u *queue.UncertainError) { u.Deliveries = []queue.Delivery{out} },
	})
	if err != nil {
		return queue.Delivery{}, err
	}
	return out, nil
}

func (s *Store) load(v *view, name, id string, o queue.LoadOptions) (queue.Delivery, error) {
	holder, err := s.holderUnless(o.WithoutHolder, v.pins)
	if err != nil {
		return queue.Delivery{}, err
	}
	return v.draft.load(name, id, taking{max: 1, lease: o.Lease, holder: holder, label: o.Label}, v.load, v.dead)
}

func checkNames(name, id string) error {
	if err := queue.CheckQueue(name); err != nil {
		return err
	}
	return queue.CheckID(id)
}

// Ack settles a message for good. On nil its removal is durable. Refusals:
// queue.ErrStale, queue.ErrGone, queue.ErrInvalidReceipt. As every call that changes
// the store it may also answer ErrStaleLock (nothing happened) or queue.ErrUncertain.
// A deadline that has passed does not spoil a receipt; only another claim does.
func (s *Store) Ack(ctx context.Context, r queue.Receipt) error {
	return s.settle(ctx, func(d *draft) error { return d.ack(r) }, nil)
}

// Release returns a message, at once or after o.Delay; the attempt is excused. On nil
// its return is durable and the receipt is good for nothing more. Refusals:
// queue.ErrStale, queue.ErrGone.
func (s *Store) Release(ctx context.Context, r queue.Receipt, o queue.ReleaseOptions) error {
	o, err := o.Checked()
	if err != nil {
		return err
	}
	return s.settle(ctx, func(d *draft) error { return d.release(r, o.Delay) }, nil)
}

// Retry returns a message after a failure, due after o.Delay, or moves it to failed
// when it has now failed o.MaxFailures times, under its ID or, where that is taken,
// ID~generation. It reports which. On nil that is durable and the receipt is good for
// nothing more. Refusals: queue.ErrStale, queue.ErrGone.
func (s *Store) Retry(ctx context.Context, r queue.Receipt, o queue.RetryOptions) (queue.Returned, error) {
	o, err := o.Checked()
	if err != nil {
		return queue.Returned{}, err
	}
	var out queue.Returned
	err = s.settle(ctx, func(d *draft) (err error) {
		out, err = d.retry(r, o)
		return err
	}, func(u *queue.UncertainError) { u.Returned = []queue.Returned{out} })
	if err != nil {
		return queue.Returned{}, err
	}
	return out, nil
}

// Extend moves the deadline of a claim to now + lease and returns it; zero for
// queue.NoDeadline. A message that was reaped and that nobody claimed since goes back
// into processing. On nil that is durable. Refusals: queue.ErrStale, queue.ErrGone.
func (s *Store) Extend(ctx context.Context, r queue.Receipt, lease time.Duration) (time.Time, error) {
	lease, err := queue.CheckLease(lease)
	if err != nil {
		return time.Time{}, err
	}
	var out time.Time
	err = s.settle(ctx, func(d *draft) (err error) {
		out, err = d.extend(r, lease)
		return err
	}, func(u *queue.UncertainError) { u.Deadline = out })
	if err != nil {
		return time.Time{}, err
	}
	return out, nil
}

// Fail moves a message to the failed ones under o.As, or its ID, and gives that
// name. Refusals: queue.ErrStale, queue.ErrGone; queue.ErrFailedExists, and the
// claim stays as it was.
func (s *Store) Fail(ctx context.Context, r queue.Receipt, o queue.FailOptions) (string, error) {
	o, err := o.Checked()
	if err != nil {
		return "", err
	}
	var as string
	err = s.settle(ctx, func(d *draft) (err error) {
		as, err = d.fail(r, o.Cause, o.As)
		return err
	}, func(u *queue.UncertainError) { u.Failed = as })
	if err != nil {
		return "", err
	}
	return as, nil
}

func (s *Store) settle(ctx context.Context, f func(*draft) error, uncertain func(*queue.UncertainError)) error {
	return s.submit(ctx, &call{writes: true, settles: true, decide: func(v *view) error { return f(v.draft) }, uncertain: uncertain})
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
