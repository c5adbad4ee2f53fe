package memory

import (
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

// endClaim ends one claim of m as a letter says.
func endClaim(s *scene, how rune, r queue.Receipt) {
	s.t.Helper()
	if how == 'F' || how == 'R' { // what the letter says, after a reaping
		s.reaps(queue.ReapOptions{Receipt: &r}, 1)
	}
	switch how {
	case 'f', 'F': // a real failure
		_, err := s.Retry(bg, r, queue.RetryOptions{})
		s.must(err)
	case 'r', 'R': // released
		s.must(s.Release(bg, r, queue.ReleaseOptions{}))
	case 'l': // lapsed
		s.reaps(queue.ReapOptions{Receipt: &r}, 1)
	case 'p': // failed and reprocessed
		_, err := s.Store.Fail(bg, r, queue.FailOptions{})
		s.must(err)
		s.must(s.Reprocess(bg, "m", queue.ReprocessOptions{}))
	}
}

// The caps: failures and lapses are counted apart, and excused attempts not at all.
func TestCaps(t *testing.T) {
	cases := []struct {
		history          string // how the claims before the last ended
		failures, lapses uint64 // that the next delivery tells
	}{
		{"", 0, 0}, {"f", 1, 0}, {"fff", 3, 0}, {"r", 0, 0}, {"rrf", 1, 0}, {"l", 0, 1}, {"llf", 1, 2},
		{"F", 1, 0}, {"R", 0, 0}, {"lF", 1, 1}, {"flrf", 2, 1}, {"fflp", 0, 0}, {"flpfl", 1, 1},
	}
	for _, c := range cases {
		name := c.history
		if name == "" {
			name = "none"
		}
		t.Run(name, func(t *testing.T) {
			begin := func() (*scene, queue.Delivery) {
				s := newScene(t)
				s.puts("m")
				for _, how := range c.history {
					endClaim(s, how, s.take("m").Receipt)
				}
				return s, s.take("m")
			}
			_, d := begin()
			if d.Failures != c.failures || d.Lapses != c.lapses || d.Attempt() != uint64(len(c.history))+1 {
				t.Errorf("attempt %d tells %d failures, %d lapses", d.Attempt(), d.Failures, d.Lapses)
			}
			for _, below := range []bool{true, false} {
				s, d := begin()
				most := c.failures + 1
				if below {
					most++
				}
				out, err := s.Retry(bg, d.Receipt, queue.RetryOptions{MaxFailures: most, Cause: "no"})
				s.must(err)
				if failed := out.FailedName == "m"; failed == below || out.Attempt != d.Attempt() || out.Queue != "mail" || out.ID != "m" {
					t.Errorf("a retry at most %d failures: %+v", most, out)
				}
				if st := s.status("mail"); (st.Failed == 1) == below || (st.Pending == 1) != below {
					t.Errorf("a retry at most %d failures: %d failed, %d pending", most, st.Failed, st.Pending)
				}

				s, d = begin()
				most = c.lapses + 1
				if below {
					most++
				}
				reaped := s.reaps(queue.ReapOptions{Receipt: &d.Receipt, MaxLapses: most}, 1)[0]
				if failed := reaped.FailedName == "m"; failed == below || reaped.Lapses != c.lapses+1 || reaped.Attempt != d.Attempt() {
					t.Errorf("a reaping at most %d lapses: %+v", most, reaped)
				}
			}
		})
	}
}

// The defaults: twenty failures, ten lapses.
func TestDefaultCaps(t *testing.T) {
	s := newScene(t)
	s.puts("m", "n")
	for n := 1; n <= queue.DefaultMaxFailures; n++ {
		out, err := s.Retry(bg, s.take("m").Receipt, queue.RetryOptions{})
		s.must(err)
		if (out.FailedName != "") != (n == queue.DefaultMaxFailures) {
			t.Errorf("failure %d: %+v", n, out)
		}
	}
	for n := 1; n <= queue.DefaultMaxLapses; n++ {
		r := s.take("n").Receipt
		if out := s.reaps(queue.ReapOptions{Receipt: &r}, 1); (out[0].FailedName != "") != (n == queue.DefaultMaxLapses) {
			t.Errorf("lapse %d: %+v", n, out)
		}
	}
}

func TestLastError(t *testing.T) {
	s := newScene(t)
	s.puts("m")
	retry := func(cause string, most uint64) {
		_, err := s.Retry(bg, s.take("m").Receipt, queue.RetryOptions{Cause: cause, MaxFailures: most})
		s.must(err)
	}
	retry("first", 0)
	retry("", 0)
	s.is("an empty cause keeps it", s.take("m").LastError, "first")
	s.must(s.Ack(bg, mustShow(s, "m").Receipt))

	s.puts("m")
	retry(strings.Repeat("é", 600), 0)
	if got := s.take("m").LastError; got != strings.Repeat("é", 512) {
		t.Errorf("a long cause: %d bytes kept", len(got))
	}
	r := mustShow(s, "m").Receipt
	s.reaps(queue.ReapOptions{Receipt: &r, MaxLapses: 1}, 1)
	e, err := s.ShowFailed(bg, "m", queue.FailedOptions{})
	s.must(err)
	if want := "lapsed 1 times without settlement; last error: é"; !strings.HasPrefix(e.LastError, want) || len(e.LastError) > queue.MaxErrorBytes {
		t.Errorf("at the cap of lapses: %d bytes, %.60q", len(e.LastError), e.LastError)
	}

	s.puts("n")
	r = s.take("n").Receipt
	s.reaps(queue.ReapOptions{Receipt: &r, MaxLapses: 1}, 1)
	e, err = s.ShowFailed(bg, "n", queue.FailedOptions{})
	s.must(err)
	s.is("without an earlier one", e.LastError, "lapsed 1 times without settlement")
}

// mustShow shows the older live generation of an ID of mail.
func mustShow(s *scene, id string) queue.Entry {
	s.t.Helper()
	shown, err := s.Show(bg, "mail", id)
	s.must(err)
	return shown[0]
}

// A delay never ends early, whatever the clock reads between two milliseconds.
func TestDelay(t *testing.T) {
	for _, c := range []struct {
		name string
		back func(s *scene, r queue.Receipt)
	}{
		{"retry", func(s *scene, r queue.Receipt) {
			out, err := s.Retry(bg, r, queue.RetryOptions{Delay: time.Second})
			s.must(err)
			if want := noon.Add(1001 * time.Millisecond); !out.NotBefore.Equal(want) {
				t.Errorf("due again at %v, want %v", out.NotBefore, want)
			}
		}},
		{"snooze", func(s *scene, r queue.Receipt) {
			s.must(s.Release(bg, r, queue.ReleaseOptions{Delay: time.Second}))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.puts("m")
			s.pass(time.Microsecond)
			c.back(s, s.take("m").Receipt)
			s.pass(time.Second)
			s.is("after the delay, by the clock", s.claims(queue.ClaimOptions{}), "")
			s.pass(time.Millisecond - time.Microsecond)
			s.is("at the next millisecond", s.claims(queue.ClaimOptions{}), "m")
			s.is("the schedule is spent", s.live(), "m processing 2-"+map[string]string{"retry": "0", "snooze": "1"}[c.name]+"-0 until +5m1.001s")
		})
	}
	t.Run("out of bounds", func(t *testing.T) {
		s := newScene(t)
		r := leased1(s)
		for _, delay := range []time.Duration{-1, queue.MaxLease + 1} {
			s.wants(s.Release(bg, r, queue.ReleaseOptions{Delay: delay}), queue.ErrInvalid)
			_, err := s.Retry(bg, r, queue.RetryOptions{Delay: delay})
			s.wants(err, queue.ErrInvalid)
		}
		_, err := s.Extend(bg, r, 1)
		s.wants(err, queue.ErrInvalid)
	})
}
