package memory

import (
	"testing"
	"time"

	"example.com/holdfast/queue"
)

func TestReprocess(t *testing.T) {
	fail := func(s *scene) { // m with one failure, one lapse and one more failure
		s.puts("m")
		_, err := s.Retry(bg, s.take("m").Receipt, queue.RetryOptions{Cause: "no"})
		s.must(err)
		r := s.take("m").Receipt
		s.reaps(queue.ReapOptions{Receipt: &r}, 1)
		_, err = s.Store.Fail(bg, s.take("m").Receipt, queue.FailOptions{})
		s.must(err)
	}
	replace := func(s *scene) { s.put(queue.Message{ID: "m", IfExists: queue.Replace}) }
	cases := []struct {
		name  string
		scene func(s *scene)
		err   error
		live  string
	}{
		{"nothing failed", func(s *scene) { s.puts("m") }, queue.ErrNotFailed, "m ready 0-0-0"},
		{"failed", fail, nil, `m ready reprocessed 3-3-0 "no"`},
		{"a newer one pending", func(s *scene) { fail(s); replace(s) }, nil, `m ready reprocessed 3-3-0 "no", m blocked 0-0-0`},
		{"a newer one leased", func(s *scene) { fail(s); replace(s); s.take("m") }, queue.ErrInFlight,
			`m processing 1-0-0 until +1m0s, m failed 3-0-1 "no"`},
		{"a newer one returned", func(s *scene) {
			fail(s)
			replace(s)
			s.must(s.Release(bg, s.take("m").Receipt, queue.ReleaseOptions{}))
		}, queue.ErrInFlight, `m ready released 1-1-0, m failed 3-0-1 "no"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.scene(s)
			revision := s.state.revision
			err := s.Reprocess(bg, "m", queue.ReprocessOptions{})
			s.wants(err, c.err)
			s.is("live", s.live(), c.live)
			if c.err != nil {
				if s.state.revision != revision {
					t.Error("a refusal made a revision")
				}
				return
			}
			if st := s.status("mail"); st.Failed != 0 || st.Counters.Reprocessed != 1 {
				t.Errorf("got %+v", st)
			}
			shown := mustShow(s, "m")
			s.is("payload", string(shown.Payload), `{"id":"m"}`)
			if shown.Seq != 0 {
				t.Errorf("at place %d, want its old one", shown.Seq)
			}
			d := s.take("m")
			if d.Attempt() != 4 || d.Failures != 0 || d.Lapses != 0 || d.LastError != "no" || d.Receipt.Generation != shown.Generation {
				t.Errorf("delivered %+v", d)
			}
		})
	}
}

// Failed names: queues of one namespace share them, and what has failed stays where it
// is.
func TestFailedNamespace(t *testing.T) {
	s := newScene(t)
	fail := func(name string) error {
		_, err := s.Enqueue(bg, name, queue.Message{ID: "m", Payload: []byte(`1`), IfExists: queue.Keep})
		s.must(err)
		d, err := s.Load(bg, name, "m", queue.LoadOptions{Lease: time.Millisecond})
		s.must(err)
		s.pass(time.Millisecond)
		_, err = s.Store.Fail(bg, d.Receipt, queue.FailOptions{})
		return err
	}
	s.must(s.SetFailedNamespace(bg, "b", "aside"))
	s.must(s.SetFailedNamespace(bg, "c", "aside"))
	s.wants(fail("a"), nil)
	s.wants(fail("mail"), queue.ErrFailedExists) // the default one
	s.wants(fail("b"), nil)
	s.wants(fail("c"), queue.ErrFailedExists)
	s.must(s.SetFailedNamespace(bg, "c", ""))
	s.wants(fail("c"), queue.ErrFailedExists)
	s.must(s.SetFailedNamespace(bg, "c", "of/c"))
	s.wants(fail("c"), nil)
	s.must(s.SetFailedNamespace(bg, "b", "elsewhere"))

	for space, from := range map[string]string{"": "a", "aside": "b", "of/c": "c", "elsewhere": ""} {
		page, err := s.ListFailed(bg, queue.FailedOptions{Namespace: space}, queue.ListOptions{})
		s.must(err)
		got := ""
		for _, e := range page.Entries {
			got += e.Queue
			if e.Namespace != space || e.State != queue.Failed || e.FailedName != "m" {
				t.Errorf("%q: %+v", space, e)
			}
		}
		s.is("failed in "+space, got, from)
	}
	s.is("shown in the status", s.status("b").FailedNamespace, "elsewhere")
	s.wants(s.Reprocess(bg, "m", queue.ReprocessOptions{Namespace: "elsewhere"}), queue.ErrNotFailed)
	s.must(s.Reprocess(bg, "m", queue.ReprocessOptions{Namespace: "aside"}))
	if st := s.status("b"); st.Ready != 1 || st.Failed != 0 {
		t.Errorf("reprocessed into %+v", st)
	}
	s.must(s.Purge(bg, "m", queue.PurgeOptions{Namespace: "of/c"}))
	if st := s.status("c"); st.Counters.Purged != 1 || st.Failed != 0 {
		t.Errorf("purged from %+v", st)
	}
	s.wants(s.SetFailedNamespace(bg, "b", "a//b"), queue.ErrInvalidName)
	s.wants(s.SetFailedNamespace(bg, "/", "a"), queue.ErrInvalidName)
}

func TestPurge(t *testing.T) {
	s := newScene(t)
	_, err := s.Store.Fail(bg, leased1(s), queue.FailOptions{})
	s.must(err)
	s.wants(s.Purge(bg, "n", queue.PurgeOptions{}), queue.ErrNotFailed)
	s.wants(s.Purge(bg, "m", queue.PurgeOptions{Namespace: "aside"}), queue.ErrNotFailed)
	s.wants(s.Purge(bg, "m~", queue.PurgeOptions{}), queue.ErrInvalidName)
	s.wants(s.Purge(bg, "m", queue.PurgeOptions{Namespace: "/"}), queue.ErrInvalidName)
	s.wants(s.Reprocess(bg, "m~", queue.ReprocessOptions{}), queue.ErrInvalidName)
	s.must(s.Purge(bg, "m", queue.PurgeOptions{}))
	s.is("counters", s.counted(), "enqueued 1, claimed 1, failed 1, purged 1")
	s.wants(s.Purge(bg, "m", queue.PurgeOptions{}), queue.ErrNotFailed)
	_, err = s.ShowFailed(bg, "m", queue.FailedOptions{})
	s.wants(err, queue.ErrNotFailed)
}
