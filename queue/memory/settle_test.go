package memory

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// memCalls are the calls that take a receipt, alone and, where there is one, as a
// change of an Update.
var memCalls = []struct {
	name string
	call func(s *scene, r queue.Receipt) error
}{
	{"ack", func(s *scene, r queue.Receipt) error { return s.Ack(bg, r) }},
	{"release", func(s *scene, r queue.Receipt) error { return s.Release(bg, r, queue.ReleaseOptions{}) }},
	{"snooze", func(s *scene, r queue.Receipt) error {
		return s.Release(bg, r, queue.ReleaseOptions{Delay: time.Hour})
	}},
	{"retry", func(s *scene, r queue.Receipt) error {
		_, err := s.Retry(bg, r, queue.RetryOptions{Delay: time.Hour, Cause: "no"})
		return err
	}},
	{"retry at the cap", func(s *scene, r queue.Receipt) error {
		_, err := s.Retry(bg, r, queue.RetryOptions{MaxFailures: 1, Cause: "no"})
		return err
	}},
	{"extend", func(s *scene, r queue.Receipt) error { _, err := s.Extend(bg, r, time.Hour); return err }},
	{"fail", func(s *scene, r queue.Receipt) error {
		_, err := s.Store.Fail(bg, r, queue.FailOptions{Cause: "no"})
		return err
	}},
	{"replace payload", func(s *scene, r queue.Receipt) error { return s.ReplacePayload(bg, r, []byte(`7`)) }},
	{"reap", func(s *scene, r queue.Receipt) error {
		_, err := s.Reap(bg, queue.ReapOptions{Receipt: &r})
		return err
	}},
	{"update: ack", func(s *scene, r queue.Receipt) error { return memUpdate(s, queue.AckChange{Receipt: r}) }},
	{"update: release", func(s *scene, r queue.Receipt) error { return memUpdate(s, queue.ReleaseChange{Receipt: r}) }},
	{"update: retry", func(s *scene, r queue.Receipt) error { return memUpdate(s, queue.RetryChange{Receipt: r}) }},
	{"update: extend", func(s *scene, r queue.Receipt) error { return memUpdate(s, queue.ExtendChange{Receipt: r}) }},
	{"update: fail", func(s *scene, r queue.Receipt) error { return memUpdate(s, queue.FailChange{Receipt: r}) }},
}

func memUpdate(s *scene, c queue.Change) error {
	_, err := s.Update(bg, c)
	return err
}

// leased1 puts m into mail and claims it for a minute.
func leased1(s *scene) queue.Receipt {
	s.puts("m")
	return s.take("m").Receipt
}

// reaped1 is leased1, and the lease lapses.
func reaped1(s *scene) queue.Receipt {
	r := leased1(s)
	s.pass(time.Minute)
	s.reaps(queue.ReapOptions{}, 1)
	return r
}

// reaps reaps and wants so many.
func (s *scene) reaps(o queue.ReapOptions, want int) []queue.Returned {
	s.t.Helper()
	out, err := s.Reap(bg, o)
	s.must(err)
	if len(out) != want {
		s.t.Errorf("reaped %+v, want %d", out, want)
	}
	return out
}

