package quota

import (
	"context"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
)

// Statements are the package's SQL, for the test that prepares them.
var Statements = map[string]string{
	"sqlBatchMoves":    sqlBatchMoves,
	"sqlBatchSent":     sqlBatchSent,
	"sqlKeepMove":      sqlKeepMove,
	"sqlInsertArrival": sqlInsertArrival,
	"sqlMove":          sqlMove,
	"sqlMoves":         sqlMoves,
	"sqlUnderWay":      sqlUnderWay,
}

// SendOnly does the first half of a move of what's everybody's, as a process that dies
// after it.
func (s *Store) SendOnly(ctx context.Context, event string, unit ledger.Unit, from, to int, n ledger.Amount) (uuid.UUID, error) {
	journal, err := s.Events.LaneJournal(ctx, event, from)
	if err != nil {
		return uuid.Nil, err
	}
	body := &send{
		principal: ledger.SystemPrincipal, unit: unit, account: ledger.Available, to: ledger.Available, toLane: to,
		quantity: n, cause: Rebalance, reason: reasons[Rebalance],
	}
	c, err := ledger.NewCommand(journal, ledger.SystemPrincipal, uuid.NewString(), KindSent, body.reason, body)
	if err != nil {
		return uuid.Nil, err
	}
	body.id = c.ID
	_, err = s.Ledger.Do(ctx, journal, c)
	return c.ID, err
}

// Ask asks to move up to n of everybody's tickets out of the first lane to an allotment, as
// Move does that has seen as many elsewhere, enough to need approval together.
func (s *Store) Ask(ctx context.Context, event string, unit ledger.Unit, allotment string, n, elsewhere ledger.Amount) (ledger.Receipt, error) {
	journal, err := s.Events.Journal(ctx, event)
	if err != nil {
		return ledger.Receipt{}, err
	}
	body := &send{
		principal: "op", unit: unit, account: ledger.Available, to: ledger.FreeOf(allotment), anyLane: true,
		quantity: n, upTo: true, cause: ByOperator, reason: "a test", elsewhere: elsewhere,
	}
	c, err := ledger.NewCommand(journal, "op", uuid.NewString(), KindMoved, n, body)
	if err != nil {
		return ledger.Receipt{}, err
	}
	body.id = c.ID
	return s.Ledger.Do(ctx, journal, c)
}

// Stock is what a lane has and how fast it sells; lanes are numbered from 1.
type Stock struct {
	InUse bool
	Free  ledger.Amount
	Rate  float64
}

// Carried is a transfer between lanes.
type Carried struct {
	From, To int
	Quantity ledger.Amount
}

// Level is level.
func Level(lanes []Stock, low float64, keep ledger.Amount) []Carried {
	list := make([]stock, len(lanes))
	for i, l := range lanes {
		list[i] = stock{ledger.JournalID(i + 1), i + 1, l.InUse, l.Free, l.Rate}
	}
	return carried(level(list, low, keep))
}

// Fetch is fetch.
func Fetch(free []ledger.Amount, to int, wanted ledger.Amount, ahead bool) []Carried {
	f := buckets.Free{}
	for i, n := range free {
		f.Total += n
		f.Lanes = append(f.Lanes, buckets.LaneFree{Journal: ledger.JournalID(i + 1), Lane: i + 1, Free: n})
	}
	return carried(fetch(f, ledger.JournalID(to), wanted, ahead))
}

func carried(transfers []transfer) (list []Carried) {
	for _, t := range transfers {
		list = append(list, Carried{int(t.from), t.toLane, t.quantity})
	}
	return list
}
