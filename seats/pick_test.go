package seats

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/ledger"
)

// drawn is a row as tests draw it: a letter a seat as in its summary, upper case for the
// accessible ones, and | where an aisle is.
type drawn struct {
	rank  int
	seats string
}

// draw makes a shelf of one section whose rows have been read.
func draw(rows ...drawn) *shelf {
	s := newShelf(NewCharts())
	given := Section{Section: "A", Tier: "front"}
	for i, d := range rows {
		r := Row{Row: fmt.Sprint(i + 1), Rank: &d.rank}
		letters := []byte{}
		for _, c := range d.seats {
			if c == '|' {
				r.Seats[len(r.Seats)-1].Aisle = true
				continue
			}
			lower := strings.ToLower(string(c))
			letters = append(letters, lower...)
			r.Seats = append(r.Seats, Seat{Seat: fmt.Sprint(len(letters)), Accessible: string(c) != lower})
		}
		given.Rows = append(given.Rows, r)
		s.rows[i] = letters
	}
	s.plan = noPlan.with(&section{Section: given})
	return s
}

// ask chooses on a shelf, as a request that comes first.
func (s *shelf) ask(b Best) ([]string, Shortage) {
	x := &Selection{s, &view{shelf: s, rows: make(map[int][]byte)}}
	return x.Best(b, func(ledger.Unit) bool { return true })
}

func TestTheBestSeats(t *testing.T) {
	level := func(rows ...string) (list []drawn) { // each row is as good as the other
		for _, r := range rows {
			list = append(list, drawn{0, r})
		}
		return list
	}
	falling := func(rows ...string) []drawn {
		list := level(rows...)
		for i := range list {
			list[i].rank = i
		}
		return list
	}
	for name, c := range map[string]struct {
		rows []drawn
		ask  Best
		want string // rows and seats; "": none
	}{
		"the middle of the row":                   {level("aaaaaaaa"), Best{Quantity: 2}, "1-4 1-5"},
		"left of two middles":                     {level("aaaaaaa"), Best{Quantity: 2}, "1-3 1-4"},
		"the lower of two alike rows":             {level("aaaaaaaa", "aaaaaaaa"), Best{Quantity: 2}, "1-4 1-5"},
		"the middle in another row of the rank":   {level("hhhhaaaa", "aaaaaaaa"), Best{Quantity: 2}, "2-4 2-5"},
		"the better row":                          {falling("aaaa", "aaaaaaaa"), Best{Quantity: 4}, "1-1 1-2 1-3 1-4"},
		"the better row has too few":              {falling("aaah", "aaaaaaaa"), Best{Quantity: 4}, "2-3 2-4 2-5 2-6"},
		"the rank decides, not the order":         {[]drawn{{9, "aaaa"}, {2, "aaaa"}}, Best{Quantity: 4}, "2-1 2-2 2-3 2-4"},
		"no seat is left alone":                   {level("aaaaa"), Best{Quantity: 2}, "1-1 1-2"},
		"no seat is left alone to the left":       {level("haaahhhh"), Best{Quantity: 2}, "1-3 1-4"},
		"unless the other row is much worse":      {[]drawn{{0, "aaa"}, {4, "aa"}}, Best{Quantity: 2}, "1-1 1-2"},
		"three ranks worse, and in the middle":    {[]drawn{{0, "aaa"}, {3, "aa"}}, Best{Quantity: 2}, "2-1 2-2"},
		"two ranks worse, and none alone":         {[]drawn{{0, "aaa"}, {2, "aa"}}, Best{Quantity: 2}, "2-1 2-2"},
		"a sold seat parts":                       {falling("aasaa", "aaa"), Best{Quantity: 3}, "2-1 2-2 2-3"},
		"an aisle parts":                          {falling("aa|aa", "aaa"), Best{Quantity: 3}, "2-1 2-2 2-3"},
		"beside an aisle nobody is alone":         {level("aa|aaaa"), Best{Quantity: 2}, "1-3 1-4"},
		"one by itself goes first":                {level("aa|a"), Best{Quantity: 1}, "1-3"},
		"an aisle behind the last seat":           {level("aa|"), Best{Quantity: 2}, "1-1 1-2"},
		"accessible seats aren't for others":      {falling("AAAA", "aaaa"), Best{Quantity: 2}, "2-1 2-2"},
		"nor as a part of a block":                {level("aaAaa"), Best{Quantity: 3}, ""},
		"accessible ones for who needs them":      {falling("aaaa", "aAAa"), Best{Quantity: 2, Accessible: true}, "2-2 2-3"},
		"and no others":                           {level("aaaAaa"), Best{Quantity: 2, Accessible: true}, ""},
		"held accessible ones":                    {level("aaHAaa"), Best{Quantity: 2, Accessible: true}, ""},
		"not even split":                          {level("aaHAaa"), Best{Quantity: 2, Accessible: true, AcceptSplit: true}, ""},
		"blocked seats aren't free":               {level("abba"), Best{Quantity: 2}, ""},
		"whoever accepts a split may be together": {falling("asas", "hhaaah"), Best{Quantity: 3, AcceptSplit: true}, "2-3 2-4 2-5"},
		"split over the fewest":                   {falling("asas", "aaas", "aas"), Best{Quantity: 5, AcceptSplit: true}, "2-1 2-2 2-3 3-1 3-2"},
		"the rest of a split is the best":         {falling("asas", "aaas", "aas"), Best{Quantity: 4, AcceptSplit: true}, "2-1 2-2 2-3 1-3"},
		"split to the last seat":                  {falling("asas", "sas"), Best{Quantity: 3, AcceptSplit: true}, "1-3 1-1 2-2"},
		"one more than there is":                  {falling("asas", "sas"), Best{Quantity: 4, AcceptSplit: true}, ""},
		"nothing":                                 {level("shb"), Best{Quantity: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := draw(c.rows...)
			var want []string
			for seat := range strings.FieldsSeq(c.want) {
				want = append(want, "A-"+seat)
			}
			for range 2 { // the same rows, the same answer
				if got, short := s.ask(c.ask); !slices.Equal(got, want) {
					t.Errorf("got %v, want %v; short of %+v", got, want, short)
				}
			}
		})
	}
}

