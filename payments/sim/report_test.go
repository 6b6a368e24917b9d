package sim

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

func TestReport(t *testing.T) {
	w := newWorld(t, Options{})
	sell := func(amount ledger.Amount, currency ledger.Unit) string {
		money := buckets.Money{Amount: amount, Currency: currency}
		a, err := w.Authorize(t.Context(), payments.Authorization{Operation: w.operation(), Amount: money, Method: "sim_ok"})
		w.is(a, err, payments.Succeeded, "")
		c, err := w.Capture(t.Context(), payments.Step{Operation: w.operation(), Payment: a.Payment.Reference, Amount: money})
		w.is(c, err, payments.Succeeded, "")
		w.pass(time.Hour)
		return a.Payment.Reference
	}
	sell(10600, "USD")        // at 12:00
	sell(10000, "JPY")        // at 13:00
	pay := sell(10600, "KWD") // at 14:00
	r, err := w.Refund(t.Context(), payments.Step{Operation: w.operation(), Payment: pay, Amount: buckets.Money{Amount: 1, Currency: "KWD"}})
	w.is(r, err, payments.Succeeded, "")
	if got := w.bank(pay, "dispute", `{"amount": 600}`); got != "ok" {
		t.Fatal(got)
	}
	want := []string{
		"capture 106.00 3.37 102.63 USD",
		"capture 10000 290 9710 JPY",
		"capture 10.600 0.607 9.993 KWD",
		"refund -0.001 0.000 -0.001 KWD",
		"chargeback -0.600 0.000 -0.600 KWD",
		"fee 0.00 15.00 -15.00 USD",
	}
	show := func(rows [][]string) (lines []string) {
		for _, r := range rows {
			lines = append(lines, strings.Join([]string{r[1], r[5], r[6], r[7], r[8]}, " "))
		}
		return lines
	}
	all := w.report("")
	if got := show(all); !slices.Equal(got, want) {
		t.Errorf("report\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if all[3][3] != r.Operation.String() || all[3][2] != pay || all[0][4] != "2026-11-30T12:00:00Z" {
		t.Errorf("%v", all[3])
	}
	// P43: periods are half open; each row is in just one of them, whatever the zone.
	first := w.report("to=2026-11-30T14:00:00%2B01:00")
	second := w.report("from=2026-11-30T13:00:00Z&to=2026-11-30T14:00:00Z")
	third := w.report("from=2026-11-30T14:00:00Z&to=2026-12-01")
	if len(first) != 1 || len(second) != 1 || len(third) != 4 {
		t.Errorf("%v\n%v\n%v", first, second, third)
	}
	if resp, _ := w.send("GET", "/report?from=today", "", ""); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func TestFee(t *testing.T) {
	for _, test := range []struct {
		amount   ledger.Amount
		currency ledger.Unit
		want     ledger.Amount
	}{
		{10600, "USD", 337}, {1, "USD", 30}, {50, "USD", 31}, {maxAmount, "USD", 29_000_000_030},
		{1, "JPY", 0}, {10, "JPY", 1}, {6, "JPY", 0}, {7, "JPY", 1}, {1000, "JPY", 29},
		{1000, "KWD", 329}, {1, "BHD", 300},
	} {
		if got := feeOf(test.amount, test.currency); got != test.want {
			t.Errorf("fee of %d %s: %d, want %d", test.amount, test.currency, got, test.want)
		}
	}
}
