package orders_test

import (
	"testing"

	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
)

// A hold that was bought isn't released any more: its order can be refunded.
func TestABoughtHoldIsNotReleased(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	o := s.buy("ann", 2, "sim_ok")
	_, err := s.Holds.Release(s.ctx, "tester", s.key(), o.HoldID, nil)
	s.refused(err, holds.ErrHoldConfirmed)
	s.holdIs(o.HoldID, holds.Confirmed)
	s.expect(map[string]ledger.Amount{"sold:ann ga": 2})
}
