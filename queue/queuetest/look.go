package queuetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"example.com/holdfast/queue"
)

// showMost bounds for how many messages of a queue a look asks for payloads.
const showMost = 50

// A sight is everything that can be seen of a store.
type sight struct {
	status  queue.Status
	live    map[string][]queue.Entry // by queue, in order of delivery
	failed  map[string][]queue.Entry // by namespace, in order of names
	cursors map[string]string        // by queue
	next    map[string][]queue.Entry // by queue: what Peek shows
}

// look sees the whole store. Nothing else may use it meanwhile.
func (s *scene) look() sight {
	s.Helper()
	st, err := s.Store.Status(s.ctx, queue.StatusOptions{})
	s.must(err)
	v := sight{st, map[string][]queue.Entry{}, map[string][]queue.Entry{}, map[string]string{}, map[string][]queue.Entry{}}
	for name, q := range st.Queues {
		s.spaces[q.FailedNamespace] = true
		v.live[name] = s.list(name, st.Revision)
		v.cursors[name], err = s.Store.Cursor(s.ctx, name)
		s.must(err)
		v.next[name], err = s.Store.Peek(s.ctx, name, queue.MaxClaim)
		s.must(err)
	}
	for space := range s.spaces {
		v.failed[space] = s.listFailed(queue.FailedOptions{Namespace: space}, st.Revision)
	}
	return v
}

// list gives every live message of a queue, with their payloads while they are few.
func (s *scene) list(name string, revision uint64) []queue.Entry {
	s.Helper()
	es := s.pages(revision, func(o queue.ListOptions) (queue.Page, error) { return s.Store.List(s.ctx, name, o) })
	if len(es) > showMost {
		return es
	}
	shown := map[string][]queue.Entry{}
	for i, e := range es {
		if shown[e.ID] == nil {
			one, err := s.Store.Show(s.ctx, name, e.ID)
			s.must(err)
			shown[e.ID] = one
		}
		if len(shown[e.ID]) == 0 {
			s.Fatalf("%s: List shows %s once more than Show", name, e.ID)
		}
		one := shown[e.ID][0]
		shown[e.ID] = shown[e.ID][1:]
		e.Payload = one.Payload
		if got, want := entryLine(one), entryLine(e); got != want {
			s.Fatalf("Show and List differ\nshow: %s\nlist: %s", got, want)
		}
		es[i] = one
	}
	for id, rest := range shown {
		if len(rest) > 0 {
			s.Fatalf("%s: Show shows %s once more than List", name, id)
		}
	}
	return es
}

// listFailed gives the failed messages of a namespace, with their payloads while
// they are few.
func (s *scene) listFailed(f queue.FailedOptions, revision uint64) []queue.Entry {
	s.Helper()
	es := s.pages(revision, func(o queue.ListOptions) (queue.Page, error) { return s.Store.ListFailed(s.ctx, f, o) })
	if len(es) > showMost {
		return es
	}
	for i, e := range es {
		one, err := s.Store.ShowFailed(s.ctx, e.FailedName, queue.FailedOptions{Namespace: f.Namespace})
		s.must(err)
		e.Payload = one.Payload
		if got, want := entryLine(one), entryLine(e); got != want {
			s.Fatalf("ShowFailed and ListFailed differ\nshow: %s\nlist: %s", got, want)
		}
		es[i] = one
	}
	return es
}

// pages reads a listing to its end.
func (s *scene) pages(revision uint64, page func(queue.ListOptions) (queue.Page, error)) []queue.Entry {
	s.Helper()
	var es []queue.Entry
	for after := ""; ; {
		p, err := page(queue.ListOptions{After: after, Limit: queue.MaxClaim})
		s.must(err)
		if p.Revision != revision || !p.Settled {
			s.Fatalf("a page of revision %d, settled %v; the store stood at %d", p.Revision, p.Settled, revision)
		}
		es = append(es, p.Entries...)
		if after = p.Next; after == "" {
			return es
		}
	}
}

// lines writes a sight down, a fact a line.
func (v sight) lines() []string {
	lines := []string{fmt.Sprintf("revision %d, settled %v", v.status.Revision, v.status.Settled)}
	for _, name := range slices.Sorted(maps.Keys(v.status.Queues)) {
		lines = append(lines,
			fmt.Sprintf("queue %s: %+v", name, v.status.Queues[name]),
			fmt.Sprintf("queue %s: cursor %q, next %s", name, v.cursors[name], idsOf(v.next[name])))
		for _, e := range v.live[name] {
			lines = append(lines, entryLine(e))
		}
	}
	for _, space := range slices.Sorted(maps.Keys(v.failed)) {
		for _, e := range v.failed[space] {
			lines = append(lines, entryLine(e))
		}
	}
	return lines
}

// entryLine writes an entry down; a payload too long to read is told by its ends.
func entryLine(e queue.Entry) string {
	payload := fmt.Sprintf("%q", e.Payload)
	if n := len(e.Payload); n > 1000 {
		payload = fmt.Sprintf("%q… of %d bytes …%q", e.Payload[:100], n, e.Payload[n-100:])
	}
	e.Payload = nil
	return fmt.Sprintf("entry %+v payload %s", e, payload)
}

// unchanged checks that the store is as it was.
func (s *scene) unchanged(before sight) {
	s.Helper()
	was, now := before.lines(), s.look().lines()
	if slices.Equal(was, now) {
		return
	}
	var diff strings.Builder
	for _, line := range was {
		if !slices.Contains(now, line) {
			fmt.Fprintf(&diff, "\n- %s", line)
		}
	}
	for _, line := range now {
		if !slices.Contains(was, line) {
			fmt.Fprintf(&diff, "\n+ %s", line)
		}
	}
	s.Fatalf("the call left a trace:%s", &diff)
}
