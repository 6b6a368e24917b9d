package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tierledger/tierledger/outbox"
)

// outboxMetrics are about the publisher and the consumers.
type outboxMetrics struct {
	published prometheus.Counter
	again     prometheus.Counter
	batch     prometheus.Histogram
	lag       prometheus.Histogram
	backlog   prometheus.Gauge
	troubled  prometheus.Gauge

	effects *prometheus.CounterVec
	missed  *prometheus.CounterVec
	failed  *prometheus.CounterVec
	dead    *prometheus.CounterVec
	behind  *prometheus.GaugeVec
	failing *prometheus.GaugeVec

	letters *prometheus.GaugeVec
	oldest  *prometheus.GaugeVec
	replays *prometheus.GaugeVec
}

func newOutboxMetrics(registry *prometheus.Registry) outboxMetrics {
	consumer := []string{"consumer"}
	m := outboxMetrics{
		published: prometheus.NewCounter(prometheus.CounterOpts{Name: "tierledger_published_total",
			Help: "Entries that this process published and the stream acknowledged."}),
		again: prometheus.NewCounter(prometheus.CounterOpts{Name: "tierledger_published_again_total",
			Help: "Of them: entries that the stream had and lost."}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tierledger_published_batch_entries",
			Help: "Entries of a published batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 10)}),
		lag: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tierledger_publish_lag_seconds",
			Help: "Time from an entry to the stream's acknowledgement.", Buckets: seconds}),
		backlog: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tierledger_unpublished_entries",
			Help: "Entries of all journals that the stream hasn't acknowledged."}),
		troubled: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tierledger_unpublishable_journals",
			Help: "Journals whose publishing doesn't go on."}),
		effects: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tierledger_consumed_total",
			Help: "Entries whose effect is there, by consumer."}, consumer),
		missed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tierledger_consumed_untold_total",
			Help: "Of them: entries that no message had told of when others told of later ones."}, consumer),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tierledger_consumer_failures_total",
			Help: "Attempts that failed."}, consumer),
		dead: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tierledger_consumer_dead_letters_total",
			Help: "Dead letters that this process wrote."}, consumer),
		behind: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tierledger_consumer_lag_entries",
			Help: "Entries of all journals, of whatever kind, that a consumer hasn't come to."}, consumer),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tierledger_consumer_failing_journals",
			Help: "Journals whose next entry has failed and is to be tried again."}, consumer),
		letters: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tierledger_dead_letters",
			Help: "Dead letters that were neither replayed nor discarded."}, consumer),
		oldest: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tierledger_oldest_dead_letter_seconds",
			Help: "Age of the oldest of them."}, consumer),
		replays: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tierledger_replays",
			Help: "Replays of dead letters that aren't over, by status."}, []string{"status"}),
	}
	registry.MustRegister(m.letters, m.oldest, m.replays)
	registry.MustRegister(m.published, m.again, m.batch, m.lag, m.backlog, m.troubled,
		m.effects, m.missed, m.failed, m.dead, m.behind, m.failing)
	return m
}

// ObservePublished counts a published batch; it's made for outbox.RelayOptions.
func (m *Metrics) ObservePublished(p outbox.Published) {
	m.outbox.published.Add(float64(p.Events))
	m.outbox.again.Add(float64(p.Again))
	m.outbox.batch.Observe(float64(p.Events))
	for _, lag := range p.Lags {
		m.outbox.lag.Observe(lag.Seconds())
	}
}

// SetUnpublished tells what isn't published yet.
func (m *Metrics) SetUnpublished(b outbox.Backlog) {
	m.outbox.backlog.Set(float64(b.Entries))
	m.outbox.troubled.Set(float64(b.Troubled))
}

// ObserveStep counts a step of a consumer; it's made for outbox.InboxOptions.
func (m *Metrics) ObserveStep(s outbox.Step) {
	m.outbox.effects.WithLabelValues(s.Consumer).Add(float64(s.Events))
	m.outbox.missed.WithLabelValues(s.Consumer).Add(float64(s.Missed))
	if s.Failed {
		m.outbox.failed.WithLabelValues(s.Consumer).Inc()
	}
	if s.Dead {
		m.outbox.dead.WithLabelValues(s.Consumer).Inc()
	}
}

// SetConsumerLag tells how far a consumer is behind.
func (m *Metrics) SetConsumerLag(consumer string, l outbox.Lag) {
	m.outbox.behind.WithLabelValues(consumer).Set(float64(l.Entries))
	m.outbox.failing.WithLabelValues(consumer).Set(float64(l.Failing))
}

// SetLetters tells what's dead, and which replays aren't over.
func (m *Metrics) SetLetters(c outbox.LetterCounts) {
	m.outbox.letters.Reset() // a consumer that has none isn't among them
	m.outbox.oldest.Reset()
	for _, d := range c.Dead {
		m.outbox.letters.WithLabelValues(d.Consumer).Set(float64(d.Letters))
		m.outbox.oldest.WithLabelValues(d.Consumer).Set(d.Oldest.Seconds())
	}
	m.outbox.replays.WithLabelValues(string(outbox.ReplayAwaiting)).Set(float64(c.Awaiting))
	m.outbox.replays.WithLabelValues(string(outbox.ReplayRunning)).Set(float64(c.Running))
	m.outbox.replays.WithLabelValues(string(outbox.ReplayStopped)).Set(float64(c.Stopped))
}
