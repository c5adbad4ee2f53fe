package memory

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/holdfast/queue"
)

func TestList(t *testing.T) {
	s := newScene(t)
	for n := range 7 {
		s.puts(fmt.Sprint("m", n))
	}
	s.take("m2")
	for _, c := range []struct {
		limit int
		pages string
	}{
		{0, "m0 m1 m2 m3 m4 m5 m6"},
		{3, "m0 m1 m2 | m3 m4 m5 | m6"},
		{7, "m0 m1 m2 m3 m4 m5 m6"},
		{1, "m0 | m1 | m2 | m3 | m4 | m5 | m6"},
	} {
		t.Run(fmt.Sprint(c.limit, " a page"), func(t *testing.T) {
			var pages []string
			for o := (queue.ListOptions{Limit: c.limit}); ; {
				page, err := s.List(bg, "mail", o)
				s.must(err)
				var ids []string
				for _, e := range page.Entries {
					ids = append(ids, e.ID)
					if e.Payload != nil || e.PayloadBytes != 11 {
						t.Errorf("%s: %d of %d bytes", e.ID, len(e.Payload), e.PayloadBytes)
					}
				}
				pages = append(pages, strings.Join(ids, " "))
				if !page.Settled || page.Revision != s.state.revision {
					t.Errorf("page of revision %d, settled %v", page.Revision, page.Settled)
				}
				if o.After = page.Next; o.After == "" {
					break
				}
			}
			s.is("pages", strings.Join(pages, " | "), c.pages)
		})
	}
	t.Run("a mark whose message went", func(t *testing.T) {
		page, err := s.List(bg, "mail", queue.ListOptions{Limit: 3})
		s.must(err)
		s.must(s.Ack(bg, mustShow(s, "m2").Receipt))
		page, err = s.List(bg, "mail", queue.ListOptions{Limit: 1, After: page.Next})
		s.must(err)
		s.is("next", page.Entries[0].ID, "m3")
	})
	page, err := s.List(bg, "unknown", queue.ListOptions{})
	if err != nil || len(page.Entries) != 0 || page.Next != "" || !page.Settled {
		t.Errorf("an unknown queue: %+v, %v", page, err)
	}
	for _, after := range []string{"x", "-1", "1.0", "18446744073709551615"} {
		_, err := s.List(bg, "mail", queue.ListOptions{After: after})
		s.wants(err, queue.ErrInvalid)
	}
}

func TestListFailed(t *testing.T) {
	s := newScene(t)
	for _, name := range []string{"mail/c", "post/a", "mail/B", "mail/d"} {
		name, id, _ := strings.Cut(name, "/")
		_, err := s.Enqueue(bg, name, queue.Message{ID: id, Payload: []byte(`1`)})
		s.must(err)
		d, err := s.Load(bg, name, id, queue.LoadOptions{})
		s.must(err)
		s.pass(time.Second)
		_, err = s.Store.Fail(bg, d.Receipt, queue.FailOptions{Cause: "no " + id})
		s.must(err)
	}
	for _, c := range []struct {
		f     queue.FailedOptions
		limit int
		pages string
	}{
		{queue.FailedOptions{}, 0, "B a c d"},
		{queue.FailedOptions{}, 3, "B a c | d"},
		{queue.FailedOptions{}, 4, "B a c d"},
		{queue.FailedOptions{Queue: "mail"}, 2, "B c | d"},
		{queue.FailedOptions{Queue: "unknown"}, 2, ""},
		{queue.FailedOptions{Namespace: "aside"}, 2, ""},
	} {
		var pages []string
		for o := (queue.ListOptions{Limit: c.limit}); ; {
			page, err := s.ListFailed(bg, c.f, o)
			s.must(err)
			var names []string
			for _, e := range page.Entries {
				names = append(names, e.FailedName)
			}
			pages = append(pages, strings.Join(names, " "))
			if o.After = page.Next; o.After == "" {
				break
			}
		}
		s.is(fmt.Sprintf("%+v", c.f), strings.Join(pages, " | "), c.pages)
	}
	e, err := s.ShowFailed(bg, "a", queue.FailedOptions{})
	s.must(err)
	if e.Queue != "post" || e.State != queue.Failed || e.Attempts != 1 || e.LastError != "no a" || !e.FailedAt.Equal(noon.Add(2*time.Second)) || string(e.Payload) != "1" {
		t.Errorf("got %+v", e)
	}
}

