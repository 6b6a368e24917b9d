package sale

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

const reportHead = "id,type,payment,reference,created,gross,fee,net,currency\n"

func reportLine(id, kind, reference, gross, fee string) string {
	return fmt.Sprintf("%s,%s,pay_1,%s,2026-11-30T12:00:00Z,%s,%s,0,USD\n", id, kind, reference, gross, fee)
}

func TestChargesByOrder(t *testing.T) {
	t.Parallel()
	orders := []Order{
		{ID: "once", Status: "captured", Total: Money{10600, "USD"}, Operations: []Operation{{ID: "c1", Kind: "capture", Status: "succeeded"}}},
		{ID: "twice", Status: "captured", Total: Money{10600, "USD"}, Operations: []Operation{
			{ID: "c2", Kind: "capture", Status: "succeeded"}, {ID: "c3", Kind: "capture", Status: "succeeded"}}},
		{ID: "returned", Status: "captured", Total: Money{500, "USD"}, Operations: []Operation{
			{ID: "c4", Kind: "authorize", Status: "succeeded"}, {ID: "c5", Kind: "authorize", Status: "succeeded"},
			{ID: "r5", Kind: "refund", Status: "succeeded"}}},
		{ID: "failed", Status: "cancelled", Total: Money{700, "USD"}, Operations: []Operation{{ID: "c6", Kind: "capture", Status: "declined"}}},
		{ID: "denied", Status: "pending", Total: Money{800, "USD"}, Operations: []Operation{{ID: "c7", Kind: "authorize", Status: "declined"}}},
		{ID: "unknown", Status: "pending", Total: Money{900, "USD"}, Operations: []Operation{{ID: "c8", Kind: "authorize", Status: "unknown"}}},
	}
	rows, err := parseReport([]byte(reportHead +
		reportLine("t1", "capture", "c1", "106.00", "3.37") +
		reportLine("t2", "capture", "c2", "106.00", "3.37") + reportLine("t3", "capture", "c3", "106.00", "3.37") +
		reportLine("t4", "charge", "c4", "5.00", "0.45") + reportLine("t5", "charge", "c5", "5.00", "0.45") + reportLine("t6", "refund", "r5", "-5.00", "0.00") +
		reportLine("t7", "capture", "c6", "7.00", "0.50") + reportLine("t8", "capture_failed", "c6", "-7.00", "-0.50") +
		reportLine("t9", "charge", "c7", "8.00", "0.53") +
		reportLine("t10", "charge", "nobody's", "9.00", "0.56") +
		reportLine("t11", "charge", "c8", "9.00", "0.56") +
		reportLine("t12", "chargeback", "", "-1.00", "0.00")))
	if err != nil {
		t.Fatal(err)
	}
	charges := (&Settlement{Rows: rows}).Charges(orders)
	for order, want := range map[string]charge{
		"once": {1, 10600, 0}, "twice": {2, 21200, 0}, "returned": {2, 1000, 500}, "failed": {0, 0, 0},
		"denied": {1, 800, 0}, "unknown": {1, 900, 0}, "no such": {},
	} {
		if got := charges.of(order); got != want {
			t.Errorf("%s: %+v, want %+v", order, got, want)
		}
	}
	if charges.Ahead != 1 {
		t.Errorf("%d rows ahead, want that of the unknown one", charges.Ahead)
	}
	if n := charges.Double(orders); n != 1 {
		t.Errorf("%d charged twice, want 1", n)
	}
	var lost []string
	for _, row := range charges.Lost {
		lost = append(lost, row.ID)
	}
	if got := strings.Join(lost, " "); got != "t10 t9" {
		t.Errorf("lost: %s", got)
	}
}

func TestReportThatCantBeRead(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"":                          "empty",
		"id,type\n":                 "no column reference",
		reportHead + "t1,capture\n": "wrong number of fields",
		reportHead + reportLine("t1", "capture", "c1", "1.005", "0.00"): "line 2: 1.005 has more than two decimals",
		reportHead + reportLine("t1", "capture", "c1", "1.00", "x"):     "line 2",
	} {
		if _, err := parseReport([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

// A report that is too long for one call goes in several, each with the header.
func TestReconcileInParts(t *testing.T) {
	t.Parallel()
	var calls []int
	keys := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !strings.HasPrefix(string(body), "head\n") || r.Header.Get("Content-Type") != "text/csv" {
			t.Errorf("%v: %.20q", err, body)
		}
		n := strings.Count(string(body), "\n") - 1
		calls = append(calls, n)
		keys[r.Header.Get("Idempotency-Key")] = true
		fmt.Fprintf(w, `{"lines":%d,"matched":%d,"unexplained":1,"by_result":{"matched":%d}}`, n, n-1, n-1)
	}))
	defer server.Close()
	s := Settlement{text: []byte("head\n" + strings.Repeat("x\n", chunk+5))}
	r, err := s.Reconcile(t.Context(), server.URL, "k")
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(calls) != fmt.Sprint([]int{chunk, 5}) || len(keys) != 2 {
		t.Errorf("parts of %v lines under %v", calls, keys)
	}
	if r.Lines != chunk+5 || r.Matched != chunk+3 || r.Unexplained != 2 || r.ByResult["matched"] != chunk+3 {
		t.Errorf("%+v", r)
	}
}

func TestListReadsAllPages(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RawQuery {
		case "event=e&limit=500":
			io.WriteString(w, `{"data":[1,2],"next_cursor":"more&more"}`)
		case "cursor=more%26more":
			io.WriteString(w, `{"data":[3],"next_cursor":null}`)
		default:
			http.Error(w, r.URL.RawQuery, http.StatusBadRequest)
		}
	}))
	defer server.Close()
	all, err := List[int](t.Context(), server.URL, "/list", url.Values{"event": {"e"}})
	if err != nil || fmt.Sprint(all) != "[1 2 3]" {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := List[int](t.Context(), server.URL, "/list", url.Values{"event": {"f"}}); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("got %v", err)
	}
}
