//go:build unix

package holdfast

import "pgregory.net/rapid"

// sealSome chooses what a commit of the model seals: of what may leave the state any
// stretch, so that runs come with few messages.
func (m *modelRun) sealSome(d *draft, q *queueState) [][]*slot {
	due, scheduled := q.cold(d.millis)
	due, _ = q.behindRuns(due)
	var chosen [][]*slot
	for _, cold := range [][]*slot{due, scheduled} {
		begin := rapid.IntRange(0, len(cold)).Draw(m.t, "seals from")
		end := rapid.IntRange(begin, len(cold)).Draw(m.t, "to")
		chosen = append(chosen, cold[begin:end])
	}
	return chosen
}

// sealSomeFailed is sealSome of failed messages: any of them, whenever it failed.
func (m *modelRun) sealSomeFailed(f *failedSpace) []*failedEntry {
	var chosen []*failedEntry
	for _, e := range f.cold() {
		if rapid.Bool().Draw(m.t, "seals "+e.name) {
			chosen = append(chosen, e)
		}
	}
	return chosen
}
