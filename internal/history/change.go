package history

import (
	"context"
	"fmt"

	"example.com/holdfast/queue"
)

// single makes a call that can be a change too.
func single(ctx context.Context, s queue.Store, st Step, r queue.Receipt) (out queue.Outcome, err error) {
	switch st.Op {
	case Claim:
		out.Claimed, err = s.Claim(ctx, st.Queue, claimOptions(st))
	case Ack:
		err = s.Ack(ctx, r)
	case Release:
		err = s.Release(ctx, r, queue.ReleaseOptions{Delay: st.Delay})
	case Retry:
		out.Returned, err = s.Retry(ctx, r, retryOptions(st))
	case Extend:
		out.Deadline, err = s.Extend(ctx, r, leaseOf(st))
	}
	return out, err
}

func claimOptions(st Step) queue.ClaimOptions {
	return queue.ClaimOptions{Max: st.N, Fair: st.Fair, Lease: leaseOf(st), WithoutHolder: st.Holder == ""}
}

func retryOptions(st Step) queue.RetryOptions {
	return queue.RetryOptions{Delay: st.Delay, MaxFailures: st.Most, Cause: st.Cause}
}

func update(ctx context.Context, s queue.Store, st Step) (a Answer, err error) {
	changes := make([]queue.Change, len(st.Changes))
	for i, c := range st.Changes {
		if changes[i], err = change(c); err != nil {
			return a, err
		}
	}
	outs, err := s.Update(ctx, changes...)
	if err != nil {
		return a, err
	}
	if len(outs) != len(changes) {
		return a, fmt.Errorf("%d outcomes of %d changes", len(outs), len(changes))
	}
	for i, out := range outs {
		o, err := outcome(st.Changes[i], out)
		if err != nil {
			return a, err
		}
		a.Outcomes = append(a.Outcomes, o)
	}
	return a, nil
}

func change(st Step) (queue.Change, error) {
	var r queue.Receipt
	if st.Receipt != "" {
		var err error
		if r, err = queue.ParseReceipt(st.Receipt); err != nil {
			return nil, err
		}
	}
	switch st.Op {
	case Enqueue:
		return queue.EnqueueChange{Queue: st.Queue, Message: messages(st)[0]}, nil
	case Claim:
		return queue.ClaimChange{Queue: st.Queue, Options: claimOptions(st)}, nil
	case Ack:
		return queue.AckChange{Receipt: r}, nil
	case Release:
		return queue.ReleaseChange{Receipt: r, Options: queue.ReleaseOptions{Delay: st.Delay}}, nil
	case Retry:
		return queue.RetryChange{Receipt: r, Options: retryOptions(st)}, nil
	case Extend:
		return queue.ExtendChange{Receipt: r, Lease: leaseOf(st)}, nil
	case Fail:
		return queue.FailChange{Receipt: r, Options: queue.FailOptions{Cause: st.Cause, As: st.As}}, nil
	case Cursor:
		return queue.CursorChange{Queue: st.Queue, Cursor: st.Cursor}, nil
	}
	return nil, fmt.Errorf("no change %q", st.Op)
}

// outcome gives what one change came to.
func outcome(st Step, out queue.Outcome) (a Answer, err error) {
	if len(out.Claimed.Damaged) > 0 {
		return a, out.Claimed.Damaged[0]
	}
	if err := a.deliver(out.Claimed.Deliveries...); err != nil {
		return a, err
	}
	switch st.Op {
	case Enqueue:
		a.accept(out.Enqueued)
	case Retry:
		x := out.Returned
		r, err := queue.ParseReceipt(st.Receipt)
		if err != nil || x.Queue != r.Queue || x.ID != r.ID || x.Attempt != r.Attempt {
			return a, fmt.Errorf("a retry of %s returned %+v", st.Receipt, x)
		}
		a.Failed, a.Until = x.FailedName, millis(x.NotBefore)
	case Extend:
		a.Until = millis(out.Deadline)
	case Fail:
		a.Failed = out.Failed
	}
	return a, nil
}