func TestLookRefusals(t *testing.T) {
	s := newScene(t)
	for name, look := range map[string]func() error{
		"peek: queue name": func() error { _, err := s.Peek(bg, "ack", 1); return err },
		"peek: none":       func() error { _, err := s.Peek(bg, "mail", 0); return err },
		"peek: too many":   func() error { _, err := s.Peek(bg, "mail", queue.MaxClaim+1); return err },
		"show: queue name": func() error { _, err := s.Show(bg, "ack", "m"); return err },
		"show: ID":         func() error { _, err := s.Show(bg, "mail", "."); return err },
		"list: queue name": func() error { _, err := s.List(bg, "ack", queue.ListOptions{}); return err },
		"list: limit":      func() error { _, err := s.List(bg, "mail", queue.ListOptions{Limit: -1}); return err },
		"list: too many":   func() error { _, err := s.List(bg, "mail", queue.ListOptions{Limit: queue.MaxClaim + 1}); return err },
		"list failed: queue name": func() error {
			_, err := s.ListFailed(bg, queue.FailedOptions{Queue: "ack"}, queue.ListOptions{})
			return err
		},
		"list failed: namespace": func() error {
			_, err := s.ListFailed(bg, queue.FailedOptions{Namespace: "/"}, queue.ListOptions{})
			return err
		},
		"list failed: limit": func() error {
			_, err := s.ListFailed(bg, queue.FailedOptions{}, queue.ListOptions{Limit: -1})
			return err
		},
		"show failed: name":  func() error { _, err := s.ShowFailed(bg, ".", queue.FailedOptions{}); return err },
		"status: queue name": func() error { _, err := s.Status(bg, queue.StatusOptions{Queues: []string{"ack"}}); return err },
		"wait: queue name":   func() error { _, err := s.Wait(bg, queue.WaitOptions{Queues: []string{"ack"}}); return err },
		"wait: two queues": func() error {
			_, err := s.Wait(bg, queue.WaitOptions{Queues: []string{"a", "b"}, Message: "m"})
			return err
		},
		"wait for due: name": func() error { return s.WaitDue(bg, "mail", "ack") },
	} {
		if err := look(); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%s: got %v, want queue.ErrInvalid", name, err)
		}
	}
	_, err := s.Show(bg, "mail", "m")
	s.wants(err, queue.ErrNotFound)
}

func TestStatus(t *testing.T) {
	s := newScene(t)
	s.puts("a", "b")
	s.take("a")
	s.pass(time.Minute)
	_, err := s.Enqueue(bg, "post", queue.Message{Payload: []byte(`1`)})
	s.must(err)
	st, err := s.Status(bg, queue.StatusOptions{Queues: []string{"mail", "unknown"}})
	s.must(err)
	mail, unknown := st.Queues["mail"], st.Queues["unknown"]
	if len(st.Queues) != 2 || mail.Pending != 1 || mail.Ready != 1 || mail.Processing != 1 || mail.Overdue != 1 || mail.Unacked() != 2 || mail.Complete() {
		t.Errorf("got %+v", st)
	}
	if unknown != (queue.QueueStatus{}) || !unknown.Complete() {
		t.Errorf("an unknown queue: %+v", unknown)
	}
	if !st.Settled || st.Owner != nil || st.Revision != 4 || st.Orphans != -1 || st.OrphanBytes != -1 || st.Complete() {
		t.Errorf("got %+v", st)
	}
	st, err = s.Status(bg, queue.StatusOptions{Orphans: true})
	s.must(err)
	if len(st.Queues) != 2 || st.Queues["post"].Ready != 1 || st.Orphans != 0 || st.OrphanBytes != 0 {
		t.Errorf("all queues: %+v", st)
	}
}
