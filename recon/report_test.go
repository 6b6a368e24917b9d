package recon_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/recon"
)

// P41: three currencies, a refund, and a chargeback of yen whose fee is in dollars.
func TestImport(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.sell("a", 10600, "USD")
	pay, _ := s.sell("b", 10000, "JPY")
	s.dispute(pay, 600, "JPY", true)
	pay, _ = s.sell("c", 10600, "KWD")
	s.refund("c", pay, 1, "KWD")
	text := s.report("")

	r := s.imports(text)
	if r.Provider != "sim" || r.Lines != 6 || r.Matched != 6 || r.Booked != 6 || r.Unexplained != 0 || len(r.Differences) != 0 {
		t.Errorf("%+v", r)
	}
	if want := map[recon.Result]int{recon.Matched: 6}; !maps.Equal(r.ByResult, want) {
		t.Errorf("%v", r.ByResult)
	}
	usd, jpy, kwd := s.journals["USD"], s.journals["JPY"], s.journals["KWD"]
	want := fmt.Sprintf("%d: 337 USD, %d: 290 JPY, %d: 1500 USD, %d: 607 KWD", usd, jpy, jpy, kwd)
	if got := s.fees(); got != want {
		t.Errorf("fees %s, want %s", got, want)
	}
	// The money itself wasn't posted in this test: the ledger has the fees alone.
	balance := []recon.Balance{
		{Report: money(10000-290-600, "JPY"), Ledger: money(-290, "JPY")},
		{Report: money(10600-607-1, "KWD"), Ledger: money(-607, "KWD")},
		{Report: money(10600-337-1500, "USD"), Ledger: money(-337-1500, "USD")},
	}
	if fmt.Sprint(r.Balance) != fmt.Sprint(balance) {
		t.Errorf("balance %v, want %v", r.Balance, balance)
	}

	// The same again, by somebody else, changes nothing.
	entries := s.entries()
	again, err := s.Import(t.Context(), "somebody else", "sim", strings.NewReader(text))
	if err != nil || again.Booked != 0 || again.Matched != 6 || s.entries() != entries || s.fees() != want {
		t.Errorf("%+v, %v", again, err)
	}
}

func money(amount ledger.Amount, currency ledger.Unit) buckets.Money {
	return buckets.Money{Amount: amount, Currency: currency}
}

// P43: periods are half open, so adjacent reports have each line once; overlapping ones
// book it once. What is missing between two reports isn't forgotten.
func TestImportsOfAdjacentAndOverlappingPeriods(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for _, key := range []string{"a", "b", "c", "d"} { // at 12:00, 13:00, 14:00, 15:00
		s.sell(key, 10600, "USD")
	}
	told := time.Date(2026, 11, 30, 13, 30, 0, 0, time.UTC)
	lost := recon.Operation{ID: ledger.NewID(s.journals["USD"], "capture", "lost"), Kind: "capture", Status: "succeeded",
		Provider: "sim", Payment: "pay_lost", Amount: money(500, "USD"), ToldAt: &told}
	s.books.add(lost)

	first := s.imports(s.report("to=2026-11-30T14:00:00Z"))
	if first.Lines != 2 || first.Booked != 2 || first.Unexplained != 0 || first.ByResult[recon.Timing] != 3 {
		t.Errorf("12:00 to 14:00: %+v", first)
	}
	second := s.imports(s.report("from=2026-11-30T14:00:00Z&to=2026-11-30T16:00:00%2B01:00"))
	if second.Lines != 1 || second.Booked != 1 || second.ByResult[recon.Timing] != 1 || second.Unexplained != 1 ||
		second.Differences[0].Result != recon.MissingThere || *second.Differences[0].OperationID != lost.ID {
		t.Errorf("14:00 to 15:00: %+v", second)
	}
	overlapping := s.imports(s.report("from=2026-11-30T13:00:00Z"))
	if overlapping.Lines != 3 || overlapping.Booked != 1 || overlapping.Unexplained != 1 || overlapping.ByResult[recon.Timing] != 0 {
		t.Errorf("from 13:00: %+v", overlapping)
	}
	entries := s.entries()
	all := s.imports(s.report(""))
	if all.Lines != 4 || all.Matched != 4 || all.Booked != 0 || s.entries() != entries {
		t.Errorf("all: %+v", all)
	}
	// Looked at again, the first report is known to end before the second.
	if again := s.imports(s.report("to=2026-11-30T14:00:00Z")); again.Unexplained != 1 || again.ByResult[recon.Timing] != 0 {
		t.Errorf("12:00 to 14:00 again: %+v", again)
	}
	if want := fmt.Sprintf("%d: %d USD", s.journals["USD"], 4*337); s.fees() != want {
		t.Errorf("fees %s, want %s", s.fees(), want)
	}
}

