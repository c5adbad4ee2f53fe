package queuetest

import (
	"fmt"

	"example.com/holdfast/queue"
)

var listTrials = []trial{
	{"in order of delivery, leased ones too", listsOrder},
	{"a page at a time", listsPages},
	{"the default page", listsDefaultPage},
	{"between two pages messages may move", listsMoving},
	{"peek is what a claim would take", listsPeek},
	{"show gives the older first", listsShow},
	{"nothing there", listsNothing},
	{"looking moves nothing", listsMoveNothing},
	{"what a look gives is the caller's", listsOwnSlices},
	{"refused bounds and names", listsRefused},
}

func (s *scene) peek(name string, n int) []queue.Entry {
	s.Helper()
	es, err := s.Store.Peek(s.ctx, name, n)
	s.must(err)
	return es
}

func (s *scene) page(name string, o queue.ListOptions) queue.Page {
	s.Helper()
	p, err := s.Store.List(s.ctx, name, o)
	s.must(err)
	return p
}

func listsOrder(s *scene) {
	s.puts(mail, "a", "b", "c")
	s.put(mail, "d", s.after(minute))
	ds := s.takes(mail, 2, "a b")
	s.put(mail, "b", how(queue.Replace))
	s.release(ds[0].Receipt, minute)
	s.put(mail, "c", how(queue.Replace))
	p := s.page(mail, queue.ListOptions{})
	equal(s, "listed", idsOf(p.Entries), "a b d b c")
	var states string
	for _, e := range p.Entries {
		states += string(e.State) + " "
		if e.Payload != nil {
			s.Fatalf("a listing shows a payload: %s", entryLine(e))
		}
	}
	equal(s, "states", states, "scheduled processing scheduled blocked ready ")
	equal(s, "next page", p.Next, "")
	equal(s, "settled", p.Settled, true)
	equal(s, "revision", p.Revision, s.statusOf().Revision)
}

func listsPages(s *scene) {
	var want []queue.Entry
	for i := range 7 {
		s.put(mail, fmt.Sprint("m", 9-i))
	}
	s.takes(mail, 2, "m9 m8")
	s.put(mail, "m8", how(queue.Replace))
	want = s.page(mail, queue.ListOptions{}).Entries
	for limit := 1; limit <= 9; limit++ {
		var got []queue.Entry
		for after, pages := "", 0; ; pages++ {
			p := s.page(mail, queue.ListOptions{After: after, Limit: limit})
			got = append(got, p.Entries...)
			if len(p.Entries) > limit || pages > 8 {
				s.Fatalf("page %d has %d entries of at most %d", pages, len(p.Entries), limit)
			}
			if after = p.Next; after == "" {
				break
			}
		}
		equal(s, fmt.Sprint("pages of ", limit), idsOf(got), idsOf(want))
	}
}

func listsDefaultPage(s *scene) {
	var ms []queue.Message
	for range 101 {
		ms = append(ms, message(""))
	}
	s.enqueueBatch(mail, ms...)
	p := s.page(mail, queue.ListOptions{})
	equal(s, "entries", len(p.Entries), 100)
	p = s.page(mail, queue.ListOptions{After: p.Next})
	equal(s, "entries", len(p.Entries), 1)
	equal(s, "next page", p.Next, "")
}

func listsMoving(s *scene) {
	s.puts(mail, "a", "b", "c", "d")
	p := s.page(mail, queue.ListOptions{Limit: 2})
	equal(s, "listed", idsOf(p.Entries), "a b")
	for _, d := range s.takes(mail, 3, "a b c") {
		s.ack(d.Receipt) // the one that the mark stands for too
	}
	s.puts(mail, "e")
	p = s.page(mail, queue.ListOptions{After: p.Next, Limit: 2})
	equal(s, "listed", idsOf(p.Entries), "d e")

	for _, id := range []string{"a", "b", "c"} {
		s.failIn(spool, id)
	}
	list := func(after string) queue.Page {
		p, err := s.Store.ListFailed(s.ctx, queue.FailedOptions{}, queue.ListOptions{After: after, Limit: 1})
		s.must(err)
		return p
	}
	p = list("")
	s.must(s.Store.Purge(s.ctx, "a", queue.PurgeOptions{}))
	equal(s, "listed", idsOf(list(p.Next).Entries), "b")
}

