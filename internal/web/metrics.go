//go:build unix

package web

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"example.com/holdfast/queue"
)

// maxQueues bounds the label: queues past it, in the order of their names, have no
// metrics of their own and are counted.
const maxQueues = 500

// A metric is one number of a thing, as /metrics tells it.
type metric[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(T) float64
}

func metricOf[T any](name, help string, kind prometheus.ValueType, value func(T) float64, labels ...string) metric[T] {
	return metric[T]{prometheus.NewDesc(name, help, labels, nil), kind, value}
}

func (m metric[T]) of(x T, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(m.desc, m.kind, m.value(x), labels...)
}

// A look is what a scrape found.
type look struct {
	status queue.Status
	err    error
	hidden int // queues past the bound
}

var lookMetrics = []metric[look]{
	metricOf("holdfast_up", "1 if the store's status could be read for this scrape, else 0.", prometheus.GaugeValue, func(l look) float64 { return flag(l.err == nil) }),
	metricOf("holdfast_settled", "1 if the status is committed and no dead owner's work is open, else 0.", prometheus.GaugeValue, func(l look) float64 { return flag(l.err == nil && l.status.Settled) }),
	metricOf("holdfast_revision", "The store's revision: one more with each commit of any process.", prometheus.GaugeValue, func(l look) float64 { return float64(l.status.Revision) }),
	metricOf("holdfast_queues", "Queues of the store.", prometheus.GaugeValue, func(l look) float64 { return float64(len(l.status.Queues)) }),
	metricOf("holdfast_queues_hidden", "Queues without metrics of their own, past the bound of 500.", prometheus.GaugeValue, func(l look) float64 { return float64(l.hidden) }),
}

func gauge(name, help string, value func(queue.QueueStatus) uint64) metric[queue.QueueStatus] {
	return metricOf("holdfast_queue_"+name, help, prometheus.GaugeValue, func(q queue.QueueStatus) float64 { return float64(value(q)) }, "queue")
}

func counter(name, help string, value func(queue.Counters) uint64) metric[queue.QueueStatus] {
	return metricOf("holdfast_queue_"+name+"_total", help, prometheus.CounterValue,
		func(q queue.QueueStatus) float64 { return float64(value(q.Counters)) }, "queue")
}

var queueMetrics = []metric[queue.QueueStatus]{
	gauge("ready_messages", "Messages that are pending and due.", func(q queue.QueueStatus) uint64 { return q.Ready }),
	gauge("scheduled_messages", "Messages that are pending until a later time.", func(q queue.QueueStatus) uint64 { return q.Scheduled }),
	gauge("blocked_messages", "Messages that are pending behind an older one.", func(q queue.QueueStatus) uint64 { return q.Blocked }),
	gauge("processing_messages", "Messages that are leased.", func(q queue.QueueStatus) uint64 { return q.Processing }),
	gauge("overdue_messages", "Messages that are leased past their deadline.", func(q queue.QueueStatus) uint64 { return q.Overdue }),
	gauge("failed_messages", "Messages that were set aside.", func(q queue.QueueStatus) uint64 { return q.Failed }),
	metricOf("holdfast_queue_paused", "1 if claims of the queue find nothing, else 0.", prometheus.GaugeValue, func(q queue.QueueStatus) float64 { return flag(q.Paused) }, "queue"),

	counter("enqueued", "Messages that were accepted.", func(c queue.Counters) uint64 { return c.Enqueued }),
	counter("superseded", "Pending messages that a newer one of their ID replaced.", func(c queue.Counters) uint64 { return c.Superseded }),
	counter("claimed", "Claims, loads among them.", func(c queue.Counters) uint64 { return c.Claimed }),
	counter("completed", "Acks.", func(c queue.Counters) uint64 { return c.Completed }),
	counter("retried", "Retries that returned the message.", func(c queue.Counters) uint64 { return c.Retried }),
	counter("released", "Releases.", func(c queue.Counters) uint64 { return c.Released }),
	counter("reaped", "Leases that ended without settlement.", func(c queue.Counters) uint64 { return c.Reaped }),
	counter("failed", "Messages that went to the failed ones, for whatever reason.", func(c queue.Counters) uint64 { return c.Failed }),
	counter("reprocessed", "Failed messages that were returned to the queue.", func(c queue.Counters) uint64 { return c.Reprocessed }),
	counter("cleared", "Messages that a clearing removed.", func(c queue.Counters) uint64 { return c.Cleared }),
	counter("purged", "Failed messages that were removed.", func(c queue.Counters) uint64 { return c.Purged }),
	counter("damaged", "Failed messages whose payload was damaged.", func(c queue.Counters) uint64 { return c.Damaged }),
}

