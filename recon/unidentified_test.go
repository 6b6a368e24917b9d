package recon_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/recon"
)

// Money of nobody's order can't be talked away: while any of it rests, two people can
// do nothing about its case here. The provider's refund is what resolves it.
func TestMoneyOfNobodyIsRefundedAtTheProvider(t *testing.T) {
	t.Parallel()
	d := &desk{sale: openSale(t)}
	d.post("/payments", `{"reference": "their-1", "amount": 700, "currency": "EUR", "payment_method": "sim_ok", "capture": "automatic"}`)
	for d.id == uuid.Nil {
		list, err := d.Recon.Cases(t.Context(), cases.Filter{Reason: cases.Unidentified, Limit: 10})
		switch {
		case err != nil:
			t.Fatal(err)
		case len(list) == 1:
			d.id = list[0].ID
		default:
			d.committed()
		}
	}
	for _, r := range []cases.Resolution{cases.Refund, cases.Honour, cases.WriteOff} {
		if _, err := d.resolve("fay", recon.Resolution{Resolution: r, Reason: "x", Evidence: "y"}, nil); err != nil {
			t.Fatal(err)
		}
		_, err := d.approve("gus", nil)
		d.refused(err, cases.ErrResolution)
		if _, err := d.reject("gus", nil); err != nil {
			t.Fatal(err)
		}
	}
	if c := d.now(); c.Status != cases.Open || c.Suspended != 700 {
		t.Errorf("%+v", c)
	}
	d.post("/payments/pay_00000001/refunds", `{"reference": "their-2", "amount": 700, "currency": "EUR"}`)
	for d.now().Status != cases.Resolved {
		d.committed()
	}
}

// committed waits for the next commit.
func (s *sale) committed() {
	s.Helper()
	select {
	case <-s.batches:
	case <-s.Context().Done():
		s.Fatal("nothing more is committed")
	}
}
