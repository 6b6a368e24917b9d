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
	// A line is a name, a number in its column, and what there is to say about it.
	line := func(name string, value int64, rest string, args ...any) {
		text := fmt.Sprintf("%-12s %9s", name, thousands(value))
		if rest != "" {
			text += "  " + fmt.Sprintf(rest, args...)
		}
		fmt.Fprintln(w, text)
	}
	line("buyers", int64(r.Arrived), "arrived; %s of them held tickets at some time", thousands(int64(r.Served)))
	line("tickets", r.Capacity, "on sale; at most %s were held at one time", thousands(r.Peak))
	line("holds", r.Placed, "placed")
	line("  released", r.Released, "")
	line("  expired", r.Expired, "")
	line("left", r.Left, "tickets, as nothing is paid in this version")
	line("refused", r.Refused, "requests")
	// The most frequent refusal first; of equal ones, in the order of the alphabet.
	for _, code := range slices.SortedFunc(maps.Keys(r.Refusals), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.Refusals[b], r.Refusals[a]), cmp.Compare(a, b))
	}) {
		line("", r.Refusals[code], "%s", code)
	}
	line("replayed", r.Replayed, "repeats, each with its first answer")
	line("requests", r.Requests, "in %.1f s, %s/s; answered in %s (p50), %s (p95), %s (p99)", r.Took.Seconds(),
		thousands(int64(float64(r.Requests)/r.Took.Seconds())), milliseconds(r.P50), milliseconds(r.P95), milliseconds(r.P99))
	if r.OK() {
		line("agreement", int64(r.Readings), "readings of the availability, each equal to the buyers' receipts")
		return
	}
	line("SURPRISES", int64(r.SurpriseCount), "")
	for _, s := range r.Surprises {
		fmt.Fprintf(w, "      %s\n", s)
	}
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
