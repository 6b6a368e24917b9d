package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/quota"
)

// quotaMetrics are about tickets that are moved between lanes and allotments.
type quotaMetrics struct {
	moves   *prometheus.CounterVec
	tickets *prometheus.CounterVec
}

func newQuotaMetrics(registry *prometheus.Registry) quotaMetrics {
	m := quotaMetrics{
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tierledger_quota_moves_total",
			Help: "Quota moves that this process made, by cause."}, []string{"cause"}),
		tickets: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tierledger_quota_moved_tickets_total",
			Help: "Tickets of them."}, []string{"cause"}),
	}
	registry.MustRegister(m.moves, m.tickets)
	for _, cause := range moveCauses { // so that a rate is known from the first on
		m.moves.WithLabelValues(string(cause))
		m.tickets.WithLabelValues(string(cause))
	}
	return m
}

// ObserveMove counts a move that was made; it's made for quota.Options. Uses of access
// codes are moved too, and are no tickets.
func (m *Metrics) ObserveMove(move quota.Move) {
	if move.Tier == ledger.Uses {
		return
	}
	m.quota.moves.WithLabelValues(string(move.Cause)).Inc()
	m.quota.tickets.WithLabelValues(string(move.Cause)).Add(float64(move.Quantity))
}
