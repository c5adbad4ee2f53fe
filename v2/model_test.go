//go:build unix

package holdfast

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"example.com/holdfast/queue"
	"pgregory.net/rapid"
)

// The core and the ledger take the same random calls, several to a commit; some
// commits fail and are dropped, some updates are refused in the middle. Every answer
// and, after every call, everything that can be seen must be the same.

// modelSpaces are the queues and their failed namespaces. Two share one.
var modelSpaces = map[string]string{"mail": "", "mail/urgent": "", "notes": "aside"}

var (
	modelQueues = slices.Sorted(maps.Keys(modelSpaces))
	modelIDs    = []string{"a", "b", "B"}
	modelNames  = []string{"a", "b", "B", "x", "y"}

	modelNamespaces = []string{"", "aside", "other"}
)

// A modelRun is one run of calls.
type modelRun struct {
	*rig
	t     *rapid.T
	want  *ledger // beside the open draft, or the committed state
	saved *ledger // beside the committed state

	receipts []queue.Receipt // of all claims that were answered
	answered int             // how many of them by commits
	gens     []string        // every generation that was ever given
	fence    uint64          // the highest that was given
	attempts map[string]uint64
	made     int // payloads
	holders  map[token]modelHolder
	names    []string // the queues of this run
	keys     []string // of its messages
}

func newModelRun(t *rapid.T, calls coreCalls) *modelRun {
	m := &modelRun{rig: newRig(t), t: t, want: newLedger(modelSpaces), attempts: map[string]uint64{}, holders: map[token]modelHolder{}}
	m.calls, m.dead = calls, m.asked
	// Few at a time, so that much happens to the same messages.
	m.names = rapid.SampledFrom([][]string{{"mail"}, {"notes"}, {"mail", "mail/urgent"}, modelQueues}).Draw(t, "queues")
	m.keys = rapid.SampledFrom([][]string{{"", `chat "42"`, "chat 7"}, {`chat "42"`}, {"", `chat "42"`}, {""}}).Draw(t, "keys")
	m.choose, m.chooseFailed = m.sealSome, m.sealSomeFailed
	for range 3 {
		m.fate()
	}
	_ = m.apply("namespaces", func(d *draft) error {
		for name, space := range modelSpaces {
			d.queue(name).failedNS = space
		}
		return nil
	})
	m.commit()
	return m
}

// at is the time that the next call is decided at.
func (m *modelRun) at() instant {
	if m.d != nil {
		return m.d.now
	}
	return m.now
}

// modelCalls are the calls that may come together in an update.
var modelCalls = []func(m *modelRun){
	(*modelRun).enqueueOne, (*modelRun).enqueueBatch, (*modelRun).claimSome, (*modelRun).loadOne, (*modelRun).ackOne,
	(*modelRun).releaseOne, (*modelRun).retryOne, (*modelRun).extendOne, (*modelRun).failOne, (*modelRun).replaceOne,
	(*modelRun).purgeOne, (*modelRun).reprocessOne, (*modelRun).reapSome, (*modelRun).reapOne, (*modelRun).pauseOne,
	(*modelRun).namespaceOne, (*modelRun).cursorOne, (*modelRun).updateSome,
}

// refusedUpdate makes some calls and is refused after them: as if it had not been.
func (m *modelRun) refusedUpdate() {
	d := m.open()
	before, want := traceOf(d), m.want.clone()
	receipts, gens, fence := len(m.receipts), len(m.gens), m.fence
	no := errors.New("refused")
	m.is(d.atomically(func() error {
		for range rapid.IntRange(1, 4).Draw(m.t, "calls") {
			modelCalls[rapid.IntRange(0, len(modelCalls)-1).Draw(m.t, "call")](m)
		}
		return no
	}), no)
	if after := traceOf(d); !reflect.DeepEqual(after, before) {
		m.Fatalf("a refused update left a trace\n got %+v\nwant %+v", after, before)
	}
	m.want, m.receipts, m.gens, m.fence = want, m.receipts[:receipts], m.gens[:gens], fence
}

// passTime moves the clocks: alike, or the wall's alone, or through a reboot.
func (m *modelRun) passTime() {
	by := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, time.Minute, time.Hour}).Draw(m.t, "by")
	switch rapid.IntRange(0, 7).Draw(m.t, "clocks") {
	case 0:
		m.now.Wall = m.now.Wall.Add(by)
	case 1:
		m.now.Wall = m.now.Wall.Add(-by)
	case 2:
		m.now.BootID, m.now.Boot = rapid.SampledFrom([]string{"boot 1", "boot 2", "", rigStart.BootID}).Draw(m.t, "boot"), by
	default:
		m.past(by)
	}
}

