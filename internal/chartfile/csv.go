package chartfile

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// Columns of a CSV file; the first four must be there.
var (
	columns = []string{"section", "row", "seat", "tier", "x", "y", "accessible", "aisle", "section_name", "rank"}
	needed  = columns[:4]
)

// rows is a CSV file on its way to a chart.
type rows struct {
	chart  *seats.Chart
	found  *finder
	column map[string]int // where each is; those that aren't there are missing

	sections map[string]*section
	seen     map[string]int // lines of seats
	placed   bool           // whether seats have x and y, by the first one
	first    int            // its line; 0: there's none yet
}

// section is what the lines of a section said so far.
type section struct {
	index int // in the chart
	rows  map[string]*row
	order []*row
	line  int // the first
	name  note
}

// row is what the lines of a row said so far.
type row struct {
	index int   // in the section
	seats []int // their lines
	rank  note
}

// note is what only one of several lines needs to say, and the line that did.
type note struct {
	line int
	text string
}

// readCSV reads a chart from CSV. It's nil when the header is of no use.
func (f *File) readCSV(text []byte, found *finder) source {
	reader := csv.NewReader(bytes.NewReader(text))
	reader.FieldsPerRecord = -1 // counted here, so that reading goes on
	reader.ReuseRecord = true
	r := &rows{chart: &f.Chart, found: found, sections: map[string]*section{}, seen: map[string]int{}}
	header, err := reader.Read()
	if err != nil {
		found.addCSV(err)
		return nil
	}
	if !r.header(header) {
		return nil
	}
	for n := len(header); ; {
		record, err := reader.Read()
		switch line, _ := position(reader, record); {
		case err == io.EOF:
			return r.end()
		case err != nil:
			found.addCSV(err)
		case blank(record): // spreadsheets leave such lines
		case len(record) != n:
			found.add(line, "has %d fields, the header has %d", len(record), n)
		default:
			r.line(line, record)
		}
		if len(found.list) > MaxProblems {
			return nil // enough; one lost quote can spoil all that follows
		}
	}
}

// position is where a record begins.
func position(r *csv.Reader, record []string) (line, column int) {
	if len(record) == 0 {
		return 0, 0
	}
	return r.FieldPos(0)
}

// addCSV tells where a file isn't CSV.
func (f *finder) addCSV(err error) {
	var wrong *csv.ParseError
	if !errors.As(err, &wrong) {
		f.add(0, "%v", err)
		return
	}
	f.add(wrong.StartLine, "%v, at line %d, column %d", wrong.Err, wrong.Line, wrong.Column)
}

func blank(record []string) bool {
	return !slices.ContainsFunc(record, func(s string) bool { return strings.TrimSpace(s) != "" })
}

// header reads the first line; false if it's of no use.
func (r *rows) header(names []string) bool {
	before := len(r.found.list)
	r.column = make(map[string]int, len(names))
	if len(names) == 1 && strings.ContainsAny(names[0], ";\t") {
		r.found.add(1, "fields are separated by commas, not by semicolons or tabs")
		return false
	}
	if !slices.ContainsFunc(names, func(s string) bool { return slices.Contains(columns, plain(s)) }) {
		r.found.add(1, "must name the columns, such as %s", strings.Join(columns, ","))
		return false
	}
	for i, name := range names {
		name = plain(name)
		_, twice := r.column[name]
		switch {
		case !slices.Contains(columns, name):
			r.found.add(1, "there's no column %q; there are %s", name, strings.Join(columns, ", "))
		case twice:
			r.found.add(1, "column %s is there twice", name)
		}
		r.column[name] = i
	}
	for _, name := range needed {
		if _, ok := r.column[name]; !ok {
			r.found.add(1, "column %s is missing", name)
		}
	}
	_, x := r.column["x"]
	if _, y := r.column["y"]; x != y {
		r.found.add(1, "there's one of the columns x and y; give both or none")
	}
	return len(r.found.list) == before
}

