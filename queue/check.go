package queue

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// What engines check alike, so that a program gets the same verdict from each.

// Bounds and defaults of the contract.
const (
	DefaultMaxPayloadBytes = 16 << 20
	DefaultMaxPayloadDepth = 512

	MaxClaim  = 10000 // messages of one claim
	MaxUpdate = 10000 // changes of one Update

	MaxErrorBytes  = 1024 // of a last error, which is cut
	MaxCursorBytes = 1024 // of a cursor, which is refused

	DefaultMaxFailures = 20
	DefaultMaxLapses   = 10
	DefaultReapLimit   = 100
)

// MaxLease bounds a lease and a delay.
const MaxLease = 100 * 365 * 24 * time.Hour

// maxTime is the latest time that is kept: the last millisecond of the year 9999.
var maxTime = time.UnixMilli(253402300799999).UTC()

// Check says what is wrong with a message, its payload aside, or nil. An empty ID
// is fine: the engine makes one.
func (m Message) Check() error {
	if m.ID != "" {
		if err := CheckID(m.ID); err != nil {
			return err
		}
	}
	if err := CheckText("key", m.Key); err != nil {
		return err
	}
	if m.IfExists < Refuse || m.IfExists > Replace {
		return fmt.Errorf("%v: %w", m.IfExists, ErrInvalid)
	}
	if !m.NotBefore.IsZero() && (m.NotBefore.Before(time.UnixMilli(0)) || m.NotBefore.After(maxTime)) {
		return fmt.Errorf("not-before time: from 1970 to 9999: %w", ErrInvalid)
	}
	return nil
}

// Checked gives the options with their defaults filled in, or says what is wrong.
func (o ClaimOptions) Checked() (ClaimOptions, error) {
	switch {
	case o.Max < 0 || o.Max > MaxClaim:
		return o, fmt.Errorf("a claim of %d messages: from 1 to %d: %w", o.Max, MaxClaim, ErrInvalid)
	case o.MaxBytes < 0:
		return o, fmt.Errorf("a claim of %d bytes: from 1, or 0 for no bound: %w", o.MaxBytes, ErrInvalid)
	case o.Max == 0:
		o.Max = 1
	}
	if err := CheckText("label", o.Label); err != nil {
		return o, err
	}
	var err error
	o.Lease, err = CheckLease(o.Lease)
	return o, err
}

// Checked is as [ClaimOptions.Checked].
func (o LoadOptions) Checked() (LoadOptions, error) {
	if err := CheckText("label", o.Label); err != nil {
		return o, err
	}
	var err error
	o.Lease, err = CheckLease(o.Lease)
	return o, err
}

// Checked is as [ClaimOptions.Checked]. The cause comes back fit to be kept.
func (o RetryOptions) Checked() (RetryOptions, error) {
	if err := checkDelay(o.Delay); err != nil {
		return o, err
	}
	if o.MaxFailures == 0 {
		o.MaxFailures = DefaultMaxFailures
	}
	o.Cause = CutError(o.Cause)
	return o, nil
}

// Checked is as [ClaimOptions.Checked].
func (o ReleaseOptions) Checked() (ReleaseOptions, error) { return o, checkDelay(o.Delay) }

// Checked is as [ClaimOptions.Checked]. The cause comes back fit to be kept.
func (o FailOptions) Checked() (FailOptions, error) {
	if o.As != "" {
		if err := CheckID(o.As); err != nil {
			return o, err
		}
	}
	o.Cause = CutError(o.Cause)
	return o, nil
}

// Checked is as [ClaimOptions.Checked].
func (o ReapOptions) Checked() (ReapOptions, error) {
	for _, name := range o.Queues {
		if err := CheckQueue(name); err != nil {
			return o, err
		}
	}
	switch {
	case o.Receipt != nil && len(o.Queues) > 0:
		return o, fmt.Errorf("a reaping of queues and of one receipt: give one of them: %w", ErrInvalid)
	case o.Limit < 0 || o.Limit > MaxClaim:
		return o, fmt.Errorf("a reaping of %d leases: from 1 to %d: %w", o.Limit, MaxClaim, ErrInvalid)
	case o.Limit == 0:
		o.Limit = DefaultReapLimit
	}
	if o.MaxLapses == 0 {
		o.MaxLapses = DefaultMaxLapses
	}
	return o, nil
}