// P46, P47: one cent short is a difference, and its fee is booked all the same, told or
// not.
func TestImportShowsDifferences(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	_, capture := s.sell("a", 10600, "USD")
	text := strings.Replace(s.report(""), ",106.00,3.37,102.63,", ",105.99,,102.62,", 1)
	r := s.imports(text)
	if r.Matched != 0 || r.Booked != 1 || r.Unexplained != 1 || len(r.Differences) != 1 {
		t.Fatalf("%+v", r)
	}
	d := r.Differences[0]
	if d.LineID != "txn_00000001" || *d.OperationID != capture || d.Result != recon.AmountDiffers ||
		*d.Ours != money(10600, "USD") || *d.Theirs != money(10599, "USD") {
		t.Errorf("%+v %v %v", d, d.Ours, d.Theirs)
	}
	if want := fmt.Sprintf("%d: 337 USD", s.journals["USD"]); s.fees() != want {
		t.Errorf("fees %s, want %s", s.fees(), want)
	}
}

// What is unexplained is counted, and the first of it is listed.
func TestImportListsTheFirstDifferences(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	var text strings.Builder
	text.WriteString(header)
	const n = 1201
	for i := range n {
		fmt.Fprintf(&text, "t%04d,charge,theirs_%d,,2026-11-30T12:00:00Z,10.00,0.01,9.99,USD\n", i, i)
	}
	r := s.imports(text.String())
	if r.Lines != n || r.Booked != n || r.Unexplained != n || r.ByResult[recon.MissingHere] != n || len(r.Differences) != 100 ||
		r.Differences[99].LineID != "t0099" {
		t.Errorf("%d lines, %d booked, %d unexplained, %d listed", r.Lines, r.Booked, r.Unexplained, len(r.Differences))
	}
	if entries := s.entries(); entries != 3 {
		t.Errorf("%d entries", entries)
	}
	if want := fmt.Sprintf("0: %d USD", n); s.fees() != want {
		t.Errorf("fees %s, want %s", s.fees(), want)
	}
}

// P20: a payment that becomes known after its report. Its lines stay where their fees
// were booked, and are judged anew.
func TestImportAgainAfterThePaymentBecameKnown(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	pay, _ := s.sell("a", 10600, "USD")
	s.dispute(pay, 600, "USD", true)
	list := s.books.list
	s.books.list = nil
	text := s.report("")
	if r := s.imports(text); r.Booked != 3 || r.ByResult[recon.MissingHere] != 3 {
		t.Errorf("%+v", r)
	}
	fees := s.fees()
	s.books.list = list
	r := s.imports(text)
	if r.Booked != 0 || r.Matched != 3 || s.entries() != 2 || s.fees() != fees || fees != "0: 1837 USD" {
		t.Errorf("%+v, fees %s, then %s", r, fees, s.fees())
	}
	want := "txn_00000001 in 0 matched +, txn_00000002 in 0 matched +, txn_00000002_fee in 0 matched"
	if got := s.lines(); got != want {
		t.Errorf("lines %s, want %s", got, want)
	}
}

