package sale

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// The tiers that are sold by seat.
const (
	stalls  = "stalls"
	balcony = "balcony"
)

const (
	// smallHouse is the number of seats below which sections are small too.
	smallHouse = 600
	// seatPitch is how far seats are from each other in the drawing.
	seatPitch = 20
)

// house is where the assigned seats are. It never changes.
type house struct {
	rows  []houseRow
	seats []houseSeat
	index map[string]int // of seats, by label
	names []string       // of sections
}

// houseRow is a row of seats: those from first to before end.
type houseRow struct {
	section, tier string
	name          string
	first, end    int
}

// houseSeat is a seat.
type houseSeat struct {
	label      string
	row        int
	accessible bool
	aisle      bool // the next one of the row isn't beside it
}

// house makes the seats of the plan: sections of equal rows with an aisle each, the last
// of them maybe shorter; about two thirds are stalls.
func (p Plan) house() *house {
	width := 20
	if p.Seats < smallHouse {
		width = 10
	}
	depth := width / 2
	sections := (p.Seats + width*depth - 1) / (width * depth)
	h := &house{index: make(map[string]int, p.Seats)}
	for len(h.seats) < p.Seats {
		number := len(h.rows)
		section, depthOf := number/depth, number%depth
		r := houseRow{
			section: fmt.Sprintf("S%d", section+1), tier: stalls, name: fmt.Sprint(depthOf + 1), first: len(h.seats),
		}
		if section > 0 && 3*(section+1) > 2*sections {
			r.tier = balcony
		}
		if depthOf == 0 {
			h.names = append(h.names, r.section)
		}
		r.end = min(r.first+width, p.Seats)
		for i := range r.end - r.first {
			label := fmt.Sprintf("%s-%s-%d", r.section, r.name, i+1)
			h.index[label] = len(h.seats)
			h.seats = append(h.seats, houseSeat{
				label: label, row: number, aisle: i+1 == width*2/5,
				accessible: depthOf == depth-1 && i < 2, // where there's no step
			})
		}
		h.rows = append(h.rows, r)
	}
	return h
}

// has tells whether the house has seats of a tier.
func (h *house) has(tier string) bool {
	return slices.ContainsFunc(h.rows, func(r houseRow) bool { return r.tier == tier })
}

// chart is the house as the API wants it.
func (h *house) chart() map[string]any {
	var sections []map[string]any
	var rows []map[string]any
	for i, r := range h.rows {
		if i == 0 || h.rows[i-1].section != r.section {
			rows = nil
			sections = append(sections, map[string]any{"section": r.section, "tier": r.tier})
		}
		var list []map[string]any
		for k := r.first; k < r.end; k++ {
			list = append(list, map[string]any{
				"seat": fmt.Sprint(k - r.first + 1), "x": (k - r.first) * seatPitch, "y": i * seatPitch,
				"accessible": h.seats[k].accessible, "aisle": h.seats[k].aisle,
			})
		}
		rows = append(rows, map[string]any{"row": r.name, "seats": list})
		sections[len(sections)-1]["rows"] = rows
	}
	return map[string]any{"sections": sections}
}

// pick chooses n seats side by side that are free by the map, as people do: anywhere, and
// rather in front. None if no row has as many. Seats of the protected pool are left alone,
// and those that the buyer knows to be gone.
func (h *house) pick(r *rand.Rand, letters []byte, gone map[string]bool, n int) []string {
	var starts []int
	for _, row := range h.rows {
		for from := row.first; from+n <= row.end; from++ {
			if h.together(from, n) && h.free(letters, gone, from, n) {
				starts = append(starts, from)
			}
		}
	}
	if len(starts) == 0 {
		return nil
	}
	draw := r.Float64()
	from := starts[int(draw*draw*float64(len(starts)))]
	labels := make([]string, n)
	for i := range labels {
		labels[i] = h.seats[from+i].label
	}
	return labels
}

// together tells whether n seats are side by side in one row.
func (h *house) together(from, n int) bool {
	if from+n > h.rows[h.seats[from].row].end {
		return false
	}
	for _, s := range h.seats[from : from+n-1] {
		if s.aisle {
			return false
		}
	}
	return true
}

func (h *house) free(letters []byte, gone map[string]bool, from, n int) bool {
	for i := from; i < from+n; i++ {
		if letters[i] != letterAvailable || h.seats[i].accessible || gone[h.seats[i].label] {
			return false
		}
	}
	return true
}

// find gives the indices of seats; false if one isn't there, or is there twice.
func (h *house) find(labels []string) ([]int, bool) {
	list := make([]int, len(labels))
	seen := make(map[string]bool, len(labels))
	for i, label := range labels {
		at, ok := h.index[label]
		if !ok || seen[label] {
			return nil, false
		}
		list[i], seen[label] = at, true
	}
	return list, true
}
