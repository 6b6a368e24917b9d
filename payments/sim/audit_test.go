package sim

import (
	"encoding/csv"
	"net/http/httptest"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// errorer is a test, or a run of a property.
type errorer interface {
	Helper()
	Errorf(format string, args ...any)
}

// audit checks the whole state of a provider: the bounds of every payment, no charge
// twice, and a report that says the same as the payments to the cent.
func audit(t errorer, s *Server) {
	t.Helper()
	report := httptest.NewRecorder()
	s.ServeHTTP(report, httptest.NewRequest("GET", "/report", nil))
	rows, err := csv.NewReader(strings.NewReader(report.Body.String())).ReadAll()
	if err != nil {
		t.Errorf("report: %v", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	type sums struct{ captured, refunded, disputed, fees ledger.Amount }
	told := map[string]*sums{}
	charges := map[string]int{}
	for _, r := range rows[1:] {
		id, currency := r[2], ledger.Unit(r[8])
		sum := told[id]
		if sum == nil {
			sum = &sums{}
			told[id] = sum
		}
		gross, fee, net := minor(r[5], currency), minor(r[6], currency), minor(r[7], currency)
		if gross-fee != net {
			t.Errorf("row %v: net isn't gross - fee", r)
		}
		switch r[1] {
		case rowCharge, rowCapture:
			sum.captured += gross
			sum.fees += fee
			charges[id]++
		case rowCaptureFailed:
			sum.captured += gross
			sum.fees += fee
			charges[id]--
		case rowRefund:
			sum.refunded -= gross
		case rowChargeback:
			sum.disputed -= gross
		case rowFee:
			if fee != 1500 || currency != "USD" || gross != 0 {
				t.Errorf("row %v: a dispute costs 15.00 USD", r)
			}
		default:
			t.Errorf("row %v: what's that?", r)
		}
	}
	for id, p := range s.book.payments {
		if p.Captured > p.Authorized || p.refundable() < 0 ||
			min(p.Authorized, p.Captured, p.Refunded, p.RefundsPending, p.Disputed) < 0 {
			t.Errorf("out of bounds: %+v", p)
		}
		if charges[id] > 1 {
			t.Errorf("%s was charged %d times", id, charges[id])
		}
		want := sums{p.Captured, p.Refunded, p.Disputed, 0}
		if p.Captured > 0 {
			want.fees = feeOf(p.Captured, p.Currency)
		}
		got := told[id]
		if got == nil {
			got = &sums{}
		}
		if *got != want {
			t.Errorf("%s: the report says %+v, the payment %+v", id, *got, want)
		}
		delete(told, id)
	}
	for id := range told {
		t.Errorf("the report has rows of %s, which doesn't exist", id)
	}
	auditOperations(t, s.book)
}

// auditOperations checks that what operations say they moved is what the payments have.
func auditOperations(t errorer, b *book) {
	t.Helper()
	for id, p := range b.payments {
		var taken, returned, waiting ledger.Amount
		for _, first := range b.byPayment[id] {
			o := b.operations[first.ID]
			switch {
			case o.Kind == payments.Refund && o.Status == payments.Pending:
				waiting += o.Amount
			case o.Status != payments.Succeeded:
			case o.Kind == payments.Capture, o.Kind == payments.Authorize && p.Capture == automatic:
				taken += o.Amount
			case o.Kind == payments.Refund:
				returned += o.Amount
			}
		}
		if taken != p.Captured || returned != p.Refunded || waiting != p.RefundsPending {
			t.Errorf("operations took %d, returned %d, will return %d: %+v", taken, returned, waiting, p)
		}
	}
}

// minor reads an amount of the report.
func minor(text string, currency ledger.Unit) ledger.Amount {
	exponent, _ := currency.Exponent()
	d := decimal.RequireFromString(text).Shift(int32(exponent))
	if !d.IsInteger() {
		panic(text + " has too many decimals")
	}
	return ledger.Amount(d.IntPart())
}