func listsPeek(s *scene) {
	s.put(mail, "a", s.after(minute))
	s.putKeyed(mail, "k", "b", "c")
	s.puts(mail, "d", "e", "f")
	s.take(mail, "b")
	s.put(mail, "e", how(queue.Replace))
	for n, want := range []string{1: "d", 2: "d f", 3: "d f e", queue.MaxClaim: "d f e"} {
		if want != "" {
			es := s.peek(mail, n)
			equal(s, "peeked", idsOf(es), want)
			equal(s, "payload", string(es[0].Payload), string(payloadOf("d")))
			equal(s, "state", es[0].State, queue.Ready)
		}
	}
	s.takes(mail, 10, "d f e")
}

func listsShow(s *scene) {
	s.put(mail, "a", holding("1"))
	s.take(mail, "a")
	s.put(mail, "a", holding("2"), how(queue.Replace), key("k"))
	es := s.show(mail, "a", 2)
	if es[0].Seq >= es[1].Seq || es[0].Attempts != 1 || es[1].Attempts != 0 || es[1].Key != "k" ||
		string(es[0].Payload) != "1" || string(es[1].Payload) != "2" {
		s.Fatalf("got %s\nand %s", entryLine(es[0]), entryLine(es[1]))
	}
}

func listsNothing(s *scene) {
	equal(s, "peeked", len(s.peek("unknown", 5)), 0)
	p := s.page("unknown", queue.ListOptions{})
	equal(s, "listed", len(p.Entries), 0)
	equal(s, "next page", p.Next, "")
	f, err := s.Store.ListFailed(s.ctx, queue.FailedOptions{Queue: "unknown"}, queue.ListOptions{})
	s.must(err)
	equal(s, "failed", len(f.Entries), 0)
	_, err = s.Store.Show(s.ctx, "unknown", "a")
	s.is(err, queue.ErrNotFound)
	_, err = s.Store.ShowFailed(s.ctx, "unknown", queue.FailedOptions{})
	s.is(err, queue.ErrNotFailed)
}

func listsMoveNothing(s *scene) {
	s.puts(mail, "a", "b")
	s.fail(s.take(mail, "a").Receipt, "no")
	before := s.look()
	for range 3 {
		s.unchanged(before)
	}
	d := s.take(mail, "b")
	equal(s, "attempt", d.Attempt(), 1)
}

func listsOwnSlices(s *scene) {
	s.put(mail, "a", holding(`"before"`))
	s.put(mail, "b", holding(`"before"`))
	s.fail(s.take(mail, "a").Receipt, "no")
	for range 2 {
		for _, es := range [][]queue.Entry{s.peek(mail, 1), s.show(mail, "b", 1), {s.evidence("a")}} {
			equal(s, "payload", string(es[0].Payload), `"before"`)
			copy(es[0].Payload, "xxxxxxxx")
		}
	}
	equal(s, "payload", string(s.take(mail, "b").Payload), `"before"`)
}

func listsRefused(s *scene) {
	for _, n := range []int{-1, 0, queue.MaxClaim + 1} {
		_, err := s.Store.Peek(s.ctx, mail, n)
		s.is(err, queue.ErrInvalid)
	}
	for _, limit := range []int{-1, queue.MaxClaim + 1} {
		_, err := s.Store.List(s.ctx, mail, queue.ListOptions{Limit: limit})
		s.is(err, queue.ErrInvalid)
		_, err = s.Store.ListFailed(s.ctx, queue.FailedOptions{}, queue.ListOptions{Limit: limit})
		s.is(err, queue.ErrInvalid)
	}
	_, err := s.Store.Peek(s.ctx, "a//b", 1)
	s.is(err, queue.ErrInvalidName)
	_, err = s.Store.List(s.ctx, "a//b", queue.ListOptions{})
	s.is(err, queue.ErrInvalidName)
	_, err = s.Store.Show(s.ctx, mail, "a/b")
	s.is(err, queue.ErrInvalidName)
	_, err = s.Store.ListFailed(s.ctx, queue.FailedOptions{Queue: "a//b"}, queue.ListOptions{})
	s.is(err, queue.ErrInvalidName)
}
