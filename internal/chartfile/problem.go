package chartfile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/seats"
)

// MaxProblems is how many problems of a file are told: enough to see what is wrong with
// it, and few enough to be read.
const MaxProblems = 20

// Problem is one thing that is wrong with a file.
type Problem struct {
	Line int // from 1; 0: it's about the whole file
	Text string
}

// String is the problem as a line, but for the file's name.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Text)
}

// Problems is the error of a file that can't be used.
type Problems struct {
	List []Problem // the first MaxProblems, in the order of lines
	More bool      // there are others
}

// Error gives all problems, a line each.
func (p *Problems) Error() string {
	var b strings.Builder
	for i, problem := range p.List {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(problem.String())
	}
	if p.More {
		fmt.Fprintf(&b, "\nand more; these are the first %d", len(p.List))
	}
	return b.String()
}

// finder collects the problems of a file.
type finder struct{ list []Problem }

func (f *finder) add(line int, format string, args ...any) {
	f.list = append(f.list, Problem{line, fmt.Sprintf(format, args...)})
}

// err is nil if nothing is wrong.
func (f *finder) err() error {
	if len(f.list) == 0 {
		return nil
	}
	slices.SortStableFunc(f.list, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	n := min(len(f.list), MaxProblems)
	return &Problems{List: f.list[:n:n], More: len(f.list) > n}
}

// source knows where in a file the spots of its chart are.
type source interface {
	// find gives for each spot its line and how the file calls it; "" for nothing that
	// helps.
	find([]spot) []place
}

// place is a place in a file.
type place struct {
	line int
	name string
}

// check finds what is wrong with the chart. Its rules are those of package seats, which
// tells the first mistake only: so each is mended here in turn, as if it had never been,
// until there's none left. A chart with mistakes is of no use afterwards.
func (f *finder) check(c *seats.Chart, from source) {
	var spots []spot
	var texts []string
	for n := range MaxProblems + 1 {
		err := c.Validate()
		if err == nil {
			break
		}
		at, text := locate(err)
		spots, texts = append(spots, at), append(texts, text)
		if !at.mend(c, n) {
			break
		}
	}
	if len(spots) == 0 {
		return
	}
	for i, place := range from.find(spots) {
		if place.name != "" {
			texts[i] = place.name + ": " + texts[i]
		}
		f.add(place.line, "%s", texts[i])
	}
}

// spot is a place in a chart. Indices are -1 where it's about more than one.
type spot struct {
	section, row, seat int
	field              string // "" for the section, row or seat itself
}

// spotPattern is how the fields of errors name places in a chart.
var spotPattern = regexp.MustCompile(`^sections(?:\[(\d+)\](?:\.rows\[(\d+)\](?:\.seats\[(\d+)\])?)?\.(\w+))?$`)

// locate tells where a chart is wrong, and what is.
func locate(err error) (at spot, text string) {
	at = spot{-1, -1, -1, ""}
	said := fault.As(err)
	if said == nil {
		return at, err.Error()
	}
	for _, f := range said.Fields {
		name, isText := f.Value.(string)
		parts := spotPattern.FindStringSubmatch(name)
		if f.Name != "field" || !isText || parts == nil {
			continue
		}
		for i, index := range []*int{&at.section, &at.row, &at.seat} {
			if n, err := strconv.Atoi(parts[i+1]); err == nil {
				*index = n
			}
		}
		at.field = parts[4]
		return at, strings.TrimPrefix(said.Detail, name+": ")
	}
	return at, cmp.Or(said.Detail, said.Code)
}

// mend makes a wrong field right, with a value that n makes a new one; false if it can't
// be.
func (at spot) mend(c *seats.Chart, n int) bool {
	fresh := fmt.Sprintf("__.%d", n)
	switch {
	case at.section < 0:
		return false
	case at.seat >= 0:
		return mendSeat(&c.Sections[at.section].Rows[at.row].Seats[at.seat], at.field, fresh)
	case at.row >= 0:
		return mendRow(&c.Sections[at.section].Rows[at.row], at.field, fresh)
	}
	return mendSection(&c.Sections[at.section], at.field, fresh)
}

func mendSection(s *seats.Section, field, fresh string) bool {
	switch field {
	case "section":
		s.Section = fresh
	case "name":
		s.Name = ""
	case "tier":
		s.Tier = "tier"
	case "rows":
		s.Rows = []seats.Row{{Row: fresh, Seats: []seats.Seat{{Seat: fresh}}}}
	default:
		return false
	}
	return true
}

func mendRow(r *seats.Row, field, fresh string) bool {
	switch field {
	case "row":
		r.Row = fresh
	case "rank":
		r.Rank = nil
	case "seats":
		r.Seats = []seats.Seat{{Seat: fresh}}
	default:
		return false
	}
	return true
}

func mendSeat(s *seats.Seat, field, fresh string) bool {
	switch field {
	case "seat":
		s.Seat = fresh
	case "x":
		s.X = 0
	case "y":
		s.Y = 0
	default:
		return false
	}
	return true
}
