package orders

import (
	"testing"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/payments"
)

// What tickets cost is taken part by part, as long as that's left of each part; what
// isn't is divided over what's left.
func TestPartsOfARefund(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		refunded, cost, want holds.Parts
	}{
		"what they cost":         {holds.Parts{}, holds.Parts{Face: 60, Fee: 1}, holds.Parts{Face: 60, Fee: 1}},
		"all of a part":          {holds.Parts{Face: 40}, holds.Parts{Face: 60}, holds.Parts{Face: 60}},
		"more face than is left": {holds.Parts{Face: 50}, holds.Parts{Face: 60}, holds.Parts{Face: 19, Fee: 38, Tax: 3}},
		"more fee than is left":  {holds.Parts{Fee: 90}, holds.Parts{Fee: 20}, holds.Parts{Face: 17, Fee: 2, Tax: 1}},
		"more tax than is left":  {holds.Parts{Tax: 8}, holds.Parts{Tax: 4}, holds.Parts{Face: 2, Fee: 2}},
	} {
		o := &Order{Parts: holds.Parts{Face: 100, Fee: 100, Tax: 9}, RefundedParts: c.refunded}
		o.Captured.Amount, o.Total.Amount = 209, 209
		r := &refund{request: RefundRequest{Items: []RefundLine{{Tier: "ga", Quantity: 1}}}}
		if got, err := r.parts(&deal{order: o}, c.cost); err != nil || got != c.want {
			t.Errorf("%s: %+v %v, want %+v", name, got, err, c.want)
		}
	}
}

// A dispute in another currency takes nothing of the order's parts: it rests with the
// provider, for people.
func TestADisputeInAnotherCurrency(t *testing.T) {
	t.Parallel()
	j, h := paying(t)
	j.told(h, payments.Authorize, payments.Succeeded, nil)
	j.told(h, payments.Capture, payments.Succeeded, nil)
	o := j.order(h)
	paid := o.last(payments.Authorize)
	r := payments.Result{Kind: payments.Chargeback, Outcome: payments.Succeeded, Reference: "dispute1", At: j.now,
		Amount:  buckets.Money{Amount: 900, Currency: "EUR"},
		Payment: payments.Payment{Reference: paid.Payment, Operation: paid.ID}}
	if _, err := j.tell(h, fromWebhook, r); err != nil {
		t.Fatal(err)
	}
	if op := o.last(payments.Chargeback); op == nil || op.disputed != 900 || op.parts != (holds.Parts{}) || o.RefundedParts != (holds.Parts{}) {
		t.Errorf("%+v, of the order %+v", op, o.RefundedParts)
	}
	if c := j.caseOf(h, cases.Chargeback); c == nil || c.Amount != r.Amount {
		t.Errorf("%+v", c)
	}
}
