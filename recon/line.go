package recon

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

// LineType is what a line of a report is about.
type LineType string

// The types of line. All but a fee moved money of a payment.
const (
	LineCharge        LineType = "charge"         // money taken when the payment was authorized
	LineCapture       LineType = "capture"        // money taken from an authorization
	LineCaptureFailed LineType = "capture_failed" // taken back by the bank, with its fee
	LineRefund        LineType = "refund"
	LineChargeback    LineType = "chargeback"
	LineFee           LineType = "fee" // by itself; other fees stand beside what they're for
)

// sign is that of a line's gross; false when it isn't a type.
func (t LineType) sign() (sign int, ok bool) {
	switch t {
	case LineCharge, LineCapture:
		return 1, true
	case LineCaptureFailed, LineRefund, LineChargeback:
		return -1, true
	case LineFee:
		return 0, true
	}
	return 0, false
}

// Line is one change of the provider's balance: Net = Gross - Fee is what it changed
// by, in minor units of the currency.
type Line struct {
	ID        string // the provider's, the same in every report
	Type      LineType
	Payment   string // the provider's reference of it; "" of a fee for none
	Reference string // the id of the operation that moved the money, "" when it wasn't called by one
	CreatedAt time.Time
	Gross     ledger.Amount
	Fee       ledger.Amount
	Net       ledger.Amount
	Currency  ledger.Unit
}

// Limits of a report. Ask for a shorter period.
const (
	maxLines      = 100_000  // some hundred commits; all of them are in memory
	maxReport     = 32 << 20 // bytes; a line takes about 150
	maxName       = 255      // bytes of an id or a reference
	maxAmountText = 20       // bytes
	minYear       = 2000     // no provider is older
	maxYear       = 9000     // what JSON and the database can write in every zone
	// maxLineAmount is far above any payment; the sum of some dozens of reports still fits
	// 63 bits.
	maxLineAmount = ledger.Amount(1) << 40
)

// columns are the report's, in their order.
var columns = []string{"id", "type", "payment", "reference", "created", "gross", "fee", "net", "currency"}

const (
	colID = iota
	colType
	colPayment
	colReference
	colCreated
	colGross
	colFee
	colNet
	colCurrency
)

// parseReport reads a report to its end: a header, then lines in any order. Amounts
// are in major units. A fee or a net that is left empty is what the other two say. The
// error is ErrReportUnreadable with line and column.
func parseReport(body io.Reader) ([]Line, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxReport+1))
	switch {
	case err != nil:
		return nil, ErrReportUnreadable.Because("it couldn't be read to its end").From(err)
	case len(text) > maxReport:
		return nil, ErrReportUnreadable.Because("more than %d bytes: ask for a shorter period", maxReport)
	}
	in := csv.NewReader(bytes.NewReader(text))
	in.ReuseRecord = true
	header, err := in.Read()
	switch {
	case err == io.EOF:
		return nil, unreadable(1, "", "there's no header")
	case err != nil:
		return nil, notCSV(err)
	case !slices.Equal(header, columns):
		return nil, unreadable(1, "", "the columns must be %s", strings.Join(columns, ","))
	}
	lines := []Line{}
	seen := make(map[string]int) // line numbers by id
	for {
		record, err := in.Read()
		switch {
		case err == io.EOF:
			return lines, nil
		case err != nil:
			return nil, notCSV(err)
		}
		at, _ := in.FieldPos(0)
		l, err := parseLine(at, record)
		switch first := seen[l.ID]; {
		case err != nil:
			return nil, err
		case first != 0:
			return nil, unreadable(at, columns[colID], "line %d has the same", first)
		case len(lines) == maxLines:
			return nil, unreadable(at, "", "more than %d lines: ask for a shorter period", maxLines)
		}
		seen[l.ID] = at
		lines = append(lines, l)
	}
}

// unreadable names the line of the text, from 1, and the column.
func unreadable(line int, column, format string, args ...any) *fault.Error {
	where := "line %d: "
	if column != "" {
		where = "line %d, " + column + ": "
	}
	e := ErrReportUnreadable.Because(where+format, append([]any{line}, args...)...).With("line", line)
	if column != "" {
		e = e.With("column", column)
	}
	return e
}

// notCSV says where the text isn't CSV, or a line hasn't as many columns as it must.
func notCSV(err error) error {
	var e *csv.ParseError
	if !errors.As(err, &e) {
		return ErrReportUnreadable.Because("it isn't CSV").From(err)
	}
	return unreadable(e.Line, "", "%v", e.Err)
}

