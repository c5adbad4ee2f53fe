package memory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/holdfast/queue"
)

// A memRun makes random calls and keeps, beside the store, what its callers may rely
// on: which receipts are good, which generations are out, that fences and attempts only
// grow. After every call the state is audited, and a refused one must leave no trace.
type memRun struct {
	*scene
	t *rapid.T
	memLedger
	all []queue.Receipt // that were ever given
}

type memLedger struct {
	good     map[queue.Receipt]bool      // the receipts that may settle
	out      map[queue.Receipt]time.Time // the leases, with their deadlines
	attempts map[string]uint64           // by generation
	fence    uint64
}

func (l memLedger) clone() memLedger {
	l.good, l.out, l.attempts = maps.Clone(l.good), maps.Clone(l.out), maps.Clone(l.attempts)
	return l
}

var memQueues = []string{"mail", "notes", "post"} // mail and post share their failed names

func newMemRun(t *rapid.T) *memRun {
	m := &memRun{scene: newScene(t), t: t}
	m.memLedger = memLedger{map[queue.Receipt]bool{}, map[queue.Receipt]time.Time{}, map[string]uint64{}, 0}
	m.must(m.SetFailedNamespace(bg, "notes", "aside"))
	return m
}

func pick[T any](m *memRun, what string, from ...T) T {
	return rapid.SampledFrom(from).Draw(m.t, what)
}

func (m *memRun) queue() string { return pick(m, "queue", memQueues...) }

func (m *memRun) message() queue.Message {
	out := queue.Message{
		ID: pick(m, "ID", "a", "b", "c", "d"), Key: pick(m, "key", "", "", "k", "l"), Payload: []byte(`1`),
		IfExists: pick(m, "if exists", queue.Refuse, queue.Keep, queue.Replace),
	}
	if pick(m, "scheduled", false, false, true) {
		out.NotBefore = m.clock.Now().Add(pick(m, "in", time.Second, time.Minute))
	}
	return out
}

func (m *memRun) claimOptions() queue.ClaimOptions {
	return queue.ClaimOptions{
		Max: pick(m, "max", 1, 2, 5), Fair: pick(m, "fair", false, true),
		Lease: pick(m, "lease", time.Second, time.Minute, queue.NoDeadline), WithoutHolder: true,
	}
}

func (m *memRun) receipt() queue.Receipt {
	if len(m.all) == 0 {
		return queue.Receipt{Store: m.ID(), Queue: "mail", ID: "a", Generation: "none", Attempt: 1}
	}
	// The later ones are more often the good ones.
	i := len(m.all) - 1 - rapid.IntRange(0, min(len(m.all)-1, 11)).Draw(m.t, "receipt")
	return m.all[i]
}

func (m *memRun) delay() time.Duration { return pick(m, "delay", 0, time.Second, time.Minute) }

// change draws one change of an Update.
func (m *memRun) change() queue.Change {
	switch pick(m, "change", "enqueue", "claim", "ack", "ack", "release", "retry", "extend", "fail", "cursor") {
	case "enqueue":
		return queue.EnqueueChange{Queue: m.queue(), Message: m.message()}
	case "claim":
		return queue.ClaimChange{Queue: m.queue(), Options: m.claimOptions()}
	case "ack":
		return queue.AckChange{Receipt: m.receipt()}
	case "release":
		return queue.ReleaseChange{Receipt: m.receipt(), Options: queue.ReleaseOptions{Delay: m.delay()}}
	case "retry":
		return queue.RetryChange{Receipt: m.receipt(), Options: queue.RetryOptions{Delay: m.delay(), MaxFailures: pick[uint64](m, "most", 1, 2, 0)}}
	case "extend":
		return queue.ExtendChange{Receipt: m.receipt(), Lease: pick(m, "lease", time.Second, time.Minute, queue.NoDeadline)}
	case "fail":
		return queue.FailChange{Receipt: m.receipt(), Options: queue.FailOptions{As: pick(m, "as", "", "", "x")}}
	}
	return queue.CursorChange{Queue: m.queue(), Cursor: pick(m, "cursor", "", "1", "2")}
}

// update makes up to three changes in one call.
func (m *memRun) update() {
	changes := make([]queue.Change, rapid.IntRange(1, 3).Draw(m.t, "changes"))
	for i := range changes {
		changes[i] = m.change()
	}
	before := dumpState(&m.state)
	out, err := m.Update(bg, changes...)
	next := m.memLedger.clone()
	var refused *queue.UpdateError
	if err != nil && !errors.As(err, &refused) {
		m.t.Fatalf("update: %v", err)
	}
	var claimed []string // the queues that a refused update claimed from
	for i, c := range changes {
		if refused != nil && refused.Index == i {
			m.refusal(next, c, refused.Err, claimed)
			m.unchanged(before)
			return
		}
		if refused == nil {
			m.happened(next, c, out[i])
			if claim, ok := c.(queue.ClaimChange); ok {
				for _, d := range out[i].Claimed.Deliveries {
					m.delivered(&next, d, claim.Options.Lease, false)
				}
			}
			continue
		}
		// It would have happened: what the later ones meet has changed.
		m.happened(next, c, queue.Outcome{})
		if claim, ok := c.(queue.ClaimChange); ok {
			claimed = append(claimed, claim.Queue)
		}
	}
	m.memLedger = next
}