func TestWhatAShortageCounts(t *testing.T) {
	s := draw(drawn{0, "aasaAhHH"}, drawn{1, "aaa|aab"})
	for ask, want := range map[Best]Shortage{
		{Quantity: 6}:                                 {Free: 8, Held: 1, Largest: 3},
		{Quantity: 2, Accessible: true}:               {Free: 1, Held: 2, Largest: 1},
		{Quantity: 4, Accessible: true, Tier: "none"}: {},
	} {
		if got, short := s.ask(ask); got != nil || short != want {
			t.Errorf("%+v: got %v, %+v, want %+v", ask, got, short, want)
		}
	}
}

// A request's lines see what the earlier ones took, and nothing else does.
func TestASelectionChangesNothing(t *testing.T) {
	s := draw(drawn{0, "aaaaaa"})
	x := &Selection{s, &view{shelf: s, rows: make(map[int][]byte)}}
	all := func(ledger.Unit) bool { return true }
	first, _ := x.Best(Best{Quantity: 3}, all)
	second, _ := x.Best(Best{Quantity: 3}, all)
	if len(first) != 3 || len(second) != 3 || slices.ContainsFunc(first, func(l string) bool { return slices.Contains(second, l) }) {
		t.Errorf("got %v and %v", first, second)
	}
	if third, short := x.Best(Best{Quantity: 1}, all); third != nil || short != (Shortage{Held: 6}) {
		t.Errorf("got %v, %+v", third, short)
	}
	if got := string(s.rows[0]); got != "aaaaaa" {
		t.Errorf("the row is %s", got)
	}
	if none, short := x.Best(Best{Quantity: 1}, func(ledger.Unit) bool { return false }); none != nil || short != (Shortage{}) {
		t.Errorf("of no tier: got %v, %+v", none, short)
	}
}

// naive is the choice again, seat by seat.
type naive struct {
	*shelf
	accessible bool
}

// free tells whether a seat may be chosen; there are none beyond the ends of a row.
func (n naive) free(r *row, i int) bool {
	return i >= 0 && i < len(r.seats) && n.rows[r.number][i] == 'a' && r.seats[i].Accessible == n.accessible
}

