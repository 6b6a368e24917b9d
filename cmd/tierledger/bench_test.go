package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/internal/bench"
)

func TestBenchSale(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := execute(t, "bench", "sale", "--purchases", "40", "--clients", "4", "--duration", "200ms",
		"--authorize-ms", "3", "--json")
	var report bench.SaleReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	if report.Captured != 40 || report.AuthorizeMS != 3 || !report.Verified {
		t.Errorf("%s", stdout)
	}
}

func TestSaleTable(t *testing.T) {
	t.Parallel()
	table := saleTable(bench.SaleReport{
		Clients: 8, Rate: 300, Faults: 0.2, AuthorizeMS: 20, Purchases: 1234, PurchasesPerS: 300, Late: new(int64(5)),
		Dropped: new(int64(6)), Refused: map[string]int64{"sold_out": 7}, Unsettled: 3, Verified: true,
	})
	for _, text := range []string{"open loop of 300 purchases/s", "20 % faults", "1,234 purchases", "5 began late, 6 were dropped",
		"refused: 7 sold_out", "3 without outcome", "every invariant holds"} {
		if !strings.Contains(table, text) {
			t.Errorf("the table doesn't say %q:\n%s", text, table)
		}
	}
	for line := range strings.Lines(table) {
		if len(line) > 100 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}