func (m *memRun) unchanged(before string) {
	if after := dumpState(&m.state); after != before {
		m.t.Fatalf("a refused call left a trace\n got %s\nwant %s", after, before)
	}
}

// refusal checks that a change had to be refused. The claims before it in its update are
// not in the ledger; they may have taken what was reaped.
func (m *memRun) refusal(l memLedger, c queue.Change, err error, claimed []string) {
	r, settles := receiptOf(c)
	if !settles {
		if !errors.Is(err, queue.ErrDuplicate) {
			m.t.Fatalf("%+v refused: %v", c, err)
		}
		return
	}
	_, extends := c.(queue.ExtendChange)
	_, leased := l.out[r]
	switch {
	case errors.Is(err, queue.ErrFailedExists):
	case !errors.Is(err, queue.ErrLost):
		m.t.Fatalf("%+v refused: %v", c, err)
	case l.good[r] && (leased || !extends && !slices.Contains(claimed, r.Queue)):
		m.t.Fatalf("%+v refused with a good receipt: %v", c, err)
	}
}

func receiptOf(c queue.Change) (queue.Receipt, bool) {
	switch c := c.(type) {
	case queue.AckChange:
		return c.Receipt, true
	case queue.ReleaseChange:
		return c.Receipt, true
	case queue.RetryChange:
		return c.Receipt, true
	case queue.ExtendChange:
		return c.Receipt, true
	case queue.FailChange:
		return c.Receipt, true
	}
	return queue.Receipt{}, false
}

// happened books a change that was made.
func (m *memRun) happened(l memLedger, c queue.Change, out queue.Outcome) {
	r, settles := receiptOf(c)
	if !settles {
		return
	}
	if !l.good[r] {
		m.t.Fatalf("%+v was made with a receipt that is not good", c)
	}
	if _, extends := c.(queue.ExtendChange); extends {
		l.out[r] = out.Deadline
		return
	}
	delete(l.good, r)
	delete(l.out, r)
}

// delivered books a claim or a load.
func (m *memRun) delivered(l *memLedger, d queue.Delivery, lease time.Duration, load bool) {
	r, now := d.Receipt, m.clock.Now()
	if d.Fence != l.fence+1 {
		m.t.Fatalf("fence %d after %d", d.Fence, l.fence)
	}
	l.fence = d.Fence
	if r.Attempt != l.attempts[r.Generation]+1 {
		m.t.Fatalf("attempt %d after %d", r.Attempt, l.attempts[r.Generation])
	}
	l.attempts[r.Generation] = r.Attempt
	if d.Deadline.IsZero() != (lease == queue.NoDeadline) || !d.Deadline.IsZero() && !d.Deadline.Equal(now.Add(lease)) {
		m.t.Fatalf("deadline %v of a lease of %v at %v", d.Deadline, lease, now)
	}
	for other, deadline := range l.out {
		if other.Queue != r.Queue || other.ID != r.ID {
			continue
		}
		// Only a Load, and only of the same generation, takes a lease over.
		if other.Generation != r.Generation || !load || !deadline.IsZero() && now.Before(deadline) {
			m.t.Fatalf("%v was delivered while %v is out until %v", r, other, deadline)
		}
		delete(l.out, other)
	}
	for other := range l.good {
		if other.Generation == r.Generation {
			delete(l.good, other)
		}
	}
	l.good[r], l.out[r] = true, d.Deadline
	m.all = append(m.all, r)
}

// claim claims what Peek shows, and that is what a naive reading of the list allows.
func (m *memRun) claim() {
	name, o := m.queue(), m.claimOptions()
	page, err := m.List(bg, name, queue.ListOptions{})
	m.must(err)
	want := naiveReady(page.Entries, m.clock.Now())
	peeked, err := m.Peek(bg, name, queue.MaxClaim)
	m.must(err)
	if m.status(name).Paused {
		want = nil
	}
	if got := generationsOf(peeked); !slices.Equal(got, want) {
		m.t.Fatalf("peek shows %v, want %v", got, want)
	}
	c, err := m.Claim(bg, name, o)
	m.must(err)
	var got []string
	for _, d := range c.Deliveries {
		got = append(got, d.Receipt.Generation)
		m.delivered(&m.memLedger, d, o.Lease, false)
	}
	if len(got) != min(o.Max, len(want)) || !o.Fair && !slices.Equal(got, want[:len(got)]) {
		m.t.Fatalf("claimed %v, want %d of %v", got, o.Max, want)
	}
	for _, generation := range got {
		if !slices.Contains(want, generation) {
			m.t.Fatalf("claimed %v, want some of %v", got, want)
		}
	}
}

