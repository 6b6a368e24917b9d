package sale

import "fmt"

// SeatMap is the whole map of an event as it's read; its other fields are for those who
// draw it.
type SeatMap struct {
	Version  int64            `json:"version"`
	Total    map[string]int64 `json:"total"` // seats by state
	Sections []struct {
		Section string `json:"section"`
		Rows    []struct {
			Row    string   `json:"row"`
			Seats  []string `json:"seats"`
			States string   `json:"states"`
		} `json:"rows"`
	} `json:"sections"`
}

// Letters gives the letter of each seat of a chart, which has them by label. It refuses a
// map that hasn't one for every seat.
func (m *SeatMap) Letters(chart map[string]int) ([]byte, error) {
	letters := make([]byte, len(chart))
	n := 0
	for _, s := range m.Sections {
		for _, r := range s.Rows {
			if len(r.Seats) != len(r.States) {
				return nil, fmt.Errorf("row %s-%s has %d seats and %d states", s.Section, r.Row, len(r.Seats), len(r.States))
			}
			for i, seat := range r.Seats {
				at, ok := chart[s.Section+"-"+r.Row+"-"+seat]
				if !ok || letters[at] != 0 {
					return nil, fmt.Errorf("seat %s-%s-%s isn't in the chart, or is there twice", s.Section, r.Row, seat)
				}
				letters[at] = r.States[i]
				n++
			}
		}
	}
	if n != len(letters) {
		return nil, fmt.Errorf("it has %d seats, the chart has %d", n, len(letters))
	}
	return letters, nil
}
