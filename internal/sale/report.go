package sale

import (
	"maps"
	"time"
)

// Progress is how far a sale is.
type Progress struct {
	Buyers, Arrived int
	Capacity        int64 // tickets
	Held, Left      int64 // tickets, as the API tells
	Sold            int64
	Placed          int64 // holds
	Released        int64
	Expired         int64 // without an attempt to pay
	Paid            int64 // orders
	Cancelled       int64
	Open            int64     // orders whose outcome isn't known yet
	Due             time.Time // when the last of those is due that the sale waits for; zero: it doesn't wait
	Refused         int64     // requests
	Seats           int64     // assigned ones
	SeatsTaken      int64     // of those, held or sold
}

func (s *sale) progress() Progress {
	a := s.latest()
	s.book.mu.Lock()
	arrived, placed, released := s.book.arrived, len(s.book.receipts), s.book.released
	s.book.mu.Unlock()
	s.mu.Lock()
	due := s.due
	s.mu.Unlock()
	c := s.book.count(time.Now())
	refused := int64(0)
	for _, n := range s.refusals() {
		refused += n
	}
	return Progress{
		Buyers: s.plan.Buyers, Arrived: arrived, Capacity: s.plan.Capacity(),
		Held: a.held(), Left: a.left(), Sold: a.sold(),
		Placed: int64(placed), Released: int64(released), Expired: c.expired,
		Paid: c.paid, Cancelled: c.cancelled, Open: c.open, Due: due,
		Refused: refused, Seats: int64(s.plan.Seats), SeatsTaken: a.taken(),
	}
}

// refusals are the refused requests by code.
func (s *sale) refusals() map[string]int64 {
	codes := s.api.outcomes()
	maps.DeleteFunc(codes, func(outcome string, _ int64) bool {
		switch outcome {
		case outcomeHeld, outcomeReleased, outcomeOrdered, outcomeRefund, outcomeReplayed:
			return true
		}
		return false
	})
	return codes
}

// Report is the outcome of a sale.
type Report struct {
	Progress                       // at the end
	Served        int              // buyers who held tickets at some time
	Refusals      map[string]int64 // requests by code
	Replayed      int64            // requests that got their first answer again
	Peak          int64            // most tickets held at one time
	Requests      int64            // that changed something, or would have
	Took          time.Duration    // from the opening until the last buyer went home
	P50, P95, P99 time.Duration    // of those requests' answers, payments apart
	PayP50        time.Duration    // of the answers to payments, with the provider's time
	PayP99        time.Duration

	Orders     map[string]int64 // by status
	Undecided  map[string]int64 // steps whose outcome isn't known, by kind and status, and the order's status
	Honoured   int64            // orders that got their tickets although the money came late
	GivenBack  int64            // late payments that went back
	Cases      map[string]int64 // open, by reason
	Accounts   []Balance        // in money, that aren't zero
	Reconciled Reconciled       // the provider's report, matched by the ledger
	Seating    Seats

	Readings      int      // of the availability, each compared with the receipts
	Surprises     []string // the first of what must not be
	SurpriseCount int
}

// OK tells whether the API and its buyers agree on everything.
func (r Report) OK() bool { return r.SurpriseCount == 0 }

func (s *sale) report(took time.Duration, m money) Report {
	c, pay := s.api.commands, s.api.checkouts
	r := Report{
		Progress: s.progress(), Served: s.book.served, Refusals: s.refusals(),
		Took: took, Readings: len(s.readings),
		P50: c.Latency(50), P95: c.Latency(95), P99: c.Latency(99),
		PayP50: pay.Latency(50), PayP99: pay.Latency(99),
		Orders: map[string]int64{}, Undecided: map[string]int64{}, Cases: m.cases,
		Accounts: m.accounts, Reconciled: m.reconciled, Seating: s.seats(),
		Surprises: s.book.surprises, SurpriseCount: s.book.surprised,
	}
	outcomes := s.api.outcomes()
	r.Replayed = outcomes[outcomeReplayed]
	for _, n := range outcomes {
		r.Requests += n
	}
	for _, a := range s.readings {
		r.Peak = max(r.Peak, a.held())
	}
	for _, p := range s.book.purchases {
		switch {
		case p.acted && p.order.Paid():
			r.Honoured++
		case p.acted && p.order.Settled():
			r.GivenBack++
		}
	}
	for i := range m.orders {
		r.Orders[m.orders[i].Status]++
		for _, p := range m.orders[i].Open() {
			r.Undecided[p.Kind+" "+p.Status+" of a "+m.orders[i].Status+" order"]++
		}
	}
	return r
}