// What a receipt may still do: a row for each standing of its message, and the same
// for every call but where the row says so.
func TestReceiptIn(t *testing.T) {
	const gone = "settled, cleared or failed"
	standings := []struct {
		name    string
		scene   func(s *scene) queue.Receipt
		err     error // nil: the receipt is good
		reason  string
		current uint64
		except  string // a call that meets ErrStale with the reason all the same
	}{
		{"leased", leased1, nil, "", 0, ""},
		{"leased, past the deadline", func(s *scene) queue.Receipt { r := leased1(s); s.pass(time.Hour); return r }, nil, "", 0, ""},
		{"leased, another pending", func(s *scene) queue.Receipt {
			r := leased1(s)
			s.put(queue.Message{ID: "m", IfExists: queue.Replace})
			return r
		}, nil, "", 0, ""},
		{"leased, paused", func(s *scene) queue.Receipt { r := leased1(s); s.must(s.Pause(bg, "mail")); return r }, nil, "", 0, ""},
		{"reaped", reaped1, nil, "reaped", 1, "reap"},
		{"reaped by the operator", func(s *scene) queue.Receipt {
			r := leased1(s)
			s.reaps(queue.ReapOptions{Receipt: &r}, 1)
			return r
		}, nil, "reaped", 1, "reap"},
		{"reaped, another pending", func(s *scene) queue.Receipt {
			r := reaped1(s)
			s.put(queue.Message{ID: "m", IfExists: queue.Replace})
			return r
		}, nil, "reaped", 1, "reap"},
		{"reaped, then extended", func(s *scene) queue.Receipt {
			r := reaped1(s)
			_, err := s.Extend(bg, r, time.Minute)
			s.must(err)
			return r
		}, nil, "", 0, ""},
		{"reaped, then claimed", func(s *scene) queue.Receipt { r := reaped1(s); s.claims(queue.ClaimOptions{}); return r },
			queue.ErrStale, "claimed again", 2, ""},
		{"reaped, claimed, reaped", func(s *scene) queue.Receipt {
			r := reaped1(s)
			s.claims(queue.ClaimOptions{Lease: time.Second})
			s.pass(time.Second)
			s.reaps(queue.ReapOptions{}, 1)
			return r
		}, queue.ErrStale, "claimed again", 2, ""},
		{"taken over", func(s *scene) queue.Receipt { r := leased1(s); s.pass(time.Minute); s.take("m"); return r },
			queue.ErrStale, "claimed again", 2, ""},
		{"retried", func(s *scene) queue.Receipt {
			r := leased1(s)
			_, err := s.Retry(bg, r, queue.RetryOptions{})
			s.must(err)
			return r
		}, queue.ErrStale, "retried", 1, ""},
		{"reaped, then retried", func(s *scene) queue.Receipt {
			r := reaped1(s)
			_, err := s.Retry(bg, r, queue.RetryOptions{})
			s.must(err)
			return r
		}, queue.ErrStale, "retried", 1, ""},
		{"released", func(s *scene) queue.Receipt {
			r := leased1(s)
			s.must(s.Release(bg, r, queue.ReleaseOptions{}))
			return r
		}, queue.ErrStale, "released", 1, ""},
		{"snoozed", func(s *scene) queue.Receipt {
			r := leased1(s)
			s.must(s.Release(bg, r, queue.ReleaseOptions{Delay: time.Hour}))
			return r
		}, queue.ErrStale, "released", 1, ""},
		{"reprocessed", func(s *scene) queue.Receipt {
			r := leased1(s)
			_, err := s.Store.Fail(bg, r, queue.FailOptions{As: "f"})
			s.must(err)
			s.must(s.Reprocess(bg, "f", queue.ReprocessOptions{}))
			return r
		}, queue.ErrStale, "reprocessed", 1, ""},
		{"acked", func(s *scene) queue.Receipt { r := leased1(s); s.must(s.Ack(bg, r)); return r }, queue.ErrGone, gone, 0, ""},
		{"failed", func(s *scene) queue.Receipt {
			r := leased1(s)
			_, err := s.Store.Fail(bg, r, queue.FailOptions{})
			s.must(err)
			return r
		}, queue.ErrGone, gone, 0, ""},
		{"failed at the cap of lapses", func(s *scene) queue.Receipt {
			r := leased1(s)
			s.reaps(queue.ReapOptions{Receipt: &r, MaxLapses: 1}, 1)
			return r
		}, queue.ErrGone, gone, 0, ""},
		{"cleared", func(s *scene) queue.Receipt {
			r := leased1(s)
			_, err := s.Clear(bg, "mail", queue.ClearOptions{Leased: true})
			s.must(err)
			return r
		}, queue.ErrGone, gone, 0, ""},
		{"acked, enqueued anew", func(s *scene) queue.Receipt {
			r := leased1(s)
			s.must(s.Ack(bg, r))
			s.puts("m")
			return r
		}, queue.ErrGone, gone + "; another generation of the ID is live", 0, ""},
		{"acked, enqueued and claimed anew", func(s *scene) queue.Receipt {
			r := leased1(s)
			s.must(s.Ack(bg, r))
			leased1(s)
			return r
		}, queue.ErrGone, gone + "; another generation of the ID is live", 0, ""},
		{"never claimed", func(s *scene) queue.Receipt {
			e := s.put(queue.Message{ID: "m"})
			return queue.Receipt{Store: s.ID(), Queue: "mail", ID: "m", Generation: e.Generation, Attempt: 1}
		}, queue.ErrStale, "not claimed", 0, ""},
		{"of another ID", func(s *scene) queue.Receipt { r := leased1(s); r.ID = "n"; return r }, queue.ErrGone, gone, 0, ""},
		{"of another queue", func(s *scene) queue.Receipt { r := leased1(s); r.Queue = "post"; return r }, queue.ErrGone, gone, 0, ""},
		{"of another generation", func(s *scene) queue.Receipt { r := leased1(s); r.Generation = "x.0"; return r },
			queue.ErrGone, gone + "; another generation of the ID is live", 0, ""},
		{"of an attempt to come", func(s *scene) queue.Receipt { r := leased1(s); r.Attempt = 2; return r },
			queue.ErrStale, "claimed again", 1, ""},
		{"of another store", func(s *scene) queue.Receipt { r := leased1(s); r.Store = New(nil).ID(); return r },
			queue.ErrInvalidReceipt, "", 0, ""},
		{"zero", func(s *scene) queue.Receipt { leased1(s); return queue.Receipt{} }, queue.ErrInvalidReceipt, "", 0, ""},
	}
	for _, at := range standings {
		t.Run(at.name, func(t *testing.T) {
			for _, c := range memCalls {
				t.Run(c.name, func(t *testing.T) {
					s := newScene(t)
					r := at.scene(s)
					want := at.err
					if c.name == at.except {
						want = queue.ErrStale
					}
					before, counted, revision := s.live(), s.counted(), s.state.revision
					err := c.call(s, r)
					s.wants(err, want)
					if want == nil {
						if s.state.revision != revision+1 {
							t.Errorf("revision %d after %d", s.state.revision, revision)
						}
						return
					}
					s.is("live", s.live(), before)
					s.is("counters", s.counted(), counted)
					if s.state.revision != revision {
						t.Error("a refusal made a revision")
					}
					if want == queue.ErrInvalidReceipt {
						return
					}
					var lost *queue.LostError
					if !errors.As(err, &lost) || !errors.Is(err, queue.ErrLost) {
						t.Fatalf("got %v, want a LostError", err)
					}
					got := fmt.Sprintf("%s/%s attempt %d, now %d: %s", lost.Queue, lost.ID, lost.Attempt, lost.Current, lost.Reason)
					s.is("lost", got, fmt.Sprintf("%s/%s attempt %d, now %d: %s", r.Queue, r.ID, r.Attempt, at.current, at.reason))
				})
			}
		})
	}
}