// Check says what is wrong with the options, or nil.
func (o WaitOptions) Check() error {
	for _, name := range o.Queues {
		if err := CheckQueue(name); err != nil {
			return err
		}
	}
	if o.Message == "" {
		return nil
	}
	if len(o.Queues) != 1 {
		return fmt.Errorf("waiting for one message: name its one queue: %w", ErrInvalid)
	}
	return CheckID(o.Message)
}

// CheckLease gives a lease with its default filled in, or says what is wrong.
func CheckLease(lease time.Duration) (time.Duration, error) {
	switch {
	case lease == 0:
		return DefaultLease, nil
	case lease == NoDeadline:
		return lease, nil
	case lease < time.Millisecond || lease > MaxLease:
		return 0, fmt.Errorf("lease %s: from 1ms to %s, or none: %w", lease, MaxLease, ErrInvalid)
	}
	return lease, nil
}

func checkDelay(delay time.Duration) error {
	if delay < 0 || delay > MaxLease {
		return fmt.Errorf("delay %s: from 0 to %s: %w", delay, MaxLease, ErrInvalid)
	}
	return nil
}

// CheckCursor says why s cannot be a cursor, or nil: at most [MaxCursorBytes] of
// valid UTF-8.
func CheckCursor(s string) error {
	if len(s) > MaxCursorBytes {
		return fmt.Errorf("cursor of %d bytes: at most %d: %w", len(s), MaxCursorBytes, ErrTooLarge)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("cursor is not valid UTF-8: %w", ErrInvalid)
	}
	return nil
}

// CheckNamespace says why name cannot be a failed namespace, or nil. It is empty,
// which is the default one, or formed as a queue name.
func CheckNamespace(name string) error {
	if name == "" {
		return nil
	}
	return CheckQueue(name)
}

// checkFailed says why no failed message can have that name in that namespace, or nil.
func checkFailed(namespace, name string) error {
	if err := CheckNamespace(namespace); err != nil {
		return err
	}
	return CheckFailedName(name)
}

// CutError makes any text fit to be kept as a last error: valid UTF-8, at most
// [MaxErrorBytes] bytes, cut on a rune.
func CutError(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= MaxErrorBytes {
		return s
	}
	most := MaxErrorBytes
	for !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// checkChange says what is wrong with a change by itself, its payload aside, or nil.
func checkChange(c Change) error {
	var err error
	switch c := c.(type) {
	case EnqueueChange:
		if err = CheckQueue(c.Queue); err == nil {
			err = c.Message.Check()
		}
	case ClaimChange:
		if err = CheckQueue(c.Queue); err == nil {
			_, err = c.Options.Checked()
		}
	case LoadChange:
		if err = CheckQueue(c.Queue); err == nil {
			err = CheckID(c.ID)
		}
		if err == nil {
			_, err = c.Options.Checked()
		}
	case ReleaseChange:
		_, err = c.Options.Checked()
	case RetryChange:
		_, err = c.Options.Checked()
	case ExtendChange:
		_, err = CheckLease(c.Lease)
	case FailChange:
		_, err = c.Options.Checked()
	case AckChange, ReplacePayloadChange, ReapChange:
	case ReprocessChange:
		err = checkFailed(c.Options.Namespace, c.FailedName)
	case PurgeChange:
		err = checkFailed(c.Options.Namespace, c.FailedName)
	case CursorChange:
		if err = CheckQueue(c.Queue); err == nil {
			err = CheckCursor(c.Cursor)
		}
	default:
		err = fmt.Errorf("a change of type %T: %w", c, ErrInvalid)
	}
	return err
}

// CheckChanges says what is wrong with the changes of an Update by themselves, or
// nil; payloads are the engine's to check. An error is an *UpdateError, or says that
// there are too many.
func CheckChanges(changes []Change) error {
	if len(changes) > MaxUpdate {
		return fmt.Errorf("an update of %d changes: at most %d: %w", len(changes), MaxUpdate, ErrTooLarge)
	}
	for i, c := range changes {
		if err := checkChange(c); err != nil {
			return &UpdateError{Index: i, Err: err}
		}
	}
	return nil
}