// harm does something to a payload on the disk, or makes all readable again. It acts
// on what is committed.
func (m *modelRun) harm() {
	m.commit()
	how := rapid.SampledFrom([]ledgerFault{faultNone, faultDamaged, faultUnreadable}).Draw(m.t, "fault")
	var healthy []*ref
	byGen := m.want.byGeneration()
	for _, w := range byGen {
		if how == faultNone && w.fault == faultUnreadable {
			w.fault = faultNone
		}
	}
	if how == faultNone {
		clear(m.broken)
	} else {
		m.base.refs(func(_, _ string, r *ref) bool {
			if w := byGen[r.gen.String()]; w != nil && w.fault == faultNone {
				healthy = append(healthy, r)
			}
			return true
		})
		if len(healthy) == 0 {
			return
		}
		r := healthy[rapid.IntRange(0, len(healthy)-1).Draw(m.t, "payload")]
		if byGen[r.gen.String()].fault = how; how == faultDamaged {
			m.damage(r)
		} else {
			m.broken[spot{r.object, r.off}] = errUnreadable
		}
	}
	m.saved = m.want.clone()
}

// commit publishes the draft and checks what only grows.
func (m *modelRun) commit() {
	m.decoded = rapid.Bool().Draw(m.t, "go on with what was read back")
	m.rig.commit()
	m.saved = m.want.clone()
	m.answered = len(m.receipts)
	m.base.refs(func(_, _ string, r *ref) bool {
		gen := r.gen.String()
		if r.attempts < m.attempts[gen] {
			m.Fatalf("the attempts of %s went back from %d to %d", gen, m.attempts[gen], r.attempts)
		}
		m.attempts[gen] = r.attempts
		return true
	})
}

// drop loses the draft, as a commit that failed. Nobody got its answers.
func (m *modelRun) drop() {
	m.rig.drop()
	m.want = m.saved.clone()
	m.receipts = m.receipts[:m.answered]
	m.fence = m.want.fence
}

// modelSometimes are the actions that a run may be without.
var modelSometimes = []string{
	"enqueue batch", "release", "retry", "extend", "fail", "replace payload", "update", "refused update", "reap", "reap one",
	"purge", "clear", "pause", "namespace", "cursor", "harm", "holder", "drop", "load", "ack", "claim again", "enqueue again", "time",
	"close import", "abandon import",
}

// modelImporting are the actions that most runs are without: a queue with an open import
// does little else.
var modelImporting = []string{"open import", "import", "close import", "abandon import"}

// modelProperty is what holds of a core.
func modelProperty(calls coreCalls) func(t *rapid.T) {
	return func(t *rapid.T) {
		m := newModelRun(t, calls)
		act := func(f func()) func(*rapid.T) { return func(*rapid.T) { f() } }
		actions := map[string]func(*rapid.T){
			"enqueue": act(m.enqueueOne), "enqueue again": act(m.enqueueOne), "enqueue batch": act(m.enqueueBatch),
			"claim": act(m.claimSome), "claim again": act(m.claimSome), "load": act(m.loadOne),
			"ack": act(m.ackOne), "release": act(m.releaseOne), "retry": act(m.retryOne), "extend": act(m.extendOne),
			"fail": act(m.failOne), "replace payload": act(m.replaceOne), "update": act(m.updateSome), "refused update": act(m.refusedUpdate),
			"reap": act(m.reapSome), "reap one": act(m.reapOne), "reprocess": act(m.reprocessOne), "purge": act(m.purgeOne),
			"clear": act(m.clearOne), "pause": act(m.pauseOne), "namespace": act(m.namespaceOne), "cursor": act(m.cursorOne),
			"open import": act(m.openOne), "import": act(m.importSome), "close import": act(m.closeOne), "abandon import": act(m.abandonOne),
			"time": act(m.passTime), "harm": act(m.harm), "holder": act(m.fate),
			"commit": act(m.commit), "drop": act(m.drop),
			"": act(m.see),
		}
		for _, name := range modelSometimes { // without some, the others meet more often
			if rapid.Bool().Draw(t, "without "+name) {
				delete(actions, name)
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "without imports") > 0 {
			for _, name := range modelImporting {
				delete(actions, name)
			}
		}
		for range 3 { // runs longer than rapid's
			t.Repeat(actions)
		}
		m.commit()
		m.see()
	}
}

// A failure prints the seed that repeats it, after rapid has made it small.
func TestModel(t *testing.T) {
	alone(t)
	t.Parallel()
	rapid.Check(t, modelProperty(soundCalls()))
}
