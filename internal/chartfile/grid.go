package chartfile

import (
	"math"

	"github.com/tierledger/tierledger/seats"
)

// The grid, in cells: a seat takes one.
const (
	pitch      = 20 // the drawing's units from one cell to the next, if there's room
	aisleCells = 1  // between seats that aren't side by side
	gapCells   = 3  // between sections
)

// unplaced tells whether no seat has a place: all are where a missing one would be.
func unplaced(c *seats.Chart) bool {
	for _, s := range c.Sections {
		for _, r := range s.Rows {
			for _, seat := range r.Seats {
				if seat.X != 0 || seat.Y != 0 {
					return false
				}
			}
		}
	}
	return c.Size() > 1
}

// arrange gives every seat its place on a grid: sections in their order from left to
// right, on shelves about as wide as all are high; in a section its rows one below the
// other, each in the middle. It depends on nothing but the chart.
func arrange(c *seats.Chart) {
	widths, widest, area := make([]int, len(c.Sections)), 0, 0
	for i := range c.Sections {
		for _, r := range c.Sections[i].Rows {
			widths[i] = max(widths[i], cells(r))
		}
		widest = max(widest, widths[i])
		area += (widths[i] + gapCells) * (len(c.Sections[i].Rows) + gapCells)
	}
	shelf := max(widest, int(math.Sqrt(float64(area))))
	lefts, tops := make([]int, len(c.Sections)), make([]int, len(c.Sections))
	left, top, height, right := 0, 0, 0, 0
	for i := range c.Sections {
		if left > 0 && left+widths[i] > shelf {
			left, top, height = 0, top+height+gapCells, 0
		}
		lefts[i], tops[i] = left, top
		right, height = max(right, left+widths[i]), max(height, len(c.Sections[i].Rows))
		left += widths[i] + gapCells
	}
	// Even, so that the middle of a row is a whole number of units away.
	unit := max(2, min(pitch, seats.MaxCoordinate/max(right, top+height))/2*2)
	for i := range c.Sections {
		for j, r := range c.Sections[i].Rows {
			x := lefts[i]*unit + (widths[i]-cells(r))*unit/2
			for k := range r.Seats {
				r.Seats[k].X, r.Seats[k].Y = x, (tops[i]+j)*unit
				x += unit
				if r.Seats[k].Aisle {
					x += aisleCells * unit
				}
			}
		}
	}
}

// cells is how wide a row is.
func cells(r seats.Row) (n int) {
	for i, seat := range r.Seats {
		n++
		if seat.Aisle && i < len(r.Seats)-1 {
			n += aisleCells
		}
	}
	return n
}
