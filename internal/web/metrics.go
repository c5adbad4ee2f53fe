//go:build unix

package web

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	holdfast "example.com/holdfast/v2"

	"example.com/holdfast/queue"
)

// maxQueues bounds the label: queues past it, in the order of their names, have no
// metrics of their own and are counted.
const maxQueues = 500

// A metric is one number of a thing, as /metrics tells it.
type metric[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(T) uint64
}

// family makes metrics whose names begin alike. One that ends in _total only grows.
func family[T any](prefix string, labels ...string) func(name, help string, value func(T) uint64) metric[T] {
	return func(name, help string, value func(T) uint64) metric[T] {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(name, "_total") {
			kind = prometheus.CounterValue
		}
		return metric[T]{prometheus.NewDesc(prefix+name, help, labels, nil), kind, value}
	}
}

func (m metric[T]) of(x T, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.value(x)), labels...)
}

var (
	ofStore  = family[look]("holdfast_")
	ofQueue  = family[queue.QueueStatus]("holdfast_queue_", "queue")
	ofHandle = family[holdfast.Stats]("holdfast_handle_")
)

// A look is what a scrape found.
type look struct {
	status queue.Status
	err    error
	hidden int // queues past the bound
}

// lookMetrics begins with those two that a look has which failed.
var lookMetrics = []metric[look]{
	ofStore("up", "1 if the store's status could be read for this scrape, else 0.", func(l look) uint64 { return flag(l.err == nil) }),
	ofStore("settled", "1 if the status is committed and no dead owner's work is open, else 0.", func(l look) uint64 { return flag(l.err == nil && l.status.Settled) }),
	ofStore("revision", "The store's revision: one more with each commit of any process.", func(l look) uint64 { return l.status.Revision }),
	ofStore("queues", "Queues of the store.", func(l look) uint64 { return uint64(len(l.status.Queues)) }),
	ofStore("queues_hidden", "Queues without metrics of their own, past the bound of 500.", func(l look) uint64 { return uint64(l.hidden) }),
}

var queueMetrics = []metric[queue.QueueStatus]{
	ofQueue("ready_messages", "Messages that are pending and due.", func(q queue.QueueStatus) uint64 { return q.Ready }),
	ofQueue("scheduled_messages", "Messages that are pending until a later time.", func(q queue.QueueStatus) uint64 { return q.Scheduled }),
	ofQueue("blocked_messages", "Messages that are pending behind an older one.", func(q queue.QueueStatus) uint64 { return q.Blocked }),
	ofQueue("processing_messages", "Messages that are leased.", func(q queue.QueueStatus) uint64 { return q.Processing }),
	ofQueue("overdue_messages", "Messages that are leased past their deadline.", func(q queue.QueueStatus) uint64 { return q.Overdue }),
	ofQueue("failed_messages", "Messages that were set aside.", func(q queue.QueueStatus) uint64 { return q.Failed }),
	ofQueue("paused", "1 if claims of the queue find nothing, else 0.", func(q queue.QueueStatus) uint64 { return flag(q.Paused) }),

	ofQueue("enqueued_total", "Messages that were accepted.", func(q queue.QueueStatus) uint64 { return q.Counters.Enqueued }),
	ofQueue("superseded_total", "Pending messages that a newer one of their ID replaced.", func(q queue.QueueStatus) uint64 { return q.Counters.Superseded }),
	ofQueue("claimed_total", "Claims, loads among them.", func(q queue.QueueStatus) uint64 { return q.Counters.Claimed }),
	ofQueue("completed_total", "Acks.", func(q queue.QueueStatus) uint64 { return q.Counters.Completed }),
	ofQueue("retried_total", "Retries that returned the message.", func(q queue.QueueStatus) uint64 { return q.Counters.Retried }),
	ofQueue("released_total", "Releases.", func(q queue.QueueStatus) uint64 { return q.Counters.Released }),
	ofQueue("reaped_total", "Leases that ended without settlement.", func(q queue.QueueStatus) uint64 { return q.Counters.Reaped }),
	ofQueue("failed_total", "Messages that went to the failed ones, for whatever reason.", func(q queue.QueueStatus) uint64 { return q.Counters.Failed }),
	ofQueue("reprocessed_total", "Failed messages that were returned to the queue.", func(q queue.QueueStatus) uint64 { return q.Counters.Reprocessed }),
	ofQueue("cleared_total", "Messages that a clearing removed.", func(q queue.QueueStatus) uint64 { return q.Counters.Cleared }),
	ofQueue("purged_total", "Failed messages that were removed.", func(q queue.QueueStatus) uint64 { return q.Counters.Purged }),
	ofQueue("damaged_total", "Failed messages whose payload was damaged.", func(q queue.QueueStatus) uint64 { return q.Counters.Damaged }),
}

