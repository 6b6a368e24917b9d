package orders_test

import (
	"testing"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/ledger"
)

// What a bank takes back of money that isn't ours rests no more.
func TestADisputeOfAPaymentOfSomebodyElse(t *testing.T) {
	t.Parallel()
	s := open(t, option{webhooks: true})
	s.play("/payments", `{"reference": "their-1", "amount": 700, "currency": "EUR", "payment_method": "sim_ok", "capture": "automatic"}`)
	s.bank("pay_00000001", "dispute", 300)
	s.flush()
	s.expect(map[string]ledger.Amount{"provider:sim EUR": 400, "suspense:unidentified EUR": -400})
	if c := s.theCase(cases.Unidentified, cases.Open); c.Suspended != 400 {
		t.Errorf("%d rest", c.Suspended)
	}
	s.play("/payments/pay_00000001/refunds", `{"reference": "their-2", "amount": 400, "currency": "EUR"}`)
	s.flush()
	s.expect(map[string]ledger.Amount{"provider:sim EUR": 0, "suspense:unidentified EUR": 0})
	s.theCase(cases.Unidentified, cases.Resolved)
}