func handle(name, help string, kind prometheus.ValueType, value func(statsLine) uint64) metric[statsLine] {
	return metricOf("holdfast_handle_"+name, help, kind, func(s statsLine) float64 { return float64(value(s)) })
}

var handleMetrics = []metric[statsLine]{
	handle("calls_total", "Calls of this server that were served under the lock.", prometheus.CounterValue, func(s statsLine) uint64 { return s.Calls }),
	handle("rounds_total", "Rounds in which they were served; calls that come together share one.", prometheus.CounterValue, func(s statsLine) uint64 { return s.Rounds }),
	handle("largest_round_calls", "The most calls that one round served.", prometheus.GaugeValue, func(s statsLine) uint64 { return s.LargestRound }),
	handle("commits_total", "Commits of this server.", prometheus.CounterValue, func(s statsLine) uint64 { return s.Commits }),
	handle("retries_total", "Commits that were decided anew for want of room.", prometheus.CounterValue, func(s statsLine) uint64 { return s.Retries }),
	handle("uncertain_total", "Commits that may have happened or not.", prometheus.CounterValue, func(s statsLine) uint64 { return s.Uncertain }),
	handle("lock_waits_total", "Times that a call alone found the store's lock taken.", prometheus.CounterValue, func(s statsLine) uint64 { return s.LockWaits }),
	handle("parses_total", "Times that the state was read anew, after commits of others.", prometheus.CounterValue, func(s statsLine) uint64 { return s.Parses }),
	handle("syncs_total", "Calls of fsync by commits.", prometheus.CounterValue, func(s statsLine) uint64 { return s.Syncs }),
	handle("written_bytes_total", "Bytes that commits wrote: payloads, runs and states.", prometheus.CounterValue, func(s statsLine) uint64 { return s.BytesWritten }),
	handle("objects_made_total", "Payload objects that commits made.", prometheus.CounterValue, func(s statsLine) uint64 { return s.ObjectsMade }),
	handle("objects_prepared_total", "Payload objects that were made ahead.", prometheus.CounterValue, func(s statsLine) uint64 { return s.ObjectsPrepared }),
	handle("prepared_used_total", "Commits that put their payloads into one of those.", prometheus.CounterValue, func(s statsLine) uint64 { return s.PreparedUsed }),
	handle("runs_sealed_total", "Runs that commits sealed.", prometheus.CounterValue, func(s statsLine) uint64 { return s.RunsSealed }),
	handle("runs_read_total", "Runs that were read from the disk.", prometheus.CounterValue, func(s statsLine) uint64 { return s.RunsRead }),
	handle("last_revision", "The revision of this server's newest commit; 0 before the first.", prometheus.GaugeValue, func(s statsLine) uint64 { return s.LastRevision }),
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
	for _, m := range lookMetrics {
		out <- m.of(l)
	}
	for _, name := range names[:len(names)-l.hidden] {
		for _, m := range queueMetrics {
			out <- m.of(l.status.Queues[name], name)
		}
	}
	for _, m := range handleMetrics {
		out <- m.of(statsOf(c.s.Store.Stats()))
	}
}

func flag(b bool) float64 {
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
