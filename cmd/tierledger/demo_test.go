package main

import (
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/sale"
)

func TestDemoExit(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := execute(t, "demo", "--buyers", "80", "--quantity", "50", "--seats", "60", "--exit")
	if code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	for _, text := range []string{"80  arrived", "temporarily_held", "limit_exceeded", "expired", "captured", "provider:sim",
		" 0 unexplained", "charged once", "seats               60  assigned", "chosen on the map", "every sold seat has one owner",
		"each equal to the buyers' receipts", "checks hold"} {
		if !strings.Contains(stdout, text) {
			t.Errorf("the report doesn't say %q:\n%s", text, stdout)
		}
	}
	if !strings.Contains(stderr, "arrived ") || !strings.Contains(stderr, "seats taken ") {
		t.Errorf("no progress was told: %s", stderr)
	}
}

func TestDemoGoesOn(t *testing.T) {
	t.Parallel()
	demo := start(t, "demo", "--buyers", "10", "--quantity", "100", "--seats", "0")
	want(t, http.StatusOK, "", "GET", demo.url+"/v1/events/"+demoEvent+"/availability", "", "")
	want(t, http.StatusCreated, "", "POST", demo.url+"/v1/events/"+demoEvent+"/holds", "mine",
		`{"customer":"me","items":[{"tier":"ga","quantity":2}]}`)
	if code := demo.end(syscall.SIGINT); code != exitOK {
		t.Errorf("exit code %d: %s", code, demo.stderr.String())
	}
}

// Seats are spoken of when there are some, in the same places.
func TestDemoTellsSeats(t *testing.T) {
	t.Parallel()
	for _, seats := range []int{0, 60} {
		var tries, report, told, drawn strings.Builder
		progress := sale.Progress{Seats: int64(seats), SeatsTaken: 7, Arrived: 1, Held: 2, Sold: 3, Left: 4,
			Paid: 5, Open: 6, Refused: 8, Expired: 9, Released: 10}
		tellTries(&tries, "http://x", seats > 0)
		tellSale(&report, sale.Report{Took: time.Second, Seating: sale.Seats{All: int64(seats), Gaps: 1}})
		newShow(&told, sale.Plan{Seats: seats}).update(progress)
		b := newBars(&drawn, sale.Plan{Buyers: 1, Quantity: 50, Seats: seats})
		b.update(progress)
		shown := make([]int64, len(b.list))
		for i, bar := range b.list {
			shown[i] = bar.Current()
		}
		b.end()
		values := []int64{1, 2, 3, 4, 5, 6, 8, 9, 10}
		if seats > 0 {
			values = slices.Insert(values, 4, 7)
		}
		if !slices.Equal(shown, values) {
			t.Errorf("%d seats: the bars show %d, want %d", seats, shown, values)
		}
		for text, in := range map[string]string{
			"http://x/events/" + demoEvent + "/map\n": tries.String(),
			"  assigned; ":                  report.String(),
			"the map was read anew":         report.String(),
			"every sold seat has one owner": report.String(),
			"seats taken 7 of 60, ":         told.String(),
		} {
			if strings.Contains(in, text) != (seats > 0) {
				t.Errorf("%d seats, and %q: %s", seats, text, in)
			}
		}
	}
}

func TestDemoUsage(t *testing.T) {
	t.Parallel()
	for _, n := range []string{"-1", "100001"} {
		code, _, stderr := runHere(t, "demo", "--seats", n)
		if code != exitUsage || !strings.Contains(stderr, "--seats must be 0 to 100000") {
			t.Errorf("--seats %s: exit code %d: %s", n, code, stderr)
		}
	}
}