// joined tells whether a seat and the next one are side by side and both free.
func (n naive) joined(r *row, i int) bool { return n.free(r, i) && n.free(r, i+1) && !r.seats[i].Aisle }

// best gives the label of the first seat of the best block, "" for none.
func (n naive) best(quantity int) (label string) {
	var lowest []int
	for _, r := range n.plan.rows {
		for from := range r.seats {
			last := from + quantity - 1
			together := n.free(r, from)
			for i := from; i < last; i++ {
				together = together && n.joined(r, i)
			}
			if !together {
				continue
			}
			cost := r.rank
			if n.joined(r, from-1) && !n.joined(r, from-2) {
				cost += orphanCost
			}
			if n.joined(r, last) && !n.joined(r, last+1) {
				cost += orphanCost
			}
			s := []int{cost, abs((from + last + 1) - len(r.seats)), r.number, from}
			if lowest == nil || slices.Compare(s, lowest) < 0 {
				lowest, label = s, r.labels[from]
			}
		}
	}
	return label
}

// runs gives the lengths of the runs of free seats.
func (n naive) runs() (lengths []int) {
	for _, r := range n.plan.rows {
		for i := range r.seats {
			switch {
			case !n.free(r, i):
			case n.joined(r, i-1):
				lengths[len(lengths)-1]++
			default:
				lengths = append(lengths, 1)
			}
		}
	}
	return lengths
}

// fewest tries every choice of runs: how many it takes for a quantity, 0 if all are too few.
func fewest(lengths []int, quantity int) (least int) {
	for chosen := range 1 << len(lengths) {
		sum := 0
		for i, length := range lengths {
			if chosen>>i&1 == 1 {
				sum += length
			}
		}
		if n := bits.OnesCount(uint(chosen)); sum >= quantity && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// Whatever is free, the choice is that of trying every block, and a split has the fewest.
func TestTheChoiceIsThatOfTryingAll(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var rows []drawn
		for range rapid.IntRange(1, 4).Draw(r, "rows") {
			rows = append(rows, drawn{rapid.IntRange(0, 5).Draw(r, "rank"),
				rapid.StringMatching(`[aaaahsbA][aaaahsbA|]{0,7}`).Draw(r, "row")})
		}
		s := draw(rows...)
		ask := Best{Quantity: ledger.Amount(rapid.IntRange(1, 6).Draw(r, "quantity")), Accessible: rapid.Bool().Draw(r, "accessible"),
			AcceptSplit: rapid.Bool().Draw(r, "split")}
		n := naive{s, ask.Accessible}
		got, short := s.ask(ask)
		again, _ := s.ask(ask)
		if !slices.Equal(got, again) {
			r.Fatalf("first %v, then %v", got, again)
		}
		first, lengths := n.best(int(ask.Quantity)), n.runs()
		blocks := fewest(lengths, int(ask.Quantity))
		switch {
		case first != "":
			blocks = 1
			if len(got) == 0 || got[0] != first {
				r.Fatalf("got %v, the best begins at %s", got, first)
			}
		case !ask.AcceptSplit || blocks == 0:
			free, largest := 0, 0
			for _, length := range lengths {
				free, largest = free+length, max(largest, length)
			}
			if got != nil || short.Free != free || short.Largest != largest {
				r.Fatalf("got %v, %+v; %d are free, %d together", got, short, free, largest)
			}
			return
		}
		n.checkTaken(r, got, int(ask.Quantity), blocks)
	})
}

// checkTaken wants so many different free seats, in so many blocks.
func (n naive) checkTaken(t *rapid.T, labels []string, quantity, blocks int) {
	if len(labels) != quantity {
		t.Fatalf("got %v, want %d seats", labels, quantity)
	}
	seen := make(map[string]bool)
	parts := 0
	var before spot
	for i, label := range labels {
		at := n.plan.spots[label]
		if seen[label] || !n.free(at.row, at.place) {
			t.Fatalf("%s of %v isn't free", label, labels)
		}
		seen[label] = true
		if i == 0 || before.row != at.row || before.place+1 != at.place || !n.joined(before.row, before.place) {
			parts++
		}
		before = at
	}
	// Two blocks may lie beside each other, as parts of one run.
	if parts > blocks {
		t.Fatalf("got %v, which are %d blocks, %d would do", labels, parts, blocks)
	}
}