// P34: every change of an operation is seen by the next import, forth and back, once.
func TestImportAgainAfterOperationsChanged(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	_, capture := s.sell("a", 10600, "USD")
	status := func(status string) {
		s.books.change(capture, func(o *recon.Operation) { o.Status = status })
	}
	text := s.report("")
	for i, step := range []struct {
		status string
		want   recon.Result
		booked int
	}{
		{"unknown", recon.Unsettled, 1}, {"succeeded", recon.Matched, 0}, {"unknown", recon.Unsettled, 0},
		{"succeeded", recon.Matched, 0},
	} {
		status(step.status)
		for range 2 {
			r := s.imports(text)
			if r.ByResult[step.want] != 1 || r.Booked != step.booked || s.entries() != i+1 {
				t.Errorf("step %d: %+v, %d entries", i, r, s.entries())
			}
			step.booked = 0
		}
	}
	if want := fmt.Sprintf("%d: 337 USD", s.journals["USD"]); s.fees() != want {
		t.Errorf("fees %s, want %s", s.fees(), want)
	}
}

// The bank's changes of mind have lines and fees of their own.
func TestImportOfACaptureThatFailedAfterwards(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	pay, capture := s.sell("a", 10600, "USD")
	s.post("/payments/"+pay+"/fail", "")
	told := s.clock
	s.books.change(capture, func(o *recon.Operation) { o.Status, o.ToldAt = "declined", &told })
	r := s.imports(s.report(""))
	if r.Lines != 2 || r.Matched != 2 || r.Unexplained != 0 || r.Balance[0].Report != money(0, "USD") {
		t.Errorf("%+v", r)
	}
	if want := ""; s.fees() != want { // they cancel out
		t.Errorf("fees %s, want %q", s.fees(), want)
	}
}

func TestImportRefuses(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.sell("a", 10600, "USD")
	text := s.report("")
	for _, name := range []string{"", "a:b", "Sim", strings.Repeat("x", 33)} {
		if _, err := s.Import(t.Context(), "finance", name, strings.NewReader(text)); fault.As(err) == nil || fault.As(err).Def != fault.ErrInvalidRequest {
			t.Errorf("provider %q: %v", name, err)
		}
	}
	broken := text + "t2,refund,p1,,2026-11-30T12:00:00Z,53.00,0.00,53.00,USD\n"
	if _, err := s.Import(t.Context(), "finance", "sim", strings.NewReader(broken)); fault.As(err) == nil || fault.As(err).Def != recon.ErrReportUnreadable {
		t.Errorf("%v", err)
	}
	if s.entries() != 0 {
		t.Error("a report that can't be read was booked in part")
	}
	s.imports(text)
	// History doesn't change: what was told of a line stays.
	other := header + "t9,fee,,,2026-11-30T12:00:00Z,0,1.00,-1.00,USD\n" +
		strings.TrimPrefix(strings.Replace(text, ",106.00,3.37,102.63,", ",106.00,3.36,102.64,", 1), header)
	_, err := s.Import(t.Context(), "finance", "sim", strings.NewReader(other))
	if e := fault.As(err); e == nil || e.Def != recon.ErrReportContradicts || e.Fields[0].Value != "txn_00000001" {
		t.Errorf("%v", err)
	}
	if s.entries() != 1 {
		t.Error("a report that contradicts was booked in part")
	}
	if r := s.imports(header); r.Lines != 0 || len(r.Balance) != 1 || r.Balance[0].Ledger != money(-337, "USD") {
		t.Errorf("an empty report: %+v", r)
	}
}