// What each call makes of a leased message and of a reaped one.
func TestSettle(t *testing.T) {
	outcomes := []struct {
		call           string
		leased, reaped string // the live and failed messages
		counted        string // what the call adds to the counters
	}{
		{"ack", "", "", "completed 1"},
		{"release", "m ready released 1-1-0", "m ready released 1-1-0", "released 1"},
		{"snooze", "m scheduled released 1-1-0 +1h0m0s", "m scheduled released 1-1-0 +1h1m0s", "released 1"},
		{"retry", `m scheduled retried 1-0-0 +1h0m0s "no"`, `m scheduled retried 1-0-0 +1h1m0s "no"`, "retried 1"},
		{"retry at the cap", `m failed 1-0-0 "no"`, `m failed 1-0-0 "no"`, "failed 1"},
		{"extend", "m processing 1-0-0 until +1h0m0s", "m processing 1-0-0 until +1h1m0s", ""},
		{"fail", `m failed 1-0-0 "no"`, `m failed 1-0-1 "no"`, "failed 1"},
		{"replace payload", "m processing 1-0-0 until +1m0s", "m ready reaped 1-0-1", ""},
	}
	for _, o := range outcomes {
		for _, c := range memCalls {
			if c.name != o.call {
				continue
			}
			t.Run(o.call+"/leased", func(t *testing.T) {
				s := newScene(t)
				r := leased1(s)
				s.must(c.call(s, r))
				s.is("live", s.live(), o.leased)
				s.is("counters", s.counted(), joined("enqueued 1, claimed 1", o.counted))
			})
			t.Run(o.call+"/reaped", func(t *testing.T) {
				s := newScene(t)
				r := reaped1(s)
				s.must(c.call(s, r))
				s.is("live", s.live(), o.reaped)
				want := joined("enqueued 1, claimed 1", "reaped 1", o.counted)
				switch o.counted {
				case "completed 1", "released 1", "retried 1":
					want = joined("enqueued 1, claimed 1", o.counted, "reaped 1")
				}
				s.is("counters", s.counted(), want)
			})
		}
	}
}

