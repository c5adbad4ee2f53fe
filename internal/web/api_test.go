//go:build unix

package web

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/internal/forms"
	"example.com/holdfast/queue"
	"example.com/holdfast/queue/memory"
)

// The life of messages through every route.
func TestLifeThroughTheAPI(t *testing.T) {
	s := newScene(t)
	do := func(path, body string) string {
		t.Helper()
		status, text := s.post(path, body)
		if status != http.StatusOK {
			t.Fatalf("%s %s: %d %s", path, body, status, text)
		}
		return text
	}
	claimOne := func() deliveryLine {
		t.Helper()
		got := must[claimedLine](t, 200, do("/v1/claim", `{"queue":"chat/in","lease_ms":60000,"label":"me"}`))
		if len(got.Deliveries) != 1 {
			t.Fatalf("claimed %+v", got)
		}
		return got.Deliveries[0]
	}
	done := must[forms.Enqueued](t, 200, do("/v1/enqueue", `{"queue":"chat/in","id":"a","payload":{"n":12345678901234567890.10,"h":"<b>"}}`))
	if done.ID != "a" || done.Generation == "" || done.Revision == 0 {
		t.Errorf("enqueued %+v", done)
	}
	if kept := must[forms.Enqueued](t, 200, do("/v1/enqueue", `{"queue":"chat/in","id":"a","payload":1,"if_exists":"keep"}`)); !kept.Kept {
		t.Errorf("kept: %+v", kept)
	}
	batch := must[enqueueBatchOut](t, 200, do("/v1/enqueue-batch", `{"queue":"chat/in","messages":[{"id":"b","payload":null},{"id":"c","payload":3,"delay_ms":3600000}]}`))
	if len(batch.Enqueued) != 2 || batch.Enqueued[1].ID != "c" {
		t.Errorf("batch: %+v", batch)
	}

	d := claimOne()
	if string(d.Payload) != `{"n":12345678901234567890.10,"h":"<b>"}` || d.Attempt != 1 || d.Deadline == nil {
		t.Errorf("claimed %+v %s", d, d.Payload)
	}
	if _, text := s.get("/v1/messages?queue=chat/in"); !strings.Contains(text, `"label":"me"`) || !strings.Contains(text, d.Receipt) {
		t.Errorf("messages: %s", text)
	}
	if got := must[extendOut](t, 200, do("/v1/extend", `{"receipt":"`+d.Receipt+`","lease_ms":7200000}`)); got.Deadline == nil || !got.Deadline.After(*d.Deadline) {
		t.Errorf("extended to %v from %v", got.Deadline, d.Deadline)
	}
	if got := must[returnedLine](t, 200, do("/v1/retry", `{"receipt":"`+d.Receipt+`","cause":"no net"}`)); got.Result != "returned" {
		t.Errorf("retried: %+v", got)
	}
	d = claimOne()
	if d.ID != "a" || d.Attempt != 2 || d.LastError != "no net" || d.Failures != 1 {
		t.Errorf("claimed again: %+v", d)
	}
	do("/v1/release", `{"receipt":"`+d.Receipt+`"}`)
	d = claimOne()
	if got := must[failOut](t, 200, do("/v1/fail", `{"receipt":"`+d.Receipt+`","cause":"never","as":"a.bad"}`)); got.FailedName != "a.bad" {
		t.Errorf("failed: %+v", got)
	}
	page := must[pageLine](t, 200, second(s.get("/v1/failed?queue=chat/in")))
	if len(page.Entries) != 1 || page.Entries[0].LastError != "never" || page.Entries[0].FailedName != "a.bad" || page.Entries[0].Payload != nil {
		t.Errorf("failed: %+v", page)
	}
	e := must[entryLine](t, 200, second(s.get("/v1/failed-message?failed_name=a.bad")))
	if e.PayloadText != `{"n":12345678901234567890.10,"h":"<b>"}` || e.State != "failed" {
		t.Errorf("failed message: %+v", e)
	}
	do("/v1/reprocess", `{"failed_name":"a.bad"}`)
	d = claimOne()
	if d.ID != "a" {
		t.Errorf("after reprocess: %+v", d)
	}
	do("/v1/ack", `{"receipt":"`+d.Receipt+`"}`)

	d = must[deliveryLine](t, 200, do("/v1/load", `{"queue":"chat/in","id":"c","lease_ms":1000}`))
	reaped := must[reapOut](t, 200, do("/v1/reap", `{"receipt":"`+d.Receipt+`"}`))
	if len(reaped.Returned) != 1 || reaped.Returned[0].Cause != "operator" || reaped.Returned[0].ID != "c" {
		t.Errorf("reaped: %+v", reaped)
	}
	do("/v1/pause", `{"queue":"chat/in"}`)
	if got := must[claimedLine](t, 200, do("/v1/claim", `{"queue":"chat/in","lease_ms":1}`)); got.Deliveries == nil || len(got.Deliveries) != 0 {
		t.Errorf("claimed while paused: %+v", got)
	}
	st := must[statusLine](t, 200, second(s.get("/v1/status?queue=chat/in&queue=other&oldest=true")))
	if q := st.Queues["chat/in"]; !q.Paused || q.Pending != 2 || q.Counters.Completed != 1 || q.Oldest == nil || len(st.Queues) != 2 || !st.Settled || st.Store != "teststore" {
		t.Errorf("status: %+v", st)
	}
	do("/v1/resume", `{"queue":"chat/in"}`)
	d = claimOne()
	if got := must[returnedLine](t, 200, do("/v1/retry", `{"receipt":"`+d.Receipt+`","max_failures":1,"cause":"x"}`)); got.Result != "failed" || got.FailedName != d.ID {
		t.Errorf("retried at the cap: %+v", got)
	}
	do("/v1/purge", `{"failed_name":"`+d.ID+`"}`)
	if all := must[entriesLine](t, 200, second(s.get("/v1/message?queue=chat/in&id="+map[string]string{"b": "c", "c": "b"}[d.ID]))); len(all.Entries) != 1 || len(all.Entries[0].Payload) == 0 {
		t.Errorf("message: %+v", all)
	}
}