func generationsOf(entries []queue.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Generation)
	}
	return out
}

// naiveReady reads from a listing which messages may be claimed, each by itself.
func naiveReady(entries []queue.Entry, now time.Time) []string {
	behind := func(e queue.Entry) bool { // an older generation of its ID
		return slices.ContainsFunc(entries, func(o queue.Entry) bool { return o.ID == e.ID && o.Seq < e.Seq })
	}
	var out []string
	for _, e := range entries {
		inTheWay := func(o queue.Entry) bool {
			if e.Key == "" || o.Key != e.Key {
				return false
			}
			return o.State == queue.Processing || o.Seq < e.Seq && !behind(o) && (o.Returned != "" || !o.NotBefore.After(now))
		}
		if e.State != queue.Processing && !behind(e) && !e.NotBefore.After(now) && !slices.ContainsFunc(entries, inTheWay) {
			out = append(out, e.Generation)
		}
	}
	return out
}

func (m *memRun) load() {
	name, id := m.queue(), pick(m, "ID", "a", "b", "c", "d")
	lease := pick(m, "lease", time.Second, time.Minute, queue.NoDeadline)
	before := dumpState(&m.state)
	d, err := m.Load(bg, name, id, queue.LoadOptions{Lease: lease, WithoutHolder: true})
	switch {
	case err == nil:
		m.delivered(&m.memLedger, d, lease, true)
	case errors.Is(err, queue.ErrNotFound), errors.Is(err, queue.ErrLeased):
		m.unchanged(before)
	default:
		m.t.Fatal(err)
	}
}

func (m *memRun) reap() {
	o := queue.ReapOptions{MaxLapses: pick[uint64](m, "most", 1, 2, 0)}
	if pick(m, "named", false, true) {
		r := m.receipt()
		o.Receipt = &r
	}
	before := dumpState(&m.state)
	out, err := m.Reap(bg, o)
	if err != nil {
		if _, leased := m.out[*o.Receipt]; leased || !errors.Is(err, queue.ErrLost) {
			m.t.Fatalf("a lease was not reaped: %v", err)
		}
		m.unchanged(before)
		return
	}
	now := m.clock.Now()
	reaped := 0
	for r, deadline := range m.out {
		if o.Receipt != nil && *o.Receipt != r || o.Receipt == nil && (deadline.IsZero() || now.Before(deadline)) {
			continue
		}
		reaped++
		delete(m.out, r)
		i := slices.IndexFunc(out, func(x queue.Returned) bool { return x.Queue == r.Queue && x.ID == r.ID && x.Attempt == r.Attempt })
		if i < 0 {
			m.t.Fatalf("%v, until %v, was not reaped: %+v", r, deadline, out)
		}
		if out[i].FailedName != "" {
			delete(m.good, r)
		}
	}
	if reaped != len(out) {
		m.t.Fatalf("%d leases were over, reaped %+v", reaped, out)
	}
}

func (m *memRun) failed() {
	space := pick(m, "namespace", "", "aside")
	page, err := m.ListFailed(bg, queue.FailedOptions{Namespace: space}, queue.ListOptions{})
	m.must(err)
	if len(page.Entries) == 0 {
		m.wants(m.Purge(bg, "a", queue.PurgeOptions{Namespace: space}), queue.ErrNotFailed)
		return
	}
	name := pick(m, "failed", page.Entries...).FailedName
	if pick(m, "purge", false, false, true) {
		m.must(m.Purge(bg, name, queue.PurgeOptions{Namespace: space}))
		return
	}
	before := dumpState(&m.state)
	if err := m.Reprocess(bg, name, queue.ReprocessOptions{Namespace: space}); err != nil {
		m.wants(err, queue.ErrInFlight)
		m.unchanged(before)
	}
}

func (m *memRun) clear() {
	name, leased := m.queue(), pick(m, "leased", false, true)
	live := m.status(name).Unacked()
	n, err := m.Clear(bg, name, queue.ClearOptions{Leased: leased})
	m.must(err)
	for r := range m.good {
		if _, out := m.out[r]; r.Queue == name && (leased || !out) {
			delete(m.good, r)
			delete(m.out, r)
		}
	}
	if left := m.status(name).Unacked(); left+n != live || leased && left != 0 {
		m.t.Fatalf("cleared %d of %d, %d are left", n, live, left)
	}
}

