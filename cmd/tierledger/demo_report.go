package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/tierledger/tierledger/internal/sale"
)

// tellSale prints the report of a sale, a fact a line.
func tellSale(w io.Writer, r sale.Report) {
	line := lineTo(w)
	line("buyers", int64(r.Arrived), "arrived; %s of them held tickets at some time", thousands(int64(r.Served)))
	line("tickets", r.Capacity, "on sale; at most %s were held at one time", thousands(r.Peak))
	line("  sold", r.Sold, "")
	line("  held", r.Held, "by payments whose outcome isn't known")
	line("  left", r.Left, "")
	line("holds", r.Placed, "placed")
	line("  released", r.Released, "")
	line("  expired", r.Expired, "and nobody tried to pay")
	line("refused", r.Refused, "requests")
	byNumber(r.Refusals, func(code string, n int64) { line("", n, "%s", code) })
	line("replayed", r.Replayed, "repeats, each with its first answer")
	line("requests", r.Requests, "in %.1f s, %s/s; answered in %s (p50), %s (p95), %s (p99)", r.Took.Seconds(),
		thousands(int64(float64(r.Requests)/r.Took.Seconds())), milliseconds(r.P50), milliseconds(r.P95), milliseconds(r.P99))
	tellSeats(w, r.Seating)
	tellMoney(w, r)
	if r.OK() {
		line("agreement", int64(r.Readings), "readings of the availability, each equal to the buyers' receipts")
		if r.Seating.All > 0 {
			line("", int64(r.Seating.Changes), "changes of seats on the maps that were followed, likewise; every sold seat has one owner")
		}
		return
	}
	line("SURPRISES", int64(r.SurpriseCount), "")
	for _, s := range r.Surprises {
		fmt.Fprintf(w, "      %s\n", s)
	}
}

// tellSeats prints what became of the assigned seats, if there are any.
func tellSeats(w io.Writer, s sale.Seats) {
	if s.All == 0 {
		return
	}
	line := lineTo(w)
	line("seats", s.All, "assigned; %s were sold and %s held at the end", thousands(s.Sold), thousands(s.Held))
	line("  chosen", s.Named, "holds of seats chosen on the map; %s times they were gone, and others were chosen", thousands(s.ChoseAgain))
	line("  best", s.Best, "holds of the best available; %s of parties who would sit apart, and do", thousands(s.Apart))
	line("map", int64(s.Readings), "times read as a whole, %s times still the same; followed by %d, who hung up and resumed %s times",
		thousands(int64(s.NotModified)), s.Readers, thousands(int64(s.Resumed)))
	if s.Gaps > 0 {
		line("", int64(s.Gaps), "times too far behind to go on: the map was read anew")
	}
}

// tellMoney prints what became of the payments.
func tellMoney(w io.Writer, r sale.Report) {
	line := lineTo(w)
	orders := int64(0)
	for _, n := range r.Orders {
		orders += n
	}
	line("orders", orders, "payments answered in %s (p50), %s (p99), the provider's time included",
		milliseconds(r.PayP50), milliseconds(r.PayP99))
	byNumber(r.Orders, func(status string, n int64) { line("", n, "%s", status) })
	line("paid late", r.Honoured+r.GivenBack, "when the order had been given up: %s got tickets, %s got the money back",
		thousands(r.Honoured), thousands(r.GivenBack))
	fmt.Fprintf(w, "%-12s %16s %16s\n", "money", "debit", "credit")
	for _, a := range r.Accounts {
		fmt.Fprintf(w, "%-12s %16s %16s  %s %s\n", "", major(a.Debit), major(a.Credit), a.Unit, a.Account)
	}
	line("report", r.Reconciled.Lines, "lines of the provider's settlement report; %s matched, %s unexplained",
		thousands(r.Reconciled.Matched), thousands(r.Reconciled.Unexplained))
	line("charged once", r.Paid, "buyers, all whose order is paid for")
	open := int64(0)
	for _, n := range r.Undecided {
		open += n
	}
	line("open", open, "steps that wait by design")
	byNumber(r.Undecided, func(what string, n int64) {
		line("", n, "%s: %s", what, cmp.Or(whyOpen[what], "the service asks again"))
	})
	byNumber(r.Cases, func(reason string, n int64) { line("", n, "case for a person: %s", reason) })
}

// whyOpen says why a step is still open when a demo ends.
var whyOpen = map[string]string{
	"authorize unknown of a pending order":           "the call never came to the provider; the tickets stay until that is proved",
	"authorize sent of a pending order":              "the same, and it's being asked",
	"authorize requires_action of a cancelled order": "a transfer that may still come; its tickets are on sale again",
	"authorize requires_action of a pending order":   "the buyer hasn't acted, and still may",
}

// lineTo writes lines of a name, a number in its column, and what there is to say.
func lineTo(w io.Writer) func(name string, value int64, rest string, args ...any) {
	return func(name string, value int64, rest string, args ...any) {
		text := fmt.Sprintf("%-12s %9s", name, thousands(value))
		if rest != "" {
			text += "  " + fmt.Sprintf(rest, args...)
		}
		fmt.Fprintln(w, text)
	}
}

// byNumber tells the most frequent first; of equal ones, in the order of the alphabet.
func byNumber(counts map[string]int64, tell func(name string, n int64)) {
	for _, name := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	}) {
		tell(name, counts[name])
	}
}

// major writes minor units of a currency with two decimals; nothing as nothing.
func major(amount int64) string {
	if amount == 0 {
		return ""
	}
	return fmt.Sprintf("%s.%02d", thousands(amount/100), amount%100)
}

// milliseconds is how latencies are written.
func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1000) }

// thousands writes a whole number with commas between groups of three digits.
func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