func second(status int, body string) string {
	if status != http.StatusOK {
		return fmt.Sprintf("status %d: %s", status, body)
	}
	return body
}

// What the engine refuses has its code and HTTP status, and the facts of a typed error.
func TestRefusals(t *testing.T) {
	s := newScene(t)
	_, _ = s.post("/v1/enqueue", `{"queue":"mail","id":"a","payload":1}`)
	_, text := s.post("/v1/claim", `{"queue":"mail","lease_ms":60000}`)
	d := must[claimedLine](t, 200, text).Deliveries[0]
	for name, c := range map[string]struct {
		path, body string
		status     int
		code       string
	}{
		"a bad queue":        {"/v1/enqueue", `{"queue":"a//b","payload":1}`, 400, "invalid_name"},
		"a bad payload":      {"/v1/enqueue", "{\"queue\":\"a\",\"payload\":\"\xff\"}", 400, "invalid_payload"},
		"a bad choice":       {"/v1/enqueue", `{"queue":"a","payload":1,"if_exists":"x"}`, 400, "invalid"},
		"a live ID":          {"/v1/enqueue", `{"queue":"mail","id":"a","payload":1}`, 409, "duplicate"},
		"a bad receipt":      {"/v1/ack", `{"receipt":"x"}`, 400, "invalid_receipt"},
		"a leased message":   {"/v1/load", `{"queue":"mail","id":"a","lease_ms":1}`, 409, "leased"},
		"an unknown message": {"/v1/load", `{"queue":"mail","id":"b","lease_ms":1}`, 404, "not_found"},
		"an unknown failure": {"/v1/purge", `{"failed_name":"a"}`, 404, "not_failed"},
		"another store's":    {"/v1/ack", `{"receipt":"other:mail:a:` + d.Generation + `:1"}`, 400, "invalid_receipt"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := s.post(c.path, c.body)
			refused(t, status, body, c.status, c.code)
		})
	}
	status, body := s.post("/v1/enqueue-batch", `{"queue":"mail","messages":[{"id":"x","payload":1},{"id":"a","payload":1}]}`)
	if l := refused(t, status, body, 409, "duplicate"); len(l.Refused) != 1 || l.Refused[0].Index != 1 || l.Refused[0].Code != "duplicate" {
		t.Errorf("batch: %+v", l)
	}
	_, _ = s.post("/v1/ack", `{"receipt":"`+d.Receipt+`"}`)
	status, body = s.post("/v1/ack", `{"receipt":"`+d.Receipt+`"}`)
	if l := refused(t, status, body, 409, "gone"); l.Queue != "mail" || l.ID != "a" || l.Attempt != 1 {
		t.Errorf("gone: %+v", l)
	}
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"full":     {fmt.Errorf("no room: %w", queue.ErrFull), 507, "full"},
		"operator": {&holdfast.StaleLockError{}, 503, "stale_lock"},
		"disk":     {syscall.EIO, 500, "io"},
		"late":     {context.DeadlineExceeded, 503, "timed_out"},
		"closed":   {queue.ErrClosed, 503, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			s.store.refuse = c.err
			status, body := s.post("/v1/enqueue", `{"queue":"mail","payload":1}`)
			refused(t, status, body, c.status, c.code)
		})
	}
}

