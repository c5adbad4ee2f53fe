//go:build unix

package web

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// scrape gives what /metrics says.
func (s *webScene) scrape() string {
	s.t.Helper()
	status, body := s.get("/metrics")
	if status != 200 {
		s.t.Fatalf("%d: %s", status, body)
	}
	return body
}

// metricNames are those of a store with one queue.
func metricNames(t *testing.T) (names []string) {
	s := newScene(t)
	_, _ = s.post("/v1/enqueue", `{"queue":"mail","payload":1}`)
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(s.scrape(), -1) {
		names = append(names, m[1])
	}
	return names
}

func TestMetrics(t *testing.T) {
	s := newScene(t)
	s.store.stats = holdfast.Stats{Calls: 21, Commits: 4, Syncs: 9, BytesWritten: 1 << 40, LastRevision: 3}
	_, _ = s.post("/v1/enqueue-batch", `{"queue":"chat/in","messages":[{"payload":1},{"payload":2},{"payload":3,"delay_ms":3600000}]}`)
	_, _ = s.post("/v1/claim", `{"queue":"chat/in","lease_ms":60000}`)
	_, _ = s.post("/v1/pause", `{"queue":"other"}`)
	text := s.scrape()
	for _, want := range []string{
		"holdfast_up 1", "holdfast_settled 1", "holdfast_queues 2", "holdfast_queues_hidden 0",
		`holdfast_queue_ready_messages{queue="chat/in"} 1`, `holdfast_queue_scheduled_messages{queue="chat/in"} 1`,
		`holdfast_queue_processing_messages{queue="chat/in"} 1`, `holdfast_queue_enqueued_total{queue="chat/in"} 3`,
		`holdfast_queue_claimed_total{queue="chat/in"} 1`, `holdfast_queue_paused{queue="chat/in"} 0`, `holdfast_queue_paused{queue="other"} 1`,
		"holdfast_handle_calls_total 21", "holdfast_handle_commits_total 4", "holdfast_handle_syncs_total 9",
		"holdfast_handle_written_bytes_total 1.099511627776e+12", "holdfast_handle_last_revision 3",
	} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if problems, err := promlint.New(strings.NewReader(text)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("the linter of Prometheus: %v %v", problems, err)
	}
	// The only label is the queue.
	for _, m := range regexp.MustCompile(`\{([^}]*)\}`).FindAllStringSubmatch(text, -1) {
		if !regexp.MustCompile(`^queue="[^",]*"$`).MatchString(m[1]) {
			t.Errorf("a label other than the queue: %s", m[1])
		}
	}
}

// The queues past the bound are counted, and the same ones are shown each time.
func TestMetricsAreBounded(t *testing.T) {
	s := newScene(t)
	st := queue.Status{Settled: true, Queues: map[string]queue.QueueStatus{}}
	for i := range maxQueues + 7 {
		st.Queues[fmt.Sprintf("q%04d", i)] = queue.QueueStatus{Ready: 1}
	}
	s.store.status = func(queue.StatusOptions) (queue.Status, error) { return st, nil }
	text := s.scrape()
	if n := strings.Count(text, "\nholdfast_queue_ready_messages{"); n != maxQueues || !strings.Contains(text, "\nholdfast_queues_hidden 7\n") {
		t.Errorf("%d queues are shown, want %d and 7 hidden", n, maxQueues)
	}
	if again := s.scrape(); again != text {
		t.Error("another scrape of the same status says otherwise")
	}
}

// A store that cannot be read is told as such: the scrape itself goes well, and no number is
// made up.
func TestMetricsWhenTheStoreCannotBeRead(t *testing.T) {
	s := newScene(t)
	s.store.status = func(queue.StatusOptions) (queue.Status, error) { return queue.Status{}, errors.New("no disk") }
	text := s.scrape()
	if !strings.Contains(text, "\nholdfast_up 0\n") || !strings.Contains(text, "\nholdfast_settled 0\n") ||
		strings.Contains(text, "holdfast_queue") || strings.Contains(text, "holdfast_revision") {
		t.Errorf("got\n%s", text)
	}
	if names := metricNames(t); !slices.Contains(names, "holdfast_queue_ready_messages") {
		t.Errorf("names: %v", names)
	}
}