// plain is a column's name however it's written.
func plain(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// line takes a seat.
func (r *rows) line(line int, record []string) {
	get := func(name string) string {
		if i, ok := r.column[name]; ok {
			return strings.TrimSpace(record[i])
		}
		return ""
	}
	seat := seats.Seat{
		Seat:       get("seat"),
		Accessible: r.flag(line, "accessible", get("accessible")),
		Aisle:      r.flag(line, "aisle", get("aisle")),
	}
	r.place(line, &seat, get("x"), get("y"))
	s := r.section(line, get("section"), get("tier"))
	r.agree(line, "section_name", "section "+get("section"), &s.name, get("section_name"))
	at := s.row(r.chart, get("row"))
	r.agree(line, "rank", "row "+get("section")+"-"+get("row"), &at.rank, get("rank"))
	label := seats.Label(get("section"), get("row"), seat.Seat)
	if before := r.seen[label]; before > 0 {
		r.found.add(line, "seat %s is in line %d already", label, before)
		return
	}
	r.seen[label] = line
	to := &r.chart.Sections[s.index].Rows[at.index].Seats
	*to, at.seats = append(*to, seat), append(at.seats, line)
}

// section finds or begins the section of a line.
func (r *rows) section(line int, name, tier string) *section {
	s := r.sections[name]
	if s == nil {
		s = &section{index: len(r.chart.Sections), rows: map[string]*row{}, line: line}
		r.sections[name] = s
		r.chart.Sections = append(r.chart.Sections, seats.Section{Section: name, Tier: ledger.Unit(tier)})
	}
	if of := string(r.chart.Sections[s.index].Tier); of != tier {
		r.found.add(line, "tier: is %q, but section %s is of tier %q since line %d; a section has one tier", tier, name, of, s.line)
	}
	return s
}

// row finds or begins a row of the section.
func (s *section) row(c *seats.Chart, name string) *row {
	at := s.rows[name]
	if at == nil {
		list := &c.Sections[s.index].Rows
		at = &row{index: len(*list)}
		s.rows[name], s.order = at, append(s.order, at)
		*list = append(*list, seats.Row{Row: name})
	}
	return at
}

// agree takes what a line says of its section or row: nothing, or the same as others.
func (r *rows) agree(line int, column, of string, n *note, text string) {
	switch {
	case text == "" || text == n.text:
	case n.line > 0:
		r.found.add(line, "%s: is %q, but %s has %q since line %d", column, text, of, n.text, n.line)
	default:
		*n = note{line, text}
	}
}

// place reads where a seat is. All seats have a place, or none has.
func (r *rows) place(line int, s *seats.Seat, x, y string) {
	placed := x != "" || y != ""
	if r.first == 0 {
		r.first, r.placed = line, placed
	}
	switch {
	case placed != r.placed && placed:
		r.found.add(line, "x and y: are given here, but not in line %d; give them for all seats or for none", r.first)
	case placed != r.placed:
		r.found.add(line, "x and y: are missing here, but not in line %d; give them for all seats or for none", r.first)
	case placed:
		s.X, s.Y = r.number(line, "x", x), r.number(line, "y", y)
	}
}

// flag reads a yes or no; nothing is no.
func (r *rows) flag(line int, column, text string) bool {
	switch strings.ToLower(text) {
	case "", "false", "no", "0":
		return false
	case "true", "yes", "1":
		return true
	}
	r.found.add(line, "%s: is %q; write true or false, yes or no, 1 or 0, or nothing for no", column, text)
	return false
}

func (r *rows) number(line int, column, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		r.found.add(line, "%s: is %q, not a whole number", column, text)
		return 0
	}
	return n
}

// end completes the chart by what some line of each section and row said. It's nil when
// there's none.
func (r *rows) end() source {
	if len(r.sections) == 0 {
		if len(r.found.list) == 0 {
			r.found.add(0, "there's no seat below the header")
		}
		return nil
	}
	for _, s := range r.sections {
		to := &r.chart.Sections[s.index]
		to.Name = s.name.text
		for _, at := range s.order {
			if at.rank.line > 0 {
				to.Rows[at.index].Rank = new(r.number(at.rank.line, "rank", at.rank.text))
			}
		}
	}
	return r
}

// find implements source.
func (r *rows) find(spots []spot) []place {
	byIndex := make([]*section, len(r.sections))
	for _, s := range r.sections {
		byIndex[s.index] = s
	}
	list := make([]place, len(spots))
	for i, at := range spots {
		to := place{name: at.field}
		if at.section >= 0 {
			s := byIndex[at.section]
			to.line = s.line
			if at.row >= 0 && len(s.order[at.row].seats) > 0 {
				to.line = s.order[at.row].seats[max(0, at.seat)]
			}
			switch {
			case at.field == "name":
				to = place{cmp.Or(s.name.line, s.line), "section_name"}
			case at.field == "seats":
				to.name = "row"
			case at.field == "rank":
				to.line = s.order[at.row].rank.line
			}
		}
		if !slices.Contains(columns, to.name) {
			to.name = ""
		}
		list[i] = to
	}
	return list
}