// Of many imports at once, in many processes, each line is booked by one.
func TestImportsAtOnce(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	for i := range 6 {
		s.sell(fmt.Sprint(i), 10600, []ledger.Unit{"USD", "JPY", "KWD"}[i%3])
	}
	texts := []string{s.report(""), s.report("from=2026-11-30T14:00:00Z"), s.report("to=2026-11-30T16:00:00Z")}
	booked := make([]int, 9)
	var all sync.WaitGroup
	processes := []*recon.Reports{s.Reports, s.process(s.db.ServiceURL()), s.process(s.db.ServiceURL())}
	for i := range booked {
		all.Go(func() {
			r, err := processes[i%3].Import(t.Context(), "finance", "sim", strings.NewReader(texts[i/3]))
			if err != nil {
				t.Error(err)
			}
			booked[i] = r.Booked
		})
	}
	all.Wait()
	sum := 0
	for _, n := range booked {
		sum += n
	}
	if rows := one[int](s, `SELECT count(*) FROM report_lines WHERE result = 'matched'`); sum != 6 || rows != 6 {
		t.Errorf("booked %v, %d rows", booked, rows)
	}
}

// One import at a time: who can't wait for it is told to come again.
func TestImportWaitsItsTurn(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	s.sell("a", 10600, "USD")
	text := s.report("")
	s.books.entered, s.books.leave = make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		_, err := s.Import(t.Context(), "finance", "sim", strings.NewReader(text))
		first <- err
	}()
	<-s.books.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Import(ctx, "finance", "sim", strings.NewReader(text))
	if e := fault.As(err); e == nil || e.Def != ledger.ErrOverloaded || e.RetryAfter == 0 {
		t.Errorf("%v", err)
	}
	close(s.books.leave)
	if err := <-first; err != nil || s.entries() != 1 {
		t.Errorf("%v, %d entries", err, s.entries())
	}
}

// A connection that dies before or after the commit: the lines are booked once, and
// counted.
func TestImportOverALostConnection(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*pgtest.Proxy) <-chan struct{}{
		"before the write": (*pgtest.Proxy).LoseNextWrite,
		"after the commit": (*pgtest.Proxy).LoseNextAnswer,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			s.sell("a", 10600, "USD")
			proxy := pgtest.NewProxy(t, s.db)
			s.Reports = s.process(proxy.ServiceURL(t, s.db))
			hit := lose(proxy)
			r := s.imports(s.report(""))
			<-hit
			again := s.imports(s.report(""))
			if r.Matched != 1 || again.Booked != 0 || s.entries() != 1 {
				t.Errorf("%+v, then %+v", r, again)
			}
		})
	}
}

// The checks find what a wrong program or person could do to the rows.
func TestChecksFindSabotage(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"report_fees_booked":                       `UPDATE report_lines SET fee = fee + 1, net = net - 1`,
		"report_lines_recorded":                    `UPDATE report_lines SET result = 'unsettled'`,
		"report_lines_once":                        `INSERT INTO report_lines SELECT 0, provider, line_id, type, payment, operation_id, created_at, gross, fee, net, currency, result, version FROM report_lines`,
		"report_lines_recorded, a line lost":       `DELETE FROM report_lines`,
		"report_lines_recorded, a line invented":   `INSERT INTO report_lines SELECT journal_id, provider, 'invented', type, payment, operation_id, created_at, gross, 0, gross, currency, result, version FROM report_lines`,
		"report_lines_recorded, another version":   `UPDATE report_lines SET version = version - 1`,
		"report_lines_recorded, another operation": `UPDATE report_lines SET operation_id = '` + uuid.Nil.String() + `'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openShop(t)
			s.sell("a", 10600, "USD")
			s.imports(s.report(""))
			if err := checked(t.Context(), s.db.URL()); err != nil {
				t.Fatal(err)
			}
			s.db.Tampered()
			if _, err := s.owner.Exec(t.Context(), sql); err != nil {
				t.Fatal(err)
			}
			check, _, _ := strings.Cut(name, ",")
			if err := checked(t.Context(), s.db.URL()); err == nil || !strings.Contains(err.Error(), check) {
				t.Errorf("%s found nothing: %v", check, err)
			}
		})
	}
}
