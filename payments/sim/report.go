package sim

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/tierledger/tierledger/ledger"
)

// reportColumns are the columns of the settlement report. Amounts are in major units,
// with the decimals of their currency; net = gross - fee is what changed the balance.
var reportColumns = []string{"id", "type", "payment", "reference", "created", "gross", "fee", "net", "currency"}

// getReport serves GET /report?from=&to=: the rows created from one time up to, and not
// including, another, so that each row is in just one of adjacent reports.
func (s *Server) getReport(w http.ResponseWriter, r *http.Request) {
	from, err := parseTime("from", r.FormValue("from"))
	if err == nil {
		var to time.Time
		if to, err = parseTime("to", r.FormValue("to")); err == nil {
			s.writeReport(w, from, to)
			return
		}
	}
	refuse(http.StatusBadRequest, "invalid_request", "%v", err).write(w)
}

func (s *Server) writeReport(w http.ResponseWriter, from, to time.Time) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	out := csv.NewWriter(w)
	_ = out.Write(reportColumns) // what can't be written is told by nobody: the caller is gone
	for _, row := range s.rows() {
		if row.Created.Before(from) || !to.IsZero() && !row.Created.Before(to) {
			continue
		}
		_ = out.Write([]string{
			row.ID, row.Type, row.Payment, row.Reference, row.Created.Format(time.RFC3339Nano),
			major(row.Gross, row.Currency), major(row.Fee, row.Currency), major(row.Net, row.Currency),
			string(row.Currency),
		})
	}
	out.Flush()
}

// rows gives the rows so far; they are only ever added to.
func (s *Server) rows() []row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.book.rows)
}

// parseTime reads a border of a period: a time, a date at 00:00 UTC, or none.
func parseTime(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s: must be a time such as 2026-11-30T12:00:00Z, or a date", name)
}

// major writes an amount in major units.
func major(amount ledger.Amount, currency ledger.Unit) string {
	exponent, _ := currency.Exponent()
	return decimal.New(int64(amount), int32(-exponent)).StringFixed(int32(exponent))
}
