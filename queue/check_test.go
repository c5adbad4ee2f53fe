package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// checkRefused checks that a verdict is want and is invalid in the wide sense.
func checkRefused(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) || !errors.Is(err, ErrInvalid) {
		t.Errorf("got error %v, want %v", err, want)
	}
}

func TestMessageCheck(t *testing.T) {
	long := strings.Repeat("x", MaxNameBytes)
	for _, m := range []Message{
		{}, {ID: "a"}, {ID: long, Key: long}, {Key: "chat 42 \U0001f4ec"}, {IfExists: Replace},
		{NotBefore: time.UnixMilli(0)}, {NotBefore: maxTime}, {NotBefore: time.Unix(1, 1)},
	} {
		if err := m.Check(); err != nil {
			t.Errorf("%+v: %v", m, err)
		}
	}
	for _, c := range []struct {
		m    Message
		want error
	}{
		{Message{ID: "a/b"}, ErrInvalidName},
		{Message{ID: long + "x"}, ErrInvalidName},
		{Message{Key: long + "x"}, ErrInvalidName},
		{Message{Key: "a\tb"}, ErrInvalidName},
		{Message{Key: "\u009b"}, ErrInvalidName},
		{Message{Key: "\xc3"}, ErrInvalidName},
		{Message{IfExists: -1}, ErrInvalid},
		{Message{IfExists: Replace + 1}, ErrInvalid},
		{Message{NotBefore: time.UnixMilli(0).Add(-1)}, ErrInvalid},
		{Message{NotBefore: maxTime.Add(1)}, ErrInvalid},
	} {
		checkRefused(t, c.m.Check(), c.want)
	}
}

func TestCheckedDefaults(t *testing.T) {
	if o, err := (ClaimOptions{}).Checked(); err != nil || o != (ClaimOptions{Max: 1, Lease: DefaultLease}) {
		t.Errorf("claim: %+v, %v", o, err)
	}
	if o, err := (LoadOptions{}).Checked(); err != nil || o != (LoadOptions{Lease: DefaultLease}) {
		t.Errorf("load: %+v, %v", o, err)
	}
	if o, err := (RetryOptions{}).Checked(); err != nil || o != (RetryOptions{MaxFailures: DefaultMaxFailures}) {
		t.Errorf("retry: %+v, %v", o, err)
	}
	if o, err := (ReleaseOptions{}).Checked(); err != nil || o != (ReleaseOptions{}) {
		t.Errorf("release: %+v, %v", o, err)
	}
	if o, err := (FailOptions{}).Checked(); err != nil || o != (FailOptions{}) {
		t.Errorf("fail: %+v, %v", o, err)
	}
	if o, err := (ReapOptions{}).Checked(); err != nil || o.Limit != DefaultReapLimit || o.MaxLapses != DefaultMaxLapses {
		t.Errorf("reap: %+v, %v", o, err)
	}
}

func TestCheckedLeavesWhatIsSet(t *testing.T) {
	claim := ClaimOptions{Max: MaxClaim, Lease: time.Millisecond, Label: "worker 1", Fair: true, WithoutHolder: true}
	if o, err := claim.Checked(); err != nil || o != claim {
		t.Errorf("claim: %+v, %v", o, err)
	}
	load := LoadOptions{Lease: NoDeadline, Label: "worker 1", WithoutHolder: true}
	if o, err := load.Checked(); err != nil || o != load {
		t.Errorf("load: %+v, %v", o, err)
	}
	retry := RetryOptions{Delay: MaxLease, MaxFailures: 1, Cause: "no"}
	if o, err := retry.Checked(); err != nil || o != retry {
		t.Errorf("retry: %+v, %v", o, err)
	}
	fail := FailOptions{Cause: "no", As: "a.bad"}
	if o, err := fail.Checked(); err != nil || o != fail {
		t.Errorf("fail: %+v, %v", o, err)
	}
	reap := ReapOptions{Queues: []string{"a", "b/c"}, Limit: MaxClaim, MaxLapses: 1}
	if o, err := reap.Checked(); err != nil || o.Limit != MaxClaim || o.MaxLapses != 1 || !slices.Equal(o.Queues, reap.Queues) {
		t.Errorf("reap: %+v, %v", o, err)
	}
	if o, err := (ReapOptions{Receipt: &Receipt{}}).Checked(); err != nil || o.Receipt == nil {
		t.Errorf("reap: %+v, %v", o, err)
	}
}