var handleMetrics = []metric[holdfast.Stats]{
	ofHandle("calls_total", "Calls of this server that were served under the lock.", func(s holdfast.Stats) uint64 { return s.Calls }),
	ofHandle("rounds_total", "Rounds in which they were served; calls that come together share one.", func(s holdfast.Stats) uint64 { return s.Rounds }),
	ofHandle("largest_round_calls", "The most calls that one round served.", func(s holdfast.Stats) uint64 { return s.LargestRound }),
	ofHandle("commits_total", "Commits of this server.", func(s holdfast.Stats) uint64 { return s.Commits }),
	ofHandle("retries_total", "Commits that were decided anew for want of room.", func(s holdfast.Stats) uint64 { return s.Retries }),
	ofHandle("uncertain_total", "Commits that may have happened or not.", func(s holdfast.Stats) uint64 { return s.Uncertain }),
	ofHandle("lock_waits_total", "Times that a call alone found the store's lock taken.", func(s holdfast.Stats) uint64 { return s.LockWaits }),
	ofHandle("parses_total", "Times that the state was read anew, after commits of others.", func(s holdfast.Stats) uint64 { return s.Parses }),
	ofHandle("syncs_total", "Calls of fsync by commits.", func(s holdfast.Stats) uint64 { return s.Syncs }),
	ofHandle("written_bytes_total", "Bytes that commits wrote: payloads, runs and states.", func(s holdfast.Stats) uint64 { return s.BytesWritten }),
	ofHandle("objects_made_total", "Payload objects that commits made.", func(s holdfast.Stats) uint64 { return s.ObjectsMade }),
	ofHandle("objects_prepared_total", "Payload objects that were made ahead.", func(s holdfast.Stats) uint64 { return s.ObjectsPrepared }),
	ofHandle("prepared_used_total", "Commits that put their payloads into one of those.", func(s holdfast.Stats) uint64 { return s.PreparedUsed }),
	ofHandle("runs_sealed_total", "Runs that commits sealed.", func(s holdfast.Stats) uint64 { return s.RunsSealed }),
	ofHandle("runs_read_total", "Runs that were read from the disk.", func(s holdfast.Stats) uint64 { return s.RunsRead }),
	ofHandle("last_revision", "The revision of this server's newest commit; 0 before the first.", func(s holdfast.Stats) uint64 { return s.LastRevision }),
}

// A collector looks at the store once for each scrape. Nothing is kept between two.
type collector struct{ s *Server }

func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range lookMetrics {
		out <- m.desc
	}
	for _, m := range queueMetrics {
		out <- m.desc
	}
	for _, m := range handleMetrics {
		out <- m.desc
	}
}

func (c collector) Collect(out chan<- prometheus.Metric) {
	unrecovered(func() { c.collect(out) })
}

func (c collector) collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(c.s.ending, scrapeWithin)
	defer cancel()
	var l look
	l.status, l.err = c.s.Store.Status(ctx, queue.StatusOptions{})
	names := slices.Sorted(maps.Keys(l.status.Queues))
	l.hidden = max(0, len(names)-maxQueues)
	told := lookMetrics
	if l.err != nil {
		told = lookMetrics[:2] // no number is made up
	}
	for _, m := range told {
		out <- m.of(l)
	}
	for _, name := range names[:len(names)-l.hidden] {
		for _, m := range queueMetrics {
			out <- m.of(l.status.Queues[name], name)
		}
	}
	stats := c.s.Store.Stats()
	for _, m := range handleMetrics {
		out <- m.of(stats)
	}
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// metrics is the handler of /metrics. The registry is the server's own: nothing that other
// packages register is told.
func (s *Server) metrics() http.Handler {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(collector{s})
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}