// parseLine reads the columns of one line.
func parseLine(at int, record []string) (l Line, err error) {
	for i, text := range record {
		if err := checkText(i, text); err != "" {
			return l, unreadable(at, columns[i], "%s", err)
		}
	}
	sign, ok := LineType(record[colType]).sign()
	if !ok {
		return l, unreadable(at, columns[colType], "%q isn't a type of line", record[colType])
	}
	if record[colPayment] == "" && LineType(record[colType]) != LineFee {
		return l, unreadable(at, columns[colPayment], "a %s has a payment", record[colType])
	}
	created, err := time.Parse(time.RFC3339Nano, record[colCreated])
	if err != nil || created.Year() < minYear || created.Year() > maxYear {
		return l, unreadable(at, columns[colCreated], "must be a time such as 2026-11-30T12:00:00Z")
	}
	currency := ledger.Unit(record[colCurrency])
	exponent, ok := currency.Exponent()
	if !ok {
		return l, unreadable(at, columns[colCurrency], "%q isn't a currency", currency)
	}
	l = Line{
		ID: record[colID], Type: LineType(record[colType]),
		Payment: record[colPayment], Reference: record[colReference], Currency: currency,
		CreatedAt: created.UTC().Truncate(time.Microsecond), // what the database keeps
	}
	return l, l.parseAmounts(at, record, exponent, sign)
}

// checkText holds what is text to what a row and an answer can carry.
func checkText(column int, text string) (problem string) {
	switch {
	case column == colID && text == "":
		return "a line has an id"
	case len(text) > maxName:
		return "too long"
	case strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }):
		return "must be of visible ASCII characters"
	}
	return ""
}

// parseAmounts reads gross, fee and net. They must agree, and go the way that the type
// says.
func (l *Line) parseAmounts(at int, record []string, exponent, sign int) error {
	amounts := [...]*ledger.Amount{&l.Gross, &l.Fee, &l.Net}
	for i, to := range amounts {
		column := colGross + i
		if record[column] == "" {
			continue
		}
		var problem string
		if *to, problem = parseAmount(record[column], exponent); problem != "" {
			return unreadable(at, columns[column], "%q: %s", record[column], problem)
		}
	}
	noFee, noNet := record[colFee] == "", record[colNet] == ""
	switch {
	case record[colGross] == "":
		return unreadable(at, columns[colGross], "is missing")
	case noFee && noNet:
		return unreadable(at, columns[colFee], "is missing, and so is the net that would tell it")
	case noFee:
		l.Fee = l.Gross - l.Net
	case noNet:
		l.Net = l.Gross - l.Fee
	}
	switch {
	case l.Net != l.Gross-l.Fee:
		return unreadable(at, columns[colNet], "%s isn't %s less %s", record[colNet], record[colGross], record[colFee])
	case max(l.Fee, -l.Fee) > maxLineAmount:
		return unreadable(at, columns[colFee], "is too large")
	case max(l.Net, -l.Net) > maxLineAmount:
		return unreadable(at, columns[colNet], "is too large")
	case sign > 0 && l.Gross <= 0:
		return unreadable(at, columns[colGross], "a %s must be above zero", l.Type)
	case sign < 0 && l.Gross >= 0:
		return unreadable(at, columns[colGross], "a %s must be below zero", l.Type)
	case sign == 0 && l.Gross != 0:
		return unreadable(at, columns[colGross], "a %s must have none", l.Type)
	}
	return nil
}

// parseAmount reads major units as minor ones: at most the decimals that the currency
// has, no exponent, no sign but a minus.
func parseAmount(text string, exponent int) (amount ledger.Amount, problem string) {
	const form = "must be a decimal such as -106.00"
	whole, decimals, point := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	switch {
	case len(text) > maxAmountText || !digits(whole) || point && !digits(decimals):
		return 0, form
	case len(decimals) > exponent:
		return 0, "has more decimals than the currency"
	}
	d, err := decimal.NewFromString(text)
	if err != nil {
		return 0, form
	}
	minor := d.Shift(int32(exponent))
	if minor.Abs().GreaterThan(decimal.NewFromInt(int64(maxLineAmount))) {
		return 0, "is too large"
	}
	return ledger.Amount(minor.IntPart()), ""
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
