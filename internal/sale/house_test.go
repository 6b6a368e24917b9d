package sale

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Houses of every size have as many seats as were asked for, each once.
func TestHouse(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 9, 10, 51, 150, 599, 600, 601, 12_345, MaxSeats} {
		h := Plan{Seats: n}.house()
		tiers := map[string]int{}
		for i, r := range h.rows {
			if r.first >= r.end || i > 0 && r.first != h.rows[i-1].end {
				t.Fatalf("%d seats: row %d has those from %d to %d", n, i, r.first, r.end)
			}
			tiers[r.tier] += r.end - r.first
		}
		if len(h.seats) != n || len(h.index) != n || tiers[stalls]+tiers[balcony] != n {
			t.Errorf("%d seats: %d in the list, %d by label, tiers %v", n, len(h.seats), len(h.index), tiers)
		}
		if n >= 51 && (tiers[balcony] == 0 || tiers[balcony] > tiers[stalls]) {
			t.Errorf("%d seats: tiers %v", n, tiers)
		}
		if sections := h.chart()["sections"].([]map[string]any); len(sections) != len(h.names) || len(sections) > 1000 {
			t.Errorf("%d seats: %d sections, %d names", n, len(sections), len(h.names))
		}
	}
}

// People choose seats side by side that look free, near the front, and not those of the
// protected pool.
func TestPick(t *testing.T) {
	t.Parallel()
	h := Plan{Seats: 50}.house() // one section of five rows of ten, an aisle after the fourth
	r := rand.New(rand.NewPCG(1, 2))
	letters := []byte(strings.Repeat("a", 50))
	seen, front := map[string]bool{}, 0
	for range 300 {
		labels := h.pick(r, letters, nil, 5)
		list, ok := h.find(labels)
		if !ok || len(list) != 5 || !h.sideBySide(list) {
			t.Fatalf("picked %v", labels)
		}
		seen[labels[0]] = true
		if list[0] < 20 {
			front++
		}
	}
	if len(seen) != 10 || front < 160 { // 63 % in the first two of five rows
		t.Errorf("five side by side begin at %v, %d of 300 in front", seen, front)
	}
	if labels := h.pick(r, letters, nil, 6); len(labels) != 6 || !strings.HasSuffix(labels[0], "-5") {
		t.Errorf("six are together beyond the aisle only: %v", labels)
	}
	if labels := h.pick(r, letters, nil, 7); labels != nil {
		t.Errorf("seven are nowhere together: %v", labels)
	}
	taken := []byte(strings.Repeat("s", 40) + "aaaaahhhba")
	if labels := h.pick(r, taken, map[string]bool{"S1-5-4": true}, 2); labels != nil {
		t.Errorf("picked %v, of which one is gone", labels)
	}
	if labels := h.pick(r, taken, nil, 2); !slices.Equal(labels, []string{"S1-5-3", "S1-5-4"}) {
		t.Errorf("picked %v", labels)
	}
}

// Seats that aren't those that were asked for are noticed.
func TestWrongSeats(t *testing.T) {
	t.Parallel()
	h := Plan{Seats: 150}.house() // S1 and S2 stalls, S3 balcony
	stall := func(seats ...string) item { return item{stalls, int64(len(seats)), seats} }
	for name, c := range map[string]struct {
		lines []line
		items []item
		says  string
	}{
		"named":              {[]line{{Seats: []string{"S1-1-2", "S1-1-1"}}}, []item{stall("S1-1-1", "S1-1-2")}, ""},
		"named, others":      {[]line{{Seats: []string{"S1-1-1"}}}, []item{stall("S1-1-2")}, "asked for"},
		"not counted":        {[]line{{Seats: []string{"S1-1-1"}}}, []item{{stalls, 2, []string{"S1-1-1"}}}, "have 1 seats"},
		"of another tier":    {[]line{{Seats: []string{"S3-1-1"}}}, []item{stall("S3-1-1")}, "isn't of stalls"},
		"twice":              {[]line{{Best: &best{Quantity: 2}}}, []item{stall("S1-1-1", "S1-1-1")}, "twice"},
		"best":               {[]line{{Best: &best{Quantity: 2, Tier: stalls, Section: "S2"}}}, []item{stall("S2-1-2", "S2-1-1")}, ""},
		"best, too few":      {[]line{{Best: &best{Quantity: 3}}}, []item{stall("S1-1-1", "S1-1-2")}, "got 2"},
		"best, elsewhere":    {[]line{{Best: &best{Quantity: 1, Section: "S2"}}}, []item{stall("S1-1-1")}, "isn't of S2"},
		"best, other tier":   {[]line{{Best: &best{Quantity: 1, Tier: balcony}}}, []item{stall("S1-1-1")}, "isn't of balcony"},
		"best, a gap":        {[]line{{Best: &best{Quantity: 2}}}, []item{stall("S1-1-1", "S1-1-3")}, "side by side"},
		"best, an aisle":     {[]line{{Best: &best{Quantity: 2}}}, []item{stall("S1-1-4", "S1-1-5")}, "side by side"},
		"best, two rows":     {[]line{{Best: &best{Quantity: 2}}}, []item{stall("S1-1-10", "S1-2-1")}, "side by side"},
		"best, may be apart": {[]line{{Best: &best{Quantity: 2, AcceptSplit: true}}}, []item{stall("S1-1-4", "S1-1-5")}, ""},
		"protected":          {[]line{{Best: &best{Quantity: 1}}}, []item{stall("S1-5-1")}, "wrong pool"},
		"not protected":      {[]line{{Best: &best{Quantity: 1, Accessible: true}}}, []item{stall("S1-1-1")}, "wrong pool"},
		"beside tickets":     {[]line{{Best: &best{Quantity: 1}}, {Tier: "ga", Quantity: 2}}, []item{{"ga", 2, nil}, stall("S1-1-1")}, ""},
	} {
		got := h.wrong(c.lines, c.items)
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
}

func TestUnavailable(t *testing.T) {
	t.Parallel()
	lines := []line{{Tier: "ga", Quantity: 1}, {Seats: []string{"A-1-1", "A-1-2"}}}
	for body, says := range map[string]string{
		`{"seats":[{"seat":"A-1-2","reason":"held","may_return_at":"2027-01-01T00:00:00Z"},{"seat":"A-1-1","reason":"sold"}]}`: "",
		`{"seats":[]}`: "names none",
		`{"seats":[{"seat":"A-1-3","reason":"held"}]}`:                                        "wasn't asked for",
		`{"seats":[{"seat":"A-1-1","reason":"blocked"}]}`:                                     "can't be blocked",
		`{"seats":[{"seat":"A-1-1","reason":"sold","may_return_at":"2027-01-01T00:00:00Z"}]}`: "can't return",
	} {
		gone, got := unavailable(lines, answer{body: []byte(body)})
		if (got == "") != (says == "") || !strings.Contains(got, says) || (got == "") != (len(gone) == 2) {
			t.Errorf("%s: %q and %v, want %q", body, got, gone, says)
		}
	}
}