// see audits the state and holds what can be seen against the ledger.
func (m *memRun) see() {
	if faults := auditState(&m.state); faults != nil {
		m.t.Fatalf("audit: %q", faults)
	}
	out := 0
	for _, name := range memQueues {
		page, err := m.List(bg, name, queue.ListOptions{})
		m.must(err)
		n := map[queue.State]uint64{}
		for _, e := range page.Entries {
			n[e.State]++
			if e.State != queue.Processing {
				continue
			}
			out++
			if deadline, leased := m.out[e.Receipt]; !leased || !deadline.Equal(e.Deadline) {
				m.t.Fatalf("%+v is processing, and out until %v", e, deadline)
			}
		}
		g := m.status(name)
		want := queue.QueueStatus{
			Pending: n[queue.Ready] + n[queue.Scheduled] + n[queue.Blocked], Processing: n[queue.Processing],
			Ready: n[queue.Ready], Scheduled: n[queue.Scheduled], Blocked: n[queue.Blocked],
		}
		got := queue.QueueStatus{Pending: g.Pending, Processing: g.Processing, Ready: g.Ready, Scheduled: g.Scheduled, Blocked: g.Blocked}
		if got != want {
			m.t.Fatalf("%s: gauges %+v, listed %+v", name, got, want)
		}
	}
	if out != len(m.out) {
		m.t.Fatalf("%d messages are processing, %d leases are out", out, len(m.out))
	}
}

// What callers may rely on holds under random calls. A failure prints how to repeat it.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := newMemRun(rt)
		act := func(f func()) func(*rapid.T) { return func(*rapid.T) { f() } }
		rt.Repeat(map[string]func(*rapid.T){
			"update": act(m.update), "update again": act(m.update), "claim": act(m.claim), "claim again": act(m.claim),
			"load": act(m.load), "reap": act(m.reap), "failed": act(m.failed), "clear": act(m.clear),
			"enqueue": act(func() {
				before := dumpState(&m.state)
				if _, err := m.Enqueue(bg, m.queue(), m.message()); err != nil {
					m.wants(err, queue.ErrDuplicate)
					m.unchanged(before)
				}
			}),
			"batch": act(func() {
				before := dumpState(&m.state)
				if _, err := m.EnqueueBatch(bg, m.queue(), []queue.Message{m.message(), m.message(), m.message()}); err != nil {
					m.wants(err, queue.ErrDuplicate)
					m.unchanged(before)
				}
			}),
			"pause":  act(func() { m.must(m.Pause(bg, m.queue())) }),
			"resume": act(func() { m.must(m.Resume(bg, m.queue())) }),
			"time":   act(func() { m.pass(pick(m, "by", time.Second, time.Minute, time.Hour)) }),
			"":       act(m.see),
		})
	})
}

// Many callers at once: every message is settled once, fences never repeat, and in
// every snapshot the gauges add up.
func TestTogether(t *testing.T) {
	s := newScene(t)
	const producers, each, workers = 4, 200, 4
	errs := make(chan error)
	for p := range producers {
		go func() {
			for n := range each {
				if _, err := s.Enqueue(bg, "mail", queue.Message{ID: fmt.Sprintf("%d-%d", p, n), Key: fmt.Sprint(n % 7), Payload: []byte(`1`)}); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	fences := make(chan uint64, producers*each)
	for range workers {
		go func() {
			for {
				err := s.WaitDue(bg, "mail")
				var c queue.Claimed
				if err == nil {
					c, err = s.Claim(bg, "mail", queue.ClaimOptions{Max: 3, Fair: true})
				}
				for _, d := range c.Deliveries {
					if err == nil {
						err = s.Ack(bg, d.Receipt)
					}
					fences <- d.Fence
				}
				if errors.Is(err, queue.ErrClosed) { // all is done
					errs <- nil
					return
				}
				if err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	go func() { // a poller
		for {
			st, err := s.Status(bg, queue.StatusOptions{})
			if err != nil {
				errs <- nil
				return
			}
			q := st.Queues["mail"]
			if q.Pending != q.Ready+q.Scheduled+q.Blocked || q.Counters.Enqueued-q.Counters.Completed != q.Unacked() {
				errs <- fmt.Errorf("a snapshot: %+v", q)
				return
			}
		}
	}()
	for range producers {
		s.must(<-errs)
	}
	if _, err := s.Wait(bg, queue.WaitOptions{}); err != nil {
		t.Error(err)
	}
	if st := s.status("mail"); st.Counters.Completed != producers*each {
		t.Errorf("got %+v", st)
	}
	s.must(s.Close())
	for range workers + 1 {
		s.must(<-errs)
	}
	seen := map[uint64]bool{}
	for len(fences) > 0 {
		if f := <-fences; seen[f] || f > producers*each {
			t.Errorf("fence %d twice, or too great", f)
		} else {
			seen[f] = true
		}
	}
}
