package recon

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
)

const header = "id,type,payment,reference,created,gross,fee,net,currency\n"

func TestParseReport(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{ // want: gross fee net currency
		"dollars":                                 {"t1,capture,p1,r1,2026-11-30T12:00:00Z,106.00,3.37,102.63,USD", "10600 337 10263 USD"},
		"yen have no decimals":                    {"t1,capture,p1,r1,2026-11-30T12:00:00Z,10000,290,9710,JPY", "10000 290 9710 JPY"},
		"dinars have three":                       {"t1,capture,p1,r1,2026-11-30T12:00:00Z,10.600,0.607,9.993,KWD", "10600 607 9993 KWD"},
		"fewer decimals than there are":           {"t1,capture,p1,r1,2026-11-30T12:00:00Z,10,0.6,9.4,KWD", "10000 600 9400 KWD"},
		"P41 a dispute's fee of its own currency": {"t1,fee,p1,,2026-11-30T12:00:00Z,0.00,15.00,-15.00,USD", "0 1500 -1500 USD"},
		"P47 the fee is absent":                   {"t1,capture,p1,r1,2026-11-30T12:00:00Z,106.00,,102.63,USD", "10600 337 10263 USD"},
		"P47 the net is absent":                   {"t1,capture,p1,r1,2026-11-30T12:00:00Z,106.00,3.37,,USD", "10600 337 10263 USD"},
		"a fee that comes back":                   {"t1,capture_failed,p1,r1,2026-11-30T12:00:00Z,-106.00,-3.37,-102.63,USD", "-10600 -337 -10263 USD"},
		"a refund that costs":                     {"t1,refund,p1,r1,2026-11-30T12:00:00Z,-53.00,0.25,-53.25,USD", "-5300 25 -5325 USD"},
		"a fee for no payment":                    {"t1,fee,,,2026-11-30T12:00:00Z,0,1.00,-1.00,USD", "0 100 -100 USD"},
		"less than one":                           {"t1,chargeback,p1,,2026-11-30T12:00:00Z,-0.01,0.00,-0.01,USD", "-1 0 -1 USD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, err := parseReport(strings.NewReader(header + c.text + "\n"))
			if err != nil || len(lines) != 1 {
				t.Fatalf("%v %v", lines, err)
			}
			l := lines[0]
			if got := fmt.Sprint(l.Gross, " ", l.Fee, " ", l.Net, " ", l.Currency); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestParseReportKeepsWhatALineSays(t *testing.T) {
	t.Parallel()
	text := header +
		"t1,capture,p1,r1,2026-11-30T12:00:00.123456789Z,106.00,3.37,102.63,USD\r\n" +
		"\n" +
		"\"t2\",chargeback,p1,,2026-11-30T13:00:00+01:00,-106.00,0.00,-106.00,USD\n"
	got, err := parseReport(strings.NewReader(text))
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	want := []Line{
		{"t1", LineCapture, "p1", "r1", at.Add(123456 * time.Microsecond), 10600, 337, 10263, "USD"},
		{"t2", LineChargeback, "p1", "", at, -10600, 0, -10600, "USD"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if lines, err := parseReport(strings.NewReader(header)); err != nil || len(lines) != 0 {
		t.Errorf("of a time in which nothing happened: %v, %v", lines, err)
	}
}

// Every refusal names the line, and the column where it's one.
func TestParseReportRefuses(t *testing.T) {
	t.Parallel()
	const good = "t1,capture,p1,r1,2026-11-30T12:00:00Z,106.00,3.37,102.63,USD\n"
	line := func(column, text string) string {
		fields := strings.Split(strings.TrimSpace(good), ",")
		for i, name := range columns {
			if name == column {
				fields[i] = text
			}
		}
		return header + "t0,fee,,,2026-11-30T12:00:00Z,0.00,1.00,-1.00,USD\n" + strings.Join(fields, ",") + "\n"
	}
	for name, c := range map[string]struct {
		text   string
		line   any
		column any
	}{
		"nothing":                  {"", 1, nil},
		"no header":                {good, 1, nil},
		"another order":            {"type,id" + strings.TrimPrefix(header, "id,type") + good, 1, nil},
		"a column too many":        {header + strings.TrimSpace(good) + ",x\n", 2, nil},
		"a column too few":         {header + good + "t2,capture\n", 3, nil},
		"a quote that isn't ended": {header + good + "\"t2,capture", 3, nil},
		"the same id twice":        {header + good + good, 3, "id"},
		"no id":                    {line("id", ""), 3, "id"},
		"an id too long":           {line("id", strings.Repeat("x", maxName+1)), 3, "id"},
		"an id of two lines":       {line("id", "\"t\n1\""), 3, "id"},
		"an id with a space":       {line("id", "t 1"), 3, "id"},
		"a NUL":                    {line("payment", "p\x00"), 3, "payment"},
		"not ASCII":                {line("reference", "ré"), 3, "reference"},
		"an unknown type":          {line("type", "payout"), 3, "type"},
		"a capture of no payment":  {line("payment", ""), 3, "payment"},
		"a date":                   {line("created", "2026-11-30"), 3, "created"},
		"before there was money":   {line("created", "0000-01-01T00:00:00+23:00"), 3, "created"},
		"an unknown currency":      {line("currency", "usd"), 3, "currency"},
		"a memo unit":              {line("currency", "USD.AUTH"), 3, "currency"},
		"half a cent":              {line("gross", "106.005"), 3, "gross"},
		"an exponent":              {line("gross", "1e2"), 3, "gross"},
		"a huge exponent":          {line("gross", "1e999999999"), 3, "gross"},
		"a plus":                   {line("gross", "+106.00"), 3, "gross"},
		"two minuses":              {line("gross", "--106.00"), 3, "gross"},
		"a group mark":             {line("gross", "\"1,06.00\""), 3, "gross"},
		"no digit before":          {line("gross", ".50"), 3, "gross"},
		"no digit behind":          {line("gross", "106."), 3, "gross"},
		"too large":                {line("gross", "10995116277.77"), 3, "gross"},
		"no gross":                 {line("gross", ""), 3, "gross"},
		"a capture below zero":     {header + "t1,capture,p1,r1,2026-11-30T12:00:00Z,-1.00,0.00,-1.00,USD\n", 2, "gross"},
		"a refund above zero":      {header + "t1,refund,p1,r1,2026-11-30T12:00:00Z,1.00,0.00,1.00,USD\n", 2, "gross"},
		"a fee with a gross":       {header + "t1,fee,p1,,2026-11-30T12:00:00Z,-15.00,0.00,-15.00,USD\n", 2, "gross"},
		"a net that isn't":         {line("net", "102.62"), 3, "net"},
		"a net too large":          {header + "t1,capture,p1,r1,2026-11-30T12:00:00Z,10995116277.76,-0.01,,USD\n", 2, "net"},
		"neither fee nor net":      {header + "t1,refund,p1,r1,2026-11-30T12:00:00Z,-1.00,,,USD\n", 2, "fee"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseReport(strings.NewReader(c.text))
			e := fault.As(err)
			if e == nil || e.Def != ErrReportUnreadable {
				t.Fatalf("%v", err)
			}
			var line, column any
			for _, f := range e.Fields {
				switch f.Name {
				case "line":
					line = f.Value
				case "column":
					column = f.Value
				}
			}
			if line != c.line || column != c.column {
				t.Errorf("%v %v: %v", line, column, err)
			}
		})
	}
}

func TestParseReportLimits(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var b strings.Builder
		b.WriteString(header)
		for i := range n {
			fmt.Fprintf(&b, "t%d,fee,,,2026-11-30T12:00:00Z,0,1,-1,JPY\n", i)
		}
		return b.String()
	}
	if lines, err := parseReport(strings.NewReader(many(maxLines))); err != nil || len(lines) != maxLines {
		t.Errorf("%d lines, %v", len(lines), err)
	}
	if _, err := parseReport(strings.NewReader(many(maxLines + 1))); fault.As(err) == nil {
		t.Errorf("a line too many: %v", err)
	}
	if _, err := parseReport(io.LimitReader(endless{}, maxReport+1)); fault.As(err) == nil {
		t.Errorf("a byte too many: %v", err)
	}
	if _, err := parseReport(iotest.ErrReader(io.ErrUnexpectedEOF)); fault.As(err) == nil {
		t.Errorf("a report that ends before its end: %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Whatever is read comes to what the text says, and what it's written as reads the same.
func FuzzParseReport(f *testing.F) {
	f.Add("t1,capture,p1,r1,2026-11-30T12:00:00Z,106.00,3.37,102.63,USD\n")
	f.Add("t1,fee,p1,,2026-11-30T12:00:00Z,0.00,15.00,,USD\nt2,refund,p1,r,2026-11-30T12:00:00.5+01:00,-10.600,,-10.6,KWD\n")
	f.Add("t1,capture_failed,p1,r1,2026-11-30T12:00:00Z,-10000,-290,-9710,JPY\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		lines, err := parseReport(strings.NewReader(header + text))
		if err != nil {
			if e := fault.As(err); e == nil || e.Def != ErrReportUnreadable {
				t.Fatal(err)
			}
			return
		}
		var again strings.Builder
		again.WriteString(header)
		for _, l := range lines {
			if l.Net != l.Gross-l.Fee || l.ID == "" {
				t.Errorf("%+v", l)
			}
			fmt.Fprintf(&again, "%s,%s,%s,%s,%s,%s,%s,%s,%s\n", quoted(l.ID), l.Type, quoted(l.Payment), quoted(l.Reference),
				l.CreatedAt.Format(time.RFC3339Nano), major(l.Gross, l.Currency), major(l.Fee, l.Currency),
				major(l.Net, l.Currency), l.Currency)
			// The row can be made an entry.
			asJSON((&verdict{Line: l}).booked())
		}
		got, err := parseReport(strings.NewReader(again.String()))
		if err != nil || !reflect.DeepEqual(got, lines) {
			t.Errorf("%v, then %v\n%v", err, lines, got)
		}
	})
}

func quoted(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// major writes minor units without the parser's means.
func major(a ledger.Amount, currency ledger.Unit) string {
	exponent, _ := currency.Exponent()
	minus := ""
	if a < 0 {
		minus, a = "-", -a
	}
	text := fmt.Sprintf("%0*d", exponent+1, int64(a))
	if exponent == 0 {
		return minus + text
	}
	return minus + text[:len(text)-exponent] + "." + text[len(text)-exponent:]
}