func TestCheckedRefuses(t *testing.T) {
	long := strings.Repeat("x", MaxNameBytes+1)
	for _, c := range []struct {
		what string
		err  func() error
		want error
	}{
		{"claim of -1", func() error { _, err := ClaimOptions{Max: -1}.Checked(); return err }, ErrInvalid},
		{"claim of too many", func() error { _, err := ClaimOptions{Max: MaxClaim + 1}.Checked(); return err }, ErrInvalid},
		{"claim's label", func() error { _, err := ClaimOptions{Label: long}.Checked(); return err }, ErrInvalidName},
		{"claim's lease", func() error { _, err := ClaimOptions{Lease: 1}.Checked(); return err }, ErrInvalid},
		{"load's label", func() error { _, err := LoadOptions{Label: "\x1b"}.Checked(); return err }, ErrInvalidName},
		{"load's lease", func() error { _, err := LoadOptions{Lease: -2}.Checked(); return err }, ErrInvalid},
		{"retry's delay", func() error { _, err := RetryOptions{Delay: -1}.Checked(); return err }, ErrInvalid},
		{"retry's long delay", func() error { _, err := RetryOptions{Delay: MaxLease + 1}.Checked(); return err }, ErrInvalid},
		{"release's delay", func() error { _, err := ReleaseOptions{Delay: -1}.Checked(); return err }, ErrInvalid},
		{"fail's name", func() error { _, err := FailOptions{As: "a~b"}.Checked(); return err }, ErrInvalidName},
		{"reap of -1", func() error { _, err := ReapOptions{Limit: -1}.Checked(); return err }, ErrInvalid},
		{"reap of too many", func() error { _, err := ReapOptions{Limit: MaxClaim + 1}.Checked(); return err }, ErrInvalid},
		{"reap's queue", func() error { _, err := ReapOptions{Queues: []string{"a", ""}}.Checked(); return err }, ErrInvalidName},
		{"reap of queues and a claim", func() error {
			_, err := ReapOptions{Queues: []string{"a"}, Receipt: &Receipt{}}.Checked()
			return err
		}, ErrInvalid},
		{"wait's queue", WaitOptions{Queues: []string{"a/"}}.Check, ErrInvalidName},
		{"wait for a message of no queue", WaitOptions{Message: "a"}.Check, ErrInvalid},
		{"wait for a message of two queues", WaitOptions{Queues: []string{"a", "b"}, Message: "a"}.Check, ErrInvalid},
		{"wait for a message's name", WaitOptions{Queues: []string{"a"}, Message: "a/b"}.Check, ErrInvalidName},
	} {
		t.Run(c.what, func(t *testing.T) { checkRefused(t, c.err(), c.want) })
	}
	for _, o := range []WaitOptions{{}, {Queues: []string{"a", "b"}}, {Queues: []string{"a"}, Message: "b", IgnoreScheduled: true}} {
		if err := o.Check(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestCheckLease(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		0: DefaultLease, NoDeadline: NoDeadline, time.Millisecond: time.Millisecond, MaxLease: MaxLease,
	} {
		if got, err := CheckLease(lease); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", lease, got, err, want)
		}
	}
	for _, lease := range []time.Duration{NoDeadline - 1, 1, time.Millisecond - 1, MaxLease + 1} {
		_, err := CheckLease(lease)
		checkRefused(t, err, ErrInvalid)
	}
}

func TestCheckCursor(t *testing.T) {
	for _, s := range []string{"", "\x00\n<&>\u2028", strings.Repeat("x", MaxCursorBytes)} {
		if err := CheckCursor(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	checkRefused(t, CheckCursor(strings.Repeat("x", MaxCursorBytes+1)), ErrTooLarge)
	checkRefused(t, CheckCursor("a\xff"), ErrInvalid)
}

func TestCheckNamespace(t *testing.T) {
	for _, s := range []string{"", "a", "a/b.c"} {
		if err := CheckNamespace(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for _, s := range []string{"/", "a//b", "a/ack", "..", "a\n"} {
		checkRefused(t, CheckNamespace(s), ErrInvalidName)
	}
}

func TestCutError(t *testing.T) {
	plain := strings.Repeat("x", MaxErrorBytes)
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"smtp: 550\n\x00", "smtp: 550\n\x00"},
		{"a\xffb", "a\ufffdb"},
		{plain, plain},
		{plain + "y", plain},
		{plain[1:] + "é", plain[1:]},
		{plain[2:] + "é", plain[2:] + "é"},
		{plain[1:] + "\U0001f4ec", plain[1:]},
		{plain[3:] + "\U0001f4ec", plain[3:]},
		{plain[1:] + "\xff", plain[1:]}, // three bytes once it is valid
	} {
		got := CutError(c.in)
		if got != c.want || len(got) > MaxErrorBytes || !utf8.ValidString(got) {
			t.Errorf("%q of %d bytes: got %d bytes, want %d", c.in[max(0, len(c.in)-8):], len(c.in), len(got), len(c.want))
		}
		if CutError(got) != got {
			t.Errorf("%q is cut again", got)
		}
	}
}

func TestCheckChanges(t *testing.T) {
	good := []Change{
		EnqueueChange{Queue: "a"}, ClaimChange{Queue: "a"}, AckChange{}, ReleaseChange{}, RetryChange{}, ExtendChange{}, FailChange{},
		CursorChange{Queue: "a"}, LoadChange{Queue: "a", ID: "b"}, ReplacePayloadChange{}, ReapChange{},
		ReprocessChange{FailedName: "a~b.0"}, PurgeChange{FailedName: "a", Options: PurgeOptions{Namespace: "b/c"}},
	}
	if err := CheckChanges(good); err != nil {
		t.Errorf("good ones: %v", err)
	}
	if err := CheckChanges(nil); err != nil {
		t.Errorf("none: %v", err)
	}
	for i, c := range []struct {
		bad  Change
		want error
	}{
		{EnqueueChange{Queue: ""}, ErrInvalidName},
		{EnqueueChange{Queue: "a", Message: Message{ID: "."}}, ErrInvalidName},
		{ClaimChange{Queue: "a/"}, ErrInvalidName},
		{ClaimChange{Queue: "a", Options: ClaimOptions{Max: -1}}, ErrInvalid},
		{ReleaseChange{Options: ReleaseOptions{Delay: -1}}, ErrInvalid},
		{RetryChange{Options: RetryOptions{Delay: -1}}, ErrInvalid},
		{ExtendChange{Lease: 1}, ErrInvalid},
		{FailChange{Options: FailOptions{As: "a b"}}, ErrInvalidName},
		{LoadChange{Queue: "a/", ID: "b"}, ErrInvalidName},
		{LoadChange{Queue: "a"}, ErrInvalidName},
		{LoadChange{Queue: "a", ID: "b", Options: LoadOptions{Lease: 1}}, ErrInvalid},
		{ReprocessChange{}, ErrInvalidName},
		{ReprocessChange{FailedName: "a", Options: ReprocessOptions{Namespace: "a/"}}, ErrInvalidName},
		{PurgeChange{FailedName: "a/b"}, ErrInvalidName},
		{PurgeChange{FailedName: "a", Options: PurgeOptions{Namespace: ".."}}, ErrInvalidName},
		{CursorChange{Queue: "a//b"}, ErrInvalidName},
		{CursorChange{Queue: "a", Cursor: "\xff"}, ErrInvalid},
		{CursorChange{Queue: "a", Cursor: strings.Repeat("x", MaxCursorBytes+1)}, ErrTooLarge},
		{nil, ErrInvalid},
		{&AckChange{}, ErrInvalid}, // a pointer is another type
	} {
		t.Run(fmt.Sprintf("%T", c.bad), func(t *testing.T) {
			at := i % len(good)
			err := CheckChanges(slices.Insert(slices.Clone(good), at, c.bad))
			checkRefused(t, err, c.want)
			var refused *UpdateError
			if !errors.As(err, &refused) || refused.Index != at {
				t.Errorf("got %v, want a *UpdateError at index %d", err, at)
			}
		})
	}
	if err := CheckChanges(slices.Repeat([]Change{AckChange{}}, MaxUpdate)); err != nil {
		t.Errorf("as many as may be: %v", err)
	}
	checkRefused(t, CheckChanges(slices.Repeat([]Change{AckChange{}}, MaxUpdate+1)), ErrTooLarge)
}
