package bench

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

const (
	selloutBuyers = 160
	selloutSeats  = 8000
	// selloutTries bounds the attempts, by the seats there are: parties that are too large
	// for what's left are refused, and the next one may be smaller.
	selloutTries = 10
)

// codeNotTogether refuses a party that could sit apart.
const codeNotTogether = "not_together"

// sellout fills an event with parties that take the best there is, until no seat is free.
// It counts what was refused while enough seats were free.
func (r *seatsRun) sellout(ctx context.Context) error {
	if !r.Sellout {
		return nil
	}
	seats := min(r.Size, selloutSeats)
	event := r.event(selloutEvent)
	h := newHouse(seats, false) // nobody asks for accessible seats
	if err := r.open(ctx, event, h, maxSeatsHold); err != nil {
		return err
	}
	s := &selling{office: r.newOffice(r.server, event, h), recorder: load.NewRecorder()}
	open, full := context.WithCancel(ctx)
	defer full()
	s.full = full
	bound := load.Bound{Turns: int64(selloutTries * seats), For: max(time.Minute, 10*r.Duration)}
	took := load.Closed(open, selloutBuyers, bound, func(client int, n int64) {
		s.turn(context.WithoutCancel(ctx), client, n)
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var attempts int64
	for _, n := range s.recorder.Outcomes() {
		attempts += n
	}
	early := s.early.Load()
	r.report.SelloutReport = &SelloutReport{
		SelloutSeats: seats, SelloutHeld: s.office.book.seats(), SelloutSeconds: seconds(took), SelloutAttempts: attempts,
		SelloutHolds: s.recorder.Count(outcomeHeld), SelloutSplit: s.split.Load(), SelloutRefusedEarly: early,
		SelloutRefusedEarlyShare: round(per(float64(early), attempts), 4),
	}
	r.report.DoubleHolds += s.office.book.doubled()
	r.report.fail(s.recorder.Failures(), s.recorder.FailureTexts())
	return nil
}

// selling is a sellout under way.
type selling struct {
	office   *office
	recorder *load.Recorder
	early    atomic.Int64       // refused while enough seats were free
	split    atomic.Int64       // holds whose seats aren't side by side
	full     context.CancelFunc // ends it
}

// turn is one party.
func (s *selling) turn(ctx context.Context, client int, n int64) {
	chance := rand.New(rand.NewPCG(s.office.Seed, uint64(n)))
	party := strconv.FormatInt(n, 10)
	a := seatAsk{
		key: s.office.event + "-" + party, customer: "party-" + party, quantity: 1 + chance.IntN(maxSeatsPerHold),
		split: s.office.AcceptSplit,
	}
	if s.ask(ctx, client, &a) == codeNotTogether && !a.split {
		a.key, a.split = a.key+"-apart", true
		s.ask(ctx, client, &a)
	}
}

// ask asks for a party's seats once; the outcome is "" when it failed.
func (s *selling) ask(ctx context.Context, client int, a *seatAsk) (outcome string) {
	started := time.Now()
	hold, refusal, err := s.office.place(ctx, client, a)
	switch {
	case err != nil:
		if s.recorder.Failed(err.Error()) >= maxFailed {
			s.full()
		}
		return ""
	case refusal == nil:
		s.office.book.add(hold.claimed)
		if !s.office.house.together(hold.seats) {
			s.split.Add(1)
		}
		s.recorder.Answered(outcomeHeld, time.Since(started))
		return outcomeHeld
	case refusal.Available == 0:
		s.full()
	case refusal.Available >= int64(a.quantity):
		s.early.Add(1)
	}
	s.recorder.Answered(refusal.Code, time.Since(started))
	return refusal.Code
}

// together tells whether seats are side by side in one row.
func (h *house) together(seats []int32) bool {
	least, most := seats[0], seats[0]
	for _, seat := range seats {
		least, most = min(least, seat), max(most, seat)
	}
	return int(most-least) == len(seats)-1 && h.rowOf(least) == h.rowOf(most)
}
