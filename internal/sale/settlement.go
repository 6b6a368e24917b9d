package sale

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/shopspring/decimal"
)

// Row is a line of the provider's settlement report. Amounts are in minor units.
type Row struct {
	ID        string
	Type      string // charge, capture, capture_failed, refund, ...
	Reference string // of the operation that moved the money
	Gross     int64
	Fee       int64
	Currency  string
}

// takes tells whether the row took money from a buyer.
func (r *Row) takes() bool { return r.Type == "charge" || r.Type == "capture" }

// Settlement is a provider's own report of the money that it moved.
type Settlement struct {
	Rows []Row
	text []byte // as it came
}

// reportColumns are those that are read here, of a report that may have more.
var reportColumns = []string{"id", "type", "reference", "gross", "fee", "currency"}

// ReadSettlement gets the whole report of the simulated provider below a service's URL.
func ReadSettlement(ctx context.Context, url string) (*Settlement, error) {
	text, err := exchange(ctx, http.MethodGet, url+"/sim/report", "", nil)
	if err != nil {
		return nil, fmt.Errorf("the provider's report: %w", err)
	}
	s := &Settlement{text: text}
	if s.Rows, err = parseReport(text); err != nil {
		return nil, fmt.Errorf("the provider's report: %w", err)
	}
	return s, nil
}

func parseReport(text []byte) ([]Row, error) {
	lines, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, errors.New("it's empty")
	}
	column := map[string]int{}
	for i, name := range lines[0] {
		column[name] = i
	}
	for _, name := range reportColumns {
		if _, ok := column[name]; !ok {
			return nil, fmt.Errorf("it has no column %s", name)
		}
	}
	rows := make([]Row, 0, len(lines)-1)
	for n, line := range lines[1:] {
		r := Row{
			ID: line[column["id"]], Type: line[column["type"]], Reference: line[column["reference"]],
			Currency: line[column["currency"]],
		}
		gross, err := minor(line[column["gross"]])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+2, err)
		}
		fee, err := minor(line[column["fee"]])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n+2, err)
		}
		r.Gross, r.Fee = gross, fee
		rows = append(rows, r)
	}
	return rows, nil
}

// minor reads an amount in major units with two decimals, as all sales here have.
func minor(text string) (int64, error) {
	d, err := decimal.NewFromString(text)
	if err != nil {
		return 0, err
	}
	d = d.Shift(2)
	if !d.IsInteger() {
		return 0, fmt.Errorf("%s has more than two decimals", text)
	}
	return d.IntPart(), nil
}

// Reconciled is what the ledger says of a provider's report.
type Reconciled struct {
	Lines       int64            `json:"lines"`
	Matched     int64            `json:"matched"`
	Unexplained int64            `json:"unexplained"`
	ByResult    map[string]int64 `json:"by_result"`
}

// chunk is how many lines the ledger takes in one report.
const chunk = 100_000

// Reconcile gives the report to the ledger below a service's URL, which matches it line
// by line. A report that's too long goes as several, one after the other.
func (s *Settlement) Reconcile(ctx context.Context, url, key string) (Reconciled, error) {
	all := Reconciled{ByResult: map[string]int64{}}
	head, rest, _ := bytes.Cut(s.text, []byte("\n"))
	lines := slices.Collect(bytes.Lines(rest))
	for n := 0; n == 0 || n < len(lines); n += chunk {
		part := append([]byte(nil), head...)
		part = append(part, '\n')
		part = append(part, bytes.Join(lines[n:min(n+chunk, len(lines))], nil)...)
		text, err := exchange(ctx, http.MethodPost, url+"/v1/recon/reports/sim", fmt.Sprintf("%s-%d", key, n), part)
		var r Reconciled
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			return all, fmt.Errorf("match the provider's report: %w", err)
		}
		all.add(r)
	}
	return all, nil
}

func (r *Reconciled) add(part Reconciled) {
	r.Lines += part.Lines
	r.Matched += part.Matched
	r.Unexplained += part.Unexplained
	for result, n := range part.ByResult {
		r.ByResult[result] += n
	}
}
