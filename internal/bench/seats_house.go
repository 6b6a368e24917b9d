package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strconv"

	"github.com/tierledger/tierledger/buckets"
)

const (
	sectionSeats = 1000 // or near
	rowSeats     = 25
	// hotShare is the share of the sections that most want to sit in.
	hotShare = 50
)

// The tiers of a house: its front half and its back half.
const (
	frontTier = "front"
	backTier  = "back"
)

// house is a chart, with its seats numbered from 0 in the order of the chart.
type house struct {
	sections []string
	tiers    []string // of the sections
	hot      int      // so many sections, the first, are hot
	rows     []houseRow
	labels   []string
	numbers  map[string]int // by label
	chart    []byte         // its JSON
}

// houseRow is a row of seats with consecutive numbers.
type houseRow struct{ section, first, n int }

// The chart as it's loaded.
type (
	chartSection struct {
		Section string     `json:"section"`
		Name    string     `json:"name"`
		Tier    string     `json:"tier"`
		Rows    []chartRow `json:"rows"`
	}
	chartRow struct {
		Row   string      `json:"row"`
		Seats []chartSeat `json:"seats"`
	}
	chartSeat struct {
		Seat       string `json:"seat"`
		X          int    `json:"x"`
		Y          int    `json:"y"`
		Accessible bool   `json:"accessible,omitempty"`
	}
)

// newHouse builds a house of so many seats: sections of about 1,000, at least two, in
// rows of 25. With accessible seats, the last row of each section has two.
func newHouse(seats int, accessible bool) *house {
	sections := max(2, (seats+sectionSeats/2)/sectionSeats)
	h := &house{
		hot: max(1, sections/hotShare), labels: make([]string, 0, seats), numbers: make(map[string]int, seats),
	}
	chart := make([]chartSection, 0, sections)
	for i := range sections {
		chart = append(chart, h.addSection(i, seats*i/sections, seats*(i+1)/sections, sections, accessible))
	}
	var err error
	if h.chart, err = json.Marshal(map[string]any{"sections": chart}); err != nil {
		panic(err) // nothing here can't be JSON
	}
	return h
}

// addSection adds the seats from one number up to another, in rows.
func (h *house) addSection(index, from, to, sections int, accessible bool) chartSection {
	name, tier := fmt.Sprintf("S%02d", index+1), frontTier
	if index >= sections/2 {
		tier = backTier
	}
	h.sections, h.tiers = append(h.sections, name), append(h.tiers, tier)
	s := chartSection{Section: name, Name: "Section " + strconv.Itoa(index+1), Tier: tier}
	for first := from; first < to; first += rowSeats {
		n := min(rowSeats, to-first)
		h.rows = append(h.rows, houseRow{index, first, n})
		row := chartRow{Row: strconv.Itoa(len(s.Rows) + 1)}
		for place := range n {
			seat := chartSeat{
				Seat: strconv.Itoa(place + 1),
				X:    (index%10*(rowSeats+5) + place) * 50, Y: (index/10*60 + len(s.Rows)) * 80,
				Accessible: accessible && first+n == to && place < 2,
			}
			row.Seats = append(row.Seats, seat)
			label := name + "-" + row.Row + "-" + seat.Seat
			h.numbers[label] = len(h.labels)
			h.labels = append(h.labels, label)
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

// rowsOf gives the rows of a section.
func (h *house) rowsOf(section int) []houseRow {
	from := sort.Search(len(h.rows), func(i int) bool { return h.rows[i].section >= section })
	to := sort.Search(len(h.rows), func(i int) bool { return h.rows[i].section > section })
	return h.rows[from:to]
}

// rowOf gives the row of a seat.
func (h *house) rowOf(seat int32) houseRow {
	return h.rows[sort.Search(len(h.rows), func(i int) bool { return h.rows[i].first > int(seat) })-1]
}

// open makes an event with the seats of a house.
func (r *seatsRun) open(ctx context.Context, event string, h *house, holdSeconds int) error {
	type tierSpec struct {
		Tier   string        `json:"tier"`
		Seated bool          `json:"seated"`
		Price  buckets.Money `json:"price"`
	}
	spec := map[string]any{
		"event": event, "name": "Seats", "currency": "USD", "hold_seconds": holdSeconds,
		"tiers": []tierSpec{
			{frontTier, true, buckets.Money{Amount: 9000, Currency: "USD"}},
			{backTier, true, buckets.Money{Amount: 5000, Currency: "USD"}},
		},
	}
	if r.Limit > 0 {
		spec["limit_per_customer"] = r.Limit
	}
	body, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	for _, x := range []struct {
		path, key string
		body      []byte
	}{
		{"/v1/events", "create-" + event, body},
		{"/v1/events/" + event + "/chart", "chart-" + event, h.chart},
	} {
		a, err := r.server.clients[0].Do(ctx, http.MethodPost, x.path, x.key, x.body)
		if err == nil && a.Status != http.StatusCreated {
			err = fmt.Errorf("%d: %s", a.Status, a.Body)
		}
		if err != nil {
			return fmt.Errorf("create event: %w", err)
		}
	}
	return nil
}
