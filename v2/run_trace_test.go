//go:build unix

package holdfast

import (
	"errors"
	"testing"

	"example.com/holdfast/queue"
)

// A member that contradicts what stands inline does not come back, and the refused call
// leaves no trace: others of its commit go on.
func TestRunContradictionLeavesNoTrace(t *testing.T) {
	for what, call := range map[string]func(d *draft) error{
		"replace": func(d *draft) error {
			_, err := d.enqueue("mail", arrival{id: "b", payload: []byte("1"), ifExists: queue.Replace}, roomy)
			return err
		},
		"load": func(d *draft) error {
			_, err := d.load("mail", "b", taking{max: 1}, func(*ref) ([]byte, string, error) { return []byte("1"), "", nil }, nil)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t)
			r.choose = func(d *draft, q *queueState) [][]*slot {
				due, _ := q.cold(d.millis)
				return [][]*slot{due[1:]}
			}
			r.put("a")
			r.put("b")
			r.commit()
			q := r.base.queue("mail")
			a, _ := q.find("a")
			b := *a.pending
			b.seq = q.runs[0].first
			x, text := encodeRun([]*slot{{id: "b", pending: &b}})
			x.name = r.token()
			r.objects[x.name] = text
			q.setRun(q.runs[0].name, x)

			d := newDraft(r.base, r.token(), r.now, r.size)
			before := traceOf(d)
			err := call(d)
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("%v, want ErrCorrupt", err)
			}
			if after := traceOf(d); after.picture != before.picture || after.dirty || after.bytes != before.bytes {
				t.Errorf("left a trace\n got %+v\nwant %+v", after, before)
			}
		})
	}
}
