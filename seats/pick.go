package seats

import (
	"cmp"

	"github.com/tierledger/tierledger/ledger"
)

// Best asks for the best seats that are free: side by side, or, if they may be split, in
// as few blocks as there can be.
type Best struct {
	Tier        ledger.Unit   `json:"tier,omitempty"`    // "": any that's sold by seat
	Section     string        `json:"section,omitempty"` // "": any
	Quantity    ledger.Amount `json:"quantity"`
	AcceptSplit bool          `json:"accept_split,omitempty"`
	Accessible  bool          `json:"accessible,omitempty"` // from the protected pool, else never from it
}

// orphanCost is how many ranks worse a block may be for not leaving a single free seat
// beside it.
const orphanCost = 3

// pool is what a request may choose from: rows in the order of their rank, and what of
// them is free.
type pool struct {
	rows       []*row
	view       *view
	accessible bool
}

// block is a run of free seats in a row.
type block struct {
	row     *row
	from, n int
}

// labels names the seats of a block.
func (b block) labels() []string { return b.row.labels[b.from : b.from+b.n] }

// score orders blocks of one size: the lowest is the best.
type score struct {
	cost   int // rank of the row, and orphanCost for each seat left alone
	middle int // twice the distance between the middles of block and row
	row    int
	from   int
}

func (s score) compare(t score) int {
	return cmp.Or(cmp.Compare(s.cost, t.cost), cmp.Compare(s.middle, t.middle),
		cmp.Compare(s.row, t.row), cmp.Compare(s.from, t.from))
}

// runs calls for every longest run of free seats of a row.
func (p *pool) runs(r *row, each func(from, n int)) {
	states := p.view.states(r)
	from := 0
	for i := range states {
		free := states[i] == Available.letter() && r.seats[i].Accessible == p.accessible
		if free && !r.seats[i].Aisle && i+1 < len(states) {
			continue
		}
		end := i
		if free {
			end++
		}
		if end > from {
			each(from, end-from)
		}
		from = i + 1
	}
}

// Shortage is what a request for the best available can't be served with.
type Shortage struct {
	Free    int // seats that it might have chosen from
	Held    int // and those that would be if their holds ended
	Largest int // block of free ones side by side
}

// count looks at all rows.
func (p *pool) count() (s Shortage) {
	for _, r := range p.rows {
		p.runs(r, func(_, n int) {
			s.Free += n
			s.Largest = max(s.Largest, n)
		})
		for i, letter := range p.view.states(r) {
			if letter == Held.letter() && r.seats[i].Accessible == p.accessible {
				s.Held++
			}
		}
	}
	return s
}

// best finds the best block of n seats; false when there's none. Rows come in the order of
// their rank, so it needn't look at those that can't be better.
func (p *pool) best(n int) (block, bool) {
	var found block
	var lowest score
	for _, r := range p.rows {
		if found.n > 0 && r.rank > lowest.cost {
			break
		}
		p.runs(r, func(from, length int) {
			for at := from; at+n <= from+length; at++ {
				s := score{cost: r.rank, middle: abs(2*at + n - len(r.seats)), row: r.number, from: at}
				if at-from == 1 {
					s.cost += orphanCost
				}
				if from+length-at-n == 1 {
					s.cost += orphanCost
				}
				if found.n == 0 || s.compare(lowest) < 0 {
					found, lowest = block{r, at, n}, s
				}
			}
		})
	}
	return found, found.n > 0
}

// choose takes n seats, in one block, or split over the fewest: each time the best of the
// largest that are left. They're taken in the view. When they aren't there it takes none,
// and tells what there is.
func (p *pool) choose(n int, split bool) ([]block, Shortage) {
	if b, ok := p.best(n); ok {
		p.view.take(b.row, b.from, b.n)
		return []block{b}, Shortage{}
	}
	short := p.count()
	if !split || short.Free < n {
		return nil, short
	}
	var blocks []block
	for largest := short.Largest; n > 0; {
		b, ok := p.best(min(n, largest))
		if !ok {
			largest--
			continue
		}
		p.view.take(b.row, b.from, b.n)
		blocks = append(blocks, b)
		n -= b.n
	}
	return blocks, Shortage{}
}

func abs(n int) int { return max(n, -n) }
