package holds

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// What scripts say of seats.

// load adds sections to the chart.
func (j *journal) load(c seats.Chart) (ledger.Receipt, error) {
	command, err := seats.LoadCommand(testJournal, "tester", fmt.Sprint("chart ", len(j.Entries())), c)
	if err != nil {
		return ledger.Receipt{}, err
	}
	return j.do(command)
}

// setAside blocks seats or puts them back.
func (j *journal) setAside(block bool, labels []string) (ledger.Receipt, error) {
	to := seats.Available
	if block {
		to = seats.Blocked
	}
	r := seats.BlockRequest{Seats: labels, Reason: "camera"}
	command, err := seats.BlockCommand(testJournal, "tester", fmt.Sprint("aside ", len(j.Entries())), r, to)
	if err != nil {
		return ledger.Receipt{}, err
	}
	return j.do(command)
}

// scriptLines reads: items=(ga:1, vip:1), then seats=(A-1-1, A-1-2), then best=(2, section:A)
// and further ones, each a line. A best may have tier:, section:, split and accessible.
func scriptLines(t *testing.T, d *datadriven.TestData) (lines []Line) {
	number := func(s string) ledger.Amount {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return ledger.Amount(n)
	}
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "items":
			for _, v := range arg.Vals {
				tier, n, _ := strings.Cut(v, ":")
				lines = append(lines, Line{Tier: ledger.Unit(tier), Quantity: number(n)})
			}
		case "seats":
			lines = append(lines, Line{Seats: arg.Vals})
		case "best":
			b := &seats.Best{Quantity: number(arg.Vals[0])}
			for _, v := range arg.Vals[1:] {
				switch what, name, _ := strings.Cut(v, ":"); what {
				case "tier":
					b.Tier = ledger.Unit(name)
				case "section":
					b.Section = name
				case "split":
					b.AcceptSplit = true
				case "accessible":
					b.Accessible = true
				}
			}
			lines = append(lines, Line{BestAvailable: b})
		}
	}
	return lines
}

// scriptChart reads a row a line: section tier row seats, where a dot is a seat, w one of
// the accessible, and | an aisle.
func scriptChart(t *testing.T, d *datadriven.TestData) (c seats.Chart) {
	for line := range strings.Lines(d.Input) {
		var section, tier, name, places string
		if _, err := fmt.Sscan(line, &section, &tier, &name, &places); err != nil {
			d.Fatalf(t, "%q: %v", line, err)
		}
		if n := len(c.Sections); n == 0 || c.Sections[n-1].Section != section {
			c.Sections = append(c.Sections, seats.Section{Section: section, Tier: ledger.Unit(tier)})
		}
		row := seats.Row{Row: name}
		for _, place := range places {
			if place == '|' {
				row.Seats[len(row.Seats)-1].Aisle = true
				continue
			}
			row.Seats = append(row.Seats, seats.Seat{Seat: strconv.Itoa(len(row.Seats) + 1), Accessible: place == 'w'})
		}
		last := &c.Sections[len(c.Sections)-1]
		last.Rows = append(last.Rows, row)
	}
	return c
}

// showSeats tells which seats a hold has, tier by tier.
func showSeats(out *strings.Builder, r ledger.Receipt) {
	var h Hold
	if len(r.Data) == 0 || json.Unmarshal(r.Data, &h) != nil {
		return
	}
	for _, i := range h.Items {
		if len(i.Seats) > 0 {
			fmt.Fprintf(out, "%s of %s: %s\n", h.Status, i.Tier, strings.Join(i.Seats, " "))
		}
	}
}