// An uncertain commit is asked after. What happened is told as done, what did not as
// failed, and what nobody knows as uncertain, with what would be there.
func TestUncertain(t *testing.T) {
	s := newScene(t)
	open := &queue.UncertainError{Revision: 7, Enqueued: []queue.Enqueued{{Queue: "mail", ID: "a", Generation: "g", Revision: 7}}, Err: syscall.EIO}
	s.store.refuse = open
	const body = `{"queue":"mail","id":"a","payload":1}`

	s.store.resolve = func(*queue.UncertainError) (bool, error) { return true, nil }
	if got := must[forms.Enqueued](t, 200, second(s.post("/v1/enqueue", body))); got.Generation != "g" {
		t.Errorf("it happened: %+v", got)
	}
	s.store.resolve = func(*queue.UncertainError) (bool, error) { return false, nil }
	status, text := s.post("/v1/enqueue", body)
	if l := refused(t, status, text, 500, "io"); l.Uncertain || !strings.Contains(l.Error, "nothing happened") {
		t.Errorf("it did not: %+v", l)
	}
	s.store.resolve = func(*queue.UncertainError) (bool, error) { return false, holdfast.ErrUnresolved }
	status, text = s.post("/v1/enqueue", body)
	if l := refused(t, status, text, 503, "uncertain"); !l.Uncertain || l.Revision != 7 || len(l.Enqueued) != 1 || l.Enqueued[0].Generation != "g" {
		t.Errorf("nobody knows: %+v", l)
	}
	open.Enqueued, open.Deliveries = nil, []queue.Delivery{{Receipt: queue.Receipt{Store: "s", Queue: "mail", ID: "a", Generation: "g", Attempt: 1}}}
	status, text = s.post("/v1/claim", `{"queue":"mail","lease_ms":1}`)
	if refused(t, status, text, 503, "uncertain"); strings.Contains(text, "s:mail:a:g:1") {
		t.Errorf("a receipt that may not be good is told: %s", text)
	}
	open.Refused = &queue.LostError{Queue: "mail", ID: "a", Err: queue.ErrGone}
	s.store.resolve = func(*queue.UncertainError) (bool, error) { return true, nil }
	status, text = s.post("/v1/enqueue", body)
	refused(t, status, text, 409, "gone")
}

// A claim returns the leases of its queue that are over, and takes them.
func TestClaimReaps(t *testing.T) {
	s := newScene(t)
	now := time.Now().Truncate(time.Millisecond)
	s.store.Store = memory.New(&memory.Options{Now: func() time.Time { return now }})
	_, _ = s.post("/v1/enqueue", `{"queue":"mail","id":"a","payload":1}`)
	first := must[claimedLine](t, 200, second(s.post("/v1/claim", `{"queue":"mail","lease_ms":1000}`)))
	if again := must[claimedLine](t, 200, second(s.post("/v1/claim", `{"queue":"mail","lease_ms":1000}`))); len(again.Deliveries) != 0 {
		t.Fatalf("claimed twice: %+v", again)
	}
	now = now.Add(time.Second)
	next := must[claimedLine](t, 200, second(s.post("/v1/claim", `{"queue":"mail","lease_ms":1000}`)))
	if len(next.Deliveries) != 1 || next.Deliveries[0].Attempt != 2 || next.Deliveries[0].Lapses != 1 {
		t.Fatalf("after the deadline: %+v", next)
	}
	status, text := s.post("/v1/ack", `{"receipt":"`+first.Deliveries[0].Receipt+`"}`)
	if l := refused(t, status, text, 409, "stale"); l.Current != 2 {
		t.Errorf("the late one: %+v", l)
	}
}

