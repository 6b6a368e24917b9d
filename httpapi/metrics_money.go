package httpapi

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
)

// moneyMetrics are about purchases and what providers say of them.
type moneyMetrics struct {
	checkouts  *prometheus.CounterVec
	operations *prometheus.CounterVec
	webhooks   *prometheus.CounterVec
	unknown    prometheus.Gauge
	oldest     prometheus.Gauge
	due        prometheus.Gauge
	parked     prometheus.Gauge
	cases      *prometheus.GaugeVec
}

func newMoneyMetrics(registry *prometheus.Registry) moneyMetrics {
	m := moneyMetrics{
		checkouts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tierledger_checkouts_total",
			Help: "Checkouts by answer: 201 paid, 202 open, or the code of the refusal."}, []string{"answer"}),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tierledger_operations_total",
			Help: "Changes of operations, by kind and the status after it."}, []string{"kind", "status"}),
		webhooks: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tierledger_webhooks_total",
			Help: "Webhooks by result: received, or the code of the refusal."}, []string{"result"}),
		unknown: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tierledger_unknown_operations",
			Help: "Operations that were sent and have no outcome."}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tierledger_oldest_unknown_seconds",
			Help: "Time since the oldest of them was sent."}),
		due: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tierledger_janitor_due",
			Help: "Operations, orders, webhooks and cases that were due in the janitor's last round."}),
		parked: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tierledger_parked_webhooks",
			Help: "Webhooks about what isn't known yet."}),
		cases: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "tierledger_open_cases",
			Help: "Cases that aren't resolved, by reason."}, []string{"reason"}),
	}
	registry.MustRegister(m.checkouts, m.operations, m.webhooks, m.unknown, m.oldest, m.due, m.parked, m.cases)
	return m
}

// ObserveOperation counts that an operation came to a status; it's made for
// orders.Options.
func (m *Metrics) ObserveOperation(kind payments.Kind, status orders.OperationStatus) {
	m.money.operations.WithLabelValues(string(kind), string(status)).Inc()
}

// SetBacklog tells what a round of the janitor found.
func (m *Metrics) SetBacklog(b orders.Backlog) {
	m.money.unknown.Set(float64(b.Unknown))
	m.money.oldest.Set(b.Oldest.Seconds())
	m.money.due.Set(float64(b.Due))
	m.money.parked.Set(float64(b.Parked))
}

// SetOpenCases tells how many cases of each reason aren't resolved.
func (m *Metrics) SetOpenCases(open map[cases.Reason]int64) {
	for _, reason := range cases.Reasons() {
		m.money.cases.WithLabelValues(string(reason)).Set(float64(open[reason]))
	}
}

func (m *Metrics) observeCheckout(ans *answer, err error) {
	label := strconv.Itoa(ans.status)
	if err != nil {
		label = codeOf(err)
	}
	m.money.checkouts.WithLabelValues(label).Inc()
}

func (m *Metrics) observeWebhook(err error) {
	label := "received"
	if err != nil {
		label = codeOf(err)
	}
	m.money.webhooks.WithLabelValues(label).Inc()
}

// codeOf gives the code that a caller sees of an error.
func codeOf(err error) string {
	if e := fault.As(err); e != nil {
		return e.Code
	}
	return fault.ErrInternal.Code
}