func joined(parts ...string) string {
	out := ""
	for _, p := range parts {
		if p != "" && out != "" {
			out += ", "
		}
		out += p
	}
	return out
}

// Whatever a settlement does, the generation that waits behind is then delivered.
func TestSettleLetsTheNewerGenerationOn(t *testing.T) {
	for _, c := range memCalls[:9] {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			r := leased1(s)
			newer := s.put(queue.Message{ID: "m", IfExists: queue.Replace})
			s.must(c.call(s, r))
			claimed, err := s.Claim(bg, "mail", queue.ClaimOptions{Max: 2})
			s.must(err)
			var got []string
			for _, d := range claimed.Deliveries {
				got = append(got, d.Receipt.Generation)
			}
			want := map[string][]string{
				"ack": {newer.Generation}, "fail": {newer.Generation}, "retry at the cap": {newer.Generation},
				"release": {r.Generation}, "reap": {r.Generation}, // the older one comes first
			}[c.name]
			s.is("delivered", fmt.Sprint(got), fmt.Sprint(want))
		})
	}
}

func TestExtendKeepsLabelAndFence(t *testing.T) {
	s := newScene(t)
	r := reaped1(s)
	s.puts("n")
	s.take("n") // another fence
	deadline, err := s.Extend(bg, r, 0)
	s.must(err)
	shown, err := s.Show(bg, "mail", "m")
	s.must(err)
	e := shown[0]
	if want := noon.Add(time.Minute + queue.DefaultLease); !deadline.Equal(want) || !e.Deadline.Equal(want) {
		t.Errorf("deadline %v, shown %v, want %v", deadline, e.Deadline, want)
	}
	if e.Label != "worker 1" || e.Fence != 1 || e.Receipt != r {
		t.Errorf("label %q, fence %d, receipt %v; want those of the claim", e.Label, e.Fence, e.Receipt)
	}
	deadline, err = s.Extend(bg, r, queue.NoDeadline)
	s.must(err)
	if !deadline.IsZero() {
		t.Errorf("without deadline: got %v", deadline)
	}
}

func TestFail(t *testing.T) {
	t.Run("under a name", func(t *testing.T) {
		s := newScene(t)
		as, err := s.Store.Fail(bg, leased1(s), queue.FailOptions{As: "mail.m"})
		s.must(err)
		s.is("name", as, "mail.m")
		s.is("live", s.live(), "m failed as mail.m 1-0-0")
	})
	t.Run("under a name that is taken", func(t *testing.T) {
		s := newScene(t)
		_, err := s.Store.Fail(bg, leased1(s), queue.FailOptions{Cause: "first"})
		s.must(err)
		r := leased1(s)
		for _, as := range []string{"", "m"} {
			_, err = s.Store.Fail(bg, r, queue.FailOptions{As: as})
			s.wants(err, queue.ErrFailedExists)
		}
		s.is("live", s.live(), `m processing 1-0-0 until +1m0s, m failed 1-0-0 "first"`)
		s.must(s.Ack(bg, r))
	})
	t.Run("by the cap, under a name that is taken", func(t *testing.T) {
		s := newScene(t)
		_, err := s.Store.Fail(bg, leased1(s), queue.FailOptions{})
		s.must(err)
		r := leased1(s)
		out, err := s.Retry(bg, r, queue.RetryOptions{MaxFailures: 1})
		s.must(err)
		s.is("name", out.FailedName, "m~"+r.Generation)
		s.is("live", s.live(), "m failed 1-0-0, m failed as m~GEN 1-0-0")
	})
	t.Run("names", func(t *testing.T) {
		s := newScene(t)
		_, err := s.Store.Fail(bg, leased1(s), queue.FailOptions{As: "a~b"})
		s.wants(err, queue.ErrInvalidName)
	})
}

func TestReplacePayloadRefusals(t *testing.T) {
	s := newScene(t)
	r := leased1(s)
	s.wants(s.ReplacePayload(bg, r, []byte(`{`)), queue.ErrInvalidPayload)
	s.Store.opts.MaxPayloadBytes = 3
	s.wants(s.ReplacePayload(bg, r, []byte(`1234`)), queue.ErrTooLarge)
}
