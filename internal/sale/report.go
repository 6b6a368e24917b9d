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
	Placed          int64 // holds
	Released        int64
	Expired         int64
	Refused         int64 // requests
}

func (s *sale) progress() Progress {
	a := s.latest()
	s.book.mu.Lock()
	arrived, placed, released := s.book.arrived, len(s.book.receipts), s.book.released
	s.book.mu.Unlock()
	refused := int64(0)
	for _, n := range s.refusals() {
		refused += n
	}
	return Progress{
		Buyers: s.plan.Buyers, Arrived: arrived, Capacity: s.plan.Capacity(),
		Held: a.held(), Left: a.left(),
		Placed: int64(placed), Released: int64(released), Expired: int64(s.book.expired(time.Now())),
		Refused: refused,
	}
}

// refusals are the refused requests by code.
func (s *sale) refusals() map[string]int64 {
	codes := s.api.commands.Outcomes()
	maps.DeleteFunc(codes, func(outcome string, _ int64) bool {
		return outcome == outcomeHeld || outcome == outcomeReleased || outcome == outcomeReplayed
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
	P50, P95, P99 time.Duration    // of those requests' answers
	Readings      int              // of the availability, each compared with the receipts
	Surprises     []string         // the first of what must not be
	SurpriseCount int
}

// OK tells whether the API and its buyers agree on everything.
func (r Report) OK() bool { return r.SurpriseCount == 0 }

func (s *sale) report(took time.Duration) Report {
	c := s.api.commands
	r := Report{
		Progress: s.progress(), Served: s.book.served, Refusals: s.refusals(),
		Replayed: c.Count(outcomeReplayed),
		Took:     took, Readings: len(s.readings),
		P50: c.Latency(50), P95: c.Latency(95), P99: c.Latency(99),
		Surprises: s.book.surprises, SurpriseCount: s.book.surprised,
	}
	for _, n := range c.Outcomes() {
		r.Requests += n
	}
	for _, a := range s.readings {
		r.Peak = max(r.Peak, a.held())
	}
	return r
}
