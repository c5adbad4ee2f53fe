package queue

import "testing"

// Complete is false of whatever is not settled, of what is not empty, and of what more
// is to come into.
func TestComplete(t *testing.T) {
	for _, c := range []struct {
		name    string
		settled bool
		queues  map[string]QueueStatus
		want    bool
	}{
		{"nothing", true, nil, true},
		{"not settled", false, nil, false},
		{"empty", true, map[string]QueueStatus{"a": {}, "b": {Failed: 1, Paused: true}}, true},
		{"pending", true, map[string]QueueStatus{"a": {}, "b": {Pending: 1, Blocked: 1}}, false},
		{"processing", true, map[string]QueueStatus{"a": {Processing: 1}, "b": {}}, false},
		{"importing", true, map[string]QueueStatus{"a": {}, "b": {Importing: true}}, false},
	} {
		s := Status{Settled: c.settled, Queues: c.queues}
		if got := s.Complete(); got != c.want {
			t.Errorf("%s: complete %v, want %v", c.name, got, c.want)
		}
	}
}
