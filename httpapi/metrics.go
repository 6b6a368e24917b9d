package httpapi

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tierledger/tierledger/ledger"
)

// seconds are the bounds of latency histograms: from a read in memory to the
// timeout of a call.
var seconds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// Metrics counts what happens, for Prometheus. Labels come from the program, never
// from callers, so that there's a bounded number of series. It's safe for
// concurrent use.
type Metrics struct {
	handler http.Handler

	calls    *prometheus.HistogramVec
	refusals *prometheus.CounterVec
	replays  prometheus.Counter

	commands  prometheus.Histogram
	phases    *prometheus.HistogramVec
	lockWait  prometheus.Histogram
	entries   prometheus.Counter
	snapshots prometheus.Counter
	failures  prometheus.Counter

	registry *prometheus.Registry
	overdue  prometheus.Gauge
	behind   prometheus.Gauge
	depth    atomic.Pointer[func() int]

	money    moneyMetrics
	quota    quotaMetrics
	outbox   outboxMetrics
	webhooks webhookMetrics
}

// NewMetrics makes metrics in a registry of their own, with those of the runtime
// and the process.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	m := &Metrics{
		handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "tierledger_request_duration_seconds",
			Help: "Time from a call's head to its answer.", Buckets: seconds}, []string{"route", "method", "status"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tierledger_refusals_total",
			Help: "Calls answered with a problem, by code."}, []string{"code"}),
		replays: prometheus.NewCounter(prometheus.CounterOpts{Name: "tierledger_replays_total",
			Help: "Commands answered from an earlier entry."}),
		commands: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tierledger_batch_commands",
			Help: "Commands of a batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 10)}),
		phases: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "tierledger_batch_duration_seconds",
			Help: "Time a batch took, by phase; reading includes the wait for the lock.", Buckets: seconds}, []string{"phase"}),
		lockWait: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tierledger_lock_wait_seconds",
			Help: "Time a batch waited for its journal's lock.", Buckets: seconds}),
		entries: prometheus.NewCounter(prometheus.CounterOpts{Name: "tierledger_entries_total",
			Help: "Entries written."}),
		snapshots: prometheus.NewCounter(prometheus.CounterOpts{Name: "tierledger_snapshot_batches_total",
			Help: "Batches judged on a snapshot, without the lock."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "tierledger_due_failures_total",
			Help: "Batches in which something due, such as an expiry, failed."}),
		overdue: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tierledger_overdue_hold_seconds",
			Help: "Age of the oldest hold that has run out and isn't expired."}),
	}
	m.behind = prometheus.NewGauge(prometheus.GaugeOpts{Name: "tierledger_clock_behind_seconds",
		Help: "How far the database's clock was behind the journal's time in the last batch."})
	depth := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tierledger_queue_depth",
		Help: "Commands that wait for a committer."}, m.queueDepth)
	registry.MustRegister(m.calls, m.refusals, m.replays, m.commands, m.phases, m.lockWait, m.entries,
		m.snapshots, m.failures, m.overdue, m.behind, depth,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.registry, m.money, m.quota = registry, newMoneyMetrics(registry), newQuotaMetrics(registry)
	m.outbox = newOutboxMetrics(registry)
	m.webhooks = newWebhookMetrics(registry)
	return m
}

// ObserveBatch counts a batch; it's made for ledger.Options.
func (m *Metrics) ObserveBatch(b ledger.Batch) {
	m.commands.Observe(float64(b.Commands))
	m.phases.WithLabelValues("read").Observe(b.Read.Seconds())
	m.phases.WithLabelValues("decide").Observe(b.Decide.Seconds())
	if b.Write > 0 {
		m.phases.WithLabelValues("write").Observe(b.Write.Seconds())
		m.entries.Add(float64(b.Entries))
	}
	if b.Snapshot {
		m.snapshots.Inc()
	} else {
		m.lockWait.Observe(b.LockWait.Seconds())
	}
	m.behind.Set(b.ClockBehind.Seconds())
	if b.Err != nil {
		m.failures.Inc()
	}
}

// SetOverdue tells how long ago the oldest hold that isn't expired yet ran out.
func (m *Metrics) SetOverdue(d time.Duration) { m.overdue.Set(d.Seconds()) }

// SetFollowers says how to find out how many follow a map, and how many were cut off.
func (m *Metrics) SetFollowers(now, cut func() int64) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tierledger_map_followers",
			Help: "Readers that follow the changes of a seat map."}, func() float64 { return float64(now()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "tierledger_map_followers_cut_total",
			Help: "Followers that were cut off because they read too slowly."}, func() float64 { return float64(cut()) }))
}

// SetQueueDepth says how to find out how many commands wait.
func (m *Metrics) SetQueueDepth(depth func() int) { m.depth.Store(&depth) }

func (m *Metrics) queueDepth() float64 {
	if depth := m.depth.Load(); depth != nil {
		return float64((*depth)())
	}
	return 0
}

func (m *Metrics) observeCall(c *call, ans *answer, took time.Duration) {
	class := strconv.Itoa(ans.status/100) + "xx"
	m.calls.WithLabelValues(c.path(), c.method(), class).Observe(took.Seconds())
	if ans.replayed {
		m.replays.Inc()
	}
}
