package bench

import (
	"context"
	"strconv"
	"time"

	"github.com/tierledger/tierledger/internal/load"
)

// relaySide is what came back with publisher and consumers, or without, over all rounds.
type relaySide struct {
	system System
	rounds []CostRound
	held   int64
	took   time.Duration
	spans  []span // what was held in each round
}

// costEvent is loaded by both sides.
const costEvent = "cost"

// cost loads one event by turns with publisher and consumers and without, each time in a
// process of its own. What the other side has left is published and consumed before a
// turn with them is measured.
func (r *relayRun) cost(ctx context.Context) error {
	off, on := &relaySide{system: Product}, &relaySide{system: Publishing}
	c := &RelayCost{}
	for round := range r.Rounds {
		sides := []*relaySide{off, on}
		if round%2 == 1 { // whatever grows meanwhile isn't one side's alone
			sides = []*relaySide{on, off}
		}
		for _, side := range sides {
			if err := r.costRound(ctx, side, round, c); err != nil {
				return err
			}
		}
	}
	lags, err := r.lagsAfter(ctx, on.spans)
	if err != nil {
		return err
	}
	c.take(off, on, lags)
	r.report.RelayCost = c
	return nil
}

// costRound is one turn of one side.
func (r *relayRun) costRound(ctx context.Context, side *relaySide, round int, c *RelayCost) error {
	phase := string(side.system) + "-" + strconv.Itoa(round)
	profile := ""
	if side.system == Publishing && round == r.Rounds-1 {
		profile = r.Profile
	}
	t, err := r.openRelay(ctx, side.system, profile)
	if err != nil {
		return err
	}
	defer t.close()
	if round == 0 && side.system == Product {
		if err := r.openEvent(ctx, t, costEvent); err != nil {
			return err
		}
	}
	event := r.event(costEvent)
	if err := r.warm(ctx, t, costEvent, phase, side.system == Publishing); err != nil {
		return err
	}
	from, err := r.db.head(ctx, event)
	if err != nil {
		return err
	}
	to, pace := r.hold(ctx, t, costEvent, phase, 0, r.Clients, load.Bound{For: r.Duration / time.Duration(r.Rounds)})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if side.system == Publishing {
		if err := r.costLag(ctx, side, span{after: from}, c); err != nil {
			return err
		}
	}
	side.held += to.Count(outcomeHeld)
	side.took += pace.Took
	side.rounds = append(side.rounds, CostRound{
		HoldsPerS: round1(float64(to.Count(outcomeHeld)) / pace.Took.Seconds()), P50: ms(to, 50), P99: ms(to, 99)})
	r.report.fail(to)
	return t.close()
}

// costLag looks how far the publisher and the consumers are behind at a round's end, and
// how long they need to come to it.
func (r *relayRun) costLag(ctx context.Context, side *relaySide, s span, c *RelayCost) error {
	behind, err := r.db.notPublished(ctx)
	if err != nil {
		return err
	}
	took, err := r.caughtUp(ctx, "publish the rest", r.db.notPublished)
	if err != nil {
		return err
	}
	c.Behind, c.CatchUpMS = max(c.Behind, behind), max(c.CatchUpMS, round1(took.Seconds()*1e3))
	event := r.event(costEvent)
	if s.journal, err = r.db.journal(ctx, event); err != nil {
		return err
	}
	s.upTo, err = r.db.head(ctx, event)
	side.spans = append(side.spans, s)
	return err
}

// lagsAfter publishes what the last turn without a publisher has left, and gives the lags
// of others.
func (r *relayRun) lagsAfter(ctx context.Context, spans []span) (*load.Recorder, error) {
	if err := r.bus.start(ctx); err != nil {
		return nil, err
	}
	defer r.bus.stop()
	if err := r.publishRest(ctx); err != nil {
		return nil, err
	}
	s, err := r.audit(ctx, spans...)
	if err != nil {
		return nil, err
	}
	return s.lags, nil
}

func round1(x float64) float64 { return round(x, 1) }
