package queuetest

import "example.com/holdfast/queue"

var namespaceTrials = []trial{
	{"failed messages of a namespace are apart", namespacesApart},
	{"queues of one namespace share its names", namespacesShared},
	{"what has failed stays where it is", namespacesStay},
	{"a cap's names are those of the namespace", namespacesCap},
	{"reprocess and purge name it", namespacesNamed},
	{"listed in order and by queue", namespacesListed},
	{"refused names", namespacesRefused},
}

// failIn makes a message fail.
func (s *scene) failIn(name, id string) {
	s.Helper()
	s.put(name, id, holding(`"`+name+" "+id+`"`))
	s.fail(s.load(name, id).Receipt, "no")
}

// failedIn checks what has failed in a namespace, in order.
func (s *scene) failedIn(space, want string) {
	s.Helper()
	page, err := s.Store.ListFailed(s.ctx, queue.FailedOptions{Namespace: space}, queue.ListOptions{})
	s.must(err)
	got := ""
	for _, e := range page.Entries {
		got += e.Queue + " " + e.FailedName + ", "
		equal(s, "namespace", e.Namespace, space)
	}
	equal(s, "failed in "+space, got, want)
}

func namespacesApart(s *scene) {
	equal(s, "namespace", s.status(mail).FailedNamespace, "")
	s.keepFailedIn(spool, "spooled/bad")
	equal(s, "namespace", s.status(spool).FailedNamespace, "spooled/bad")
	s.failIn(mail, "a")
	s.failIn(spool, "a")
	s.failedIn("", "mail a, ")
	s.failedIn("spooled/bad", "spool/out a, ")
	s.failedIn("unknown", "")
	s.gauged(mail, gauges{failed: 1})
	s.gauged(spool, gauges{failed: 1})
	e, err := s.Store.ShowFailed(s.ctx, "a", queue.FailedOptions{Namespace: "spooled/bad"})
	s.must(err)
	equal(s, "payload", string(e.Payload), `"spool/out a"`)
	_, err = s.Store.ShowFailed(s.ctx, "a", queue.FailedOptions{Namespace: "unknown"})
	s.is(err, queue.ErrNotFailed)
}

func namespacesShared(s *scene) {
	s.keepFailedIn(mail, "bad")
	s.keepFailedIn(spool, "bad")
	s.failIn(mail, "a")
	s.put(spool, "a")
	d := s.take(spool, "a")
	s.refuses(queue.ErrFailedExists, func() error {
		_, err := s.Store.Fail(s.ctx, d.Receipt, queue.FailOptions{})
		return err
	})
	s.failIn("third", "a") // of the default namespace
	s.fail(func() queue.Receipt {
		s.must(s.Store.Purge(s.ctx, "a", queue.PurgeOptions{Namespace: "bad"}))
		return d.Receipt
	}(), "no")
	s.failedIn("bad", "spool/out a, ")
}

func namespacesStay(s *scene) {
	s.failIn(mail, "a")
	s.keepFailedIn(mail, "bad")
	s.failIn(mail, "a")
	s.keepFailedIn(mail, "")
	equal(s, "namespace", s.status(mail).FailedNamespace, "")
	s.put(mail, "a")
	d := s.take(mail, "a")
	s.refuses(queue.ErrFailedExists, func() error {
		_, err := s.Store.Fail(s.ctx, d.Receipt, queue.FailOptions{})
		return err
	})
	s.keepFailedIn(mail, "worse")
	s.fail(d.Receipt, "no") // where the queue keeps them now, not where it did when this was claimed
	s.failedIn("", "mail a, ")
	s.failedIn("bad", "mail a, ")
	s.failedIn("worse", "mail a, ")
	s.gauged(mail, gauges{failed: 3})
}

func namespacesCap(s *scene) {
	s.failIn(mail, "a")
	s.keepFailedIn(spool, "bad")
	s.put(spool, "a")
	r := s.retry(s.take(spool, "a").Receipt, queue.RetryOptions{MaxFailures: 1})
	equal(s, "failed name", r.FailedName, "a") // free in this namespace
	e := s.put(spool, "a")
	s.take(spool, "a")
	s.Advance(minute)
	equal(s, "reaped", reapedIDs(s.reap(queue.ReapOptions{MaxLapses: 1})), "a→a~"+e.Generation)
	s.failedIn("bad", "spool/out a, spool/out a~"+e.Generation+", ")
}

func namespacesNamed(s *scene) {
	s.keepFailedIn(mail, "bad")
	s.failIn(mail, "a")
	s.failIn(mail, "b")
	s.refuses(queue.ErrNotFailed, func() error { return s.Store.Purge(s.ctx, "a", queue.PurgeOptions{}) })
	s.refuses(queue.ErrNotFailed, func() error { return s.Store.Reprocess(s.ctx, "a", queue.ReprocessOptions{}) })
	s.must(s.Store.Purge(s.ctx, "a", queue.PurgeOptions{Namespace: "bad"}))
	s.must(s.Store.Reprocess(s.ctx, "b", queue.ReprocessOptions{Namespace: "bad"}))
	s.failedIn("bad", "")
	s.gauged(mail, gauges{ready: 1})
	s.counted(mail, queue.Counters{Enqueued: 2, Claimed: 2, Failed: 2, Reprocessed: 1, Purged: 1})
	equal(s, "namespace", s.status(mail).FailedNamespace, "bad")
}

func namespacesListed(s *scene) {
	for _, id := range []string{"b", "a-1", "a", "B", "a.1", "_"} {
		s.failIn(mail, id)
	}
	s.failIn(spool, "aa")
	s.failIn(spool, "A")
	s.failedIn("", "spool/out A, mail B, mail _, mail a, mail a-1, mail a.1, spool/out aa, mail b, ")
	var got []queue.Entry
	for after := ""; ; {
		page, err := s.Store.ListFailed(s.ctx, queue.FailedOptions{Queue: mail}, queue.ListOptions{After: after, Limit: 2})
		s.must(err)
		if len(page.Entries) > 2 || after != "" && len(page.Entries) == 0 {
			s.Fatalf("a page of %d entries", len(page.Entries))
		}
		got = append(got, page.Entries...)
		if after = page.Next; after == "" {
			break
		}
	}
	equal(s, "failed of mail", idsOf(got), "B _ a a-1 a.1 b")
	equal(s, "payload in a listing", len(got[0].Payload), 0)
}

func namespacesRefused(s *scene) {
	for _, space := range []string{"a//b", "/", "bad/", "..", "x/status"} {
		s.refuses(queue.ErrInvalidName, func() error { return s.Store.SetFailedNamespace(s.ctx, mail, space) })
		f := queue.FailedOptions{Namespace: space}
		_, err := s.Store.ShowFailed(s.ctx, "a", f)
		s.is(err, queue.ErrInvalidName)
		s.is(s.Store.Purge(s.ctx, "a", queue.PurgeOptions{Namespace: space}), queue.ErrInvalidName)
		s.is(s.Store.Reprocess(s.ctx, "a", queue.ReprocessOptions{Namespace: space}), queue.ErrInvalidName)
		_, err = s.Store.ListFailed(s.ctx, f, queue.ListOptions{})
		s.is(err, queue.ErrInvalidName)
	}
	s.refuses(queue.ErrInvalidName, func() error { return s.Store.SetFailedNamespace(s.ctx, "mail/ack", "bad") })
}
