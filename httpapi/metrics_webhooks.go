package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tierledger/tierledger/subscribers"
)

// callSeconds are the bounds of how long subscribers take to answer, up to a call's deadline.
var callSeconds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15}

// webhookMetrics are about what subscribers are told.
type webhookMetrics struct {
	calls   *prometheus.CounterVec
	took    prometheus.Histogram
	pending prometheus.Gauge
	oldest  prometheus.Gauge
}

func newWebhookMetrics(registry *prometheus.Registry) webhookMetrics {
	m := webhookMetrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tierledger_webhook_calls_total",
			Help: "Webhooks that this process sent, by what came of them."}, []string{"outcome"}),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "tierledger_webhook_duration_seconds",
			Help: "Time a subscriber took to answer, or not to.", Buckets: callSeconds}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tierledger_webhooks_pending",
			Help: "Deliveries of all subscriptions that haven't ended, counted up to a million."}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tierledger_webhooks_oldest_pending_seconds",
			Help: "Age of the oldest of them."}),
	}
	registry.MustRegister(m.calls, m.took, m.pending, m.oldest)
	for _, outcome := range subscribers.Outcomes() { // so that a rate is known from the first on
		m.calls.WithLabelValues(string(outcome))
	}
	return m
}

// ObserveSent counts a call to a subscriber; it's made for subscribers.Options.
func (m *Metrics) ObserveSent(s subscribers.Sent) {
	m.webhooks.calls.WithLabelValues(string(s.Outcome)).Inc()
	m.webhooks.took.Observe(s.Took.Seconds())
}

// SetWebhooks tells what's pending.
func (m *Metrics) SetWebhooks(b subscribers.Backlog) {
	m.webhooks.pending.Set(float64(b.Pending))
	m.webhooks.oldest.Set(b.Oldest.Seconds())
}