// A claim that waits sees that a lease ends meanwhile, also one that nobody tells of: its
// clock is the bubble's.
func TestClaimReapsWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t)
		_, _ = s.post("/v1/enqueue", `{"queue":"mail","id":"a","payload":1}`)
		_, _ = s.post("/v1/claim", `{"queue":"mail","lease_ms":7000}`)
		began := time.Now()
		got := must[claimedLine](t, 200, second(s.post("/v1/claim", `{"queue":"mail","lease_ms":1000,"wait_ms":25000}`)))
		if len(got.Deliveries) != 1 || got.Deliveries[0].Attempt != 2 || got.Deliveries[0].Lapses != 1 {
			t.Fatalf("got %+v", got)
		}
		if took := time.Since(began); took != 2*reapEvery {
			t.Errorf("it came after %v, want %v", took, 2*reapEvery)
		}
	})
}

// A claim that waits is answered when a message comes, and when its time is over.
func TestClaimWaits(t *testing.T) {
	s := newScene(t)
	waits := make(chan struct{}, 1)
	s.store.waits = func(ctx context.Context, q ...string) error {
		waits <- struct{}{}
		return s.store.Store.WaitDue(ctx, q...)
	}
	answer := make(chan string, 1)
	go func() { answer <- second(s.post("/v1/claim", `{"queue":"mail","lease_ms":1000,"wait_ms":25000}`)) }()
	<-waits
	_, _ = s.post("/v1/enqueue", `{"queue":"mail","id":"a","payload":"x"}`)
	if got := must[claimedLine](t, 200, <-answer); len(got.Deliveries) != 1 {
		t.Errorf("got %+v", got)
	}
	got := second(s.post("/v1/claim", `{"queue":"mail","lease_ms":1000,"wait_ms":1}`))
	<-waits
	if got := bytes.TrimSpace([]byte(got)); string(got) != `{"deliveries":[]}` {
		t.Errorf("nothing came: %s", got)
	}
}

func TestListsGoOnFromPageToPage(t *testing.T) {
	s := newScene(t)
	for i := range 5 {
		_, _ = s.post("/v1/enqueue", fmt.Sprintf(`{"queue":"mail","id":"m%d","payload":%d}`, i, i))
	}
	var seen []string
	after := ""
	for {
		p := must[pageLine](t, 200, second(s.get("/v1/messages?queue=mail&limit=2&after="+after)))
		for _, e := range p.Entries {
			seen = append(seen, e.ID)
		}
		if after = p.Next; after == "" {
			break
		}
	}
	if got := strings.Join(seen, " "); got != "m0 m1 m2 m3 m4" {
		t.Errorf("got %s", got)
	}
}

// What a client has claimed that goes before it is answered goes back at once.
func TestAClientThatGoesInItsClaim(t *testing.T) {
	for _, path := range []string{"/v1/claim", "/v1/load"} {
		s := newScene(t)
		status, body := s.post("/v1/enqueue", `{"queue":"mail","id":"a","payload":1}`)
		must[forms.Enqueued](t, status, body)
		ctx, leave := context.WithCancel(t.Context())
		s.store.leave = leave
		body = `{"queue":"mail","lease_ms":86400000}`
		if path == "/v1/load" {
			body = `{"queue":"mail","id":"a","lease_ms":86400000}`
		}
		if status, body := s.send(request("POST", path, body).WithContext(ctx)); status == 200 {
			t.Errorf("%s: it was given %s", path, body)
		}
		status, body = s.get("/v1/message?queue=mail&id=a")
		if e := must[entriesLine](t, status, body).Entries[0]; e.State != "ready" || e.Attempts != e.Excused {
			t.Errorf("%s: %+v", path, e)
		}
	}
}
