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

// The end of a hold's grace can't be moved beside the entry that set it.
func TestTheGraceOfAHoldIsCompared(t *testing.T) {
	t.Parallel()
	s := open(t, option{})
	s.buy("ann", 2, "sim_requires_action")
	s.exec(`BEGIN`)
	defer s.exec(`ROLLBACK`)
	s.exec(`UPDATE holds SET pay_until = pay_until + interval '1 hour'`)
	for _, c := range holds.Checks() {
		rows, err := s.owner.Query(s.ctx, c.SQL, nil)
		if err != nil {
			t.Fatal(err)
		}
		if found := collect[string](s, rows); (len(found) > 0) != (c.Name == "holds_recorded") {
			t.Errorf("%s found %q", c.Name, found)
		}
	}
}
