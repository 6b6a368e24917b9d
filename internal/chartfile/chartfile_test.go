package chartfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/seats"
)

// The scripts read files and print what is wrong with them, or the event and the chart
// that they make.
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			text := d.Input
			if d.HasArg("escaped") { // \n, \x.. and the like stand for themselves
				if _, err := fmt.Sscanf(`"`+text+`"`, "%q", &text); err != nil {
					d.Fatalf(t, "%v", err)
				}
			}
			f, err := Read(strings.NewReader(text))
			if err != nil {
				return err.Error() + "\n"
			}
			return describe(f)
		})
	})
}

// describe writes a file's content, a row of seats a line.
func describe(f *File) string {
	var b strings.Builder
	if f.Spec != nil {
		fmt.Fprintf(&b, "event %s: %s\n", f.Event, f.Spec)
	}
	for i, n := range f.Chart.View() {
		fmt.Fprintf(&b, "%s (%s) of %s: rows %d, seats %d, accessible %d\n", n.Section, n.Name, n.Tier, n.Rows, n.Seats, n.Accessible)
		for _, r := range f.Chart.Sections[i].Rows {
			fmt.Fprintf(&b, "  %s", r.Row)
			if r.Rank != nil {
				fmt.Fprintf(&b, " rank %d", *r.Rank)
			}
			b.WriteByte(':')
			for _, s := range r.Seats {
				fmt.Fprintf(&b, " %s@%d,%d", s.Seat, s.X, s.Y)
				if s.Accessible {
					b.WriteString("+accessible")
				}
				if s.Aisle {
					b.WriteString("+aisle")
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// The keys come from the content: another chart of the same event is loaded under a key
// of its own, into the event that is there.
func TestKeys(t *testing.T) {
	t.Parallel()
	read := func(event, seat string) *File {
		f, err := Read(strings.NewReader(fmt.Sprintf(`{"event":%q,"tiers":[{"tier":"t","seated":true}],
			"seating":{"sections":[{"section":"A","tier":"t","rows":[{"row":"1","seats":[{"seat":%q}]}]}]}}`, event, seat)))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f, other, renamed := read("e", "1"), read("e", "2"), read("f", "1")
	if again := read("e", "1"); f.EventKey() != again.EventKey() || f.ChartKey("e") != again.ChartKey("e") {
		t.Error("the same file has other keys")
	}
	if f.EventKey() != other.EventKey() || f.ChartKey("e") == other.ChartKey("e") {
		t.Errorf("another chart: keys %s, %s and %s, %s", f.EventKey(), other.EventKey(), f.ChartKey("e"), other.ChartKey("e"))
	}
	if f.EventKey() == renamed.EventKey() || f.ChartKey("e") == f.ChartKey("f") {
		t.Error("another event has the same keys")
	}
	if key := f.ChartKey("e"); len(key) > 255 || strings.ContainsAny(key, " \"") {
		t.Errorf("%q can't be an idempotency key", key)
	}
}

// A file that is too long isn't read to its end.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	if _, err := Read(endless{}); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("got %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// Whatever the chart: on the grid no two seats are in one place, those of a row stand in
// its order, and the same chart comes out the same.
func TestGrid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawChart(t)
		arrange(&c)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		taken := map[[2]int]bool{}
		for _, s := range c.Sections {
			for _, r := range s.Rows {
				for i, seat := range r.Seats {
					at := [2]int{seat.X, seat.Y}
					if taken[at] {
						t.Fatalf("two seats at %v", at)
					}
					taken[at] = true
					if i > 0 && (seat.X <= r.Seats[i-1].X || seat.Y != r.Seats[i-1].Y) {
						t.Fatalf("seat %s of row %s-%s is at %v, the one before it at %d", seat.Seat, s.Section, r.Row, at, r.Seats[i-1].X)
					}
				}
			}
		}
	})
}

func drawChart(t *rapid.T) seats.Chart {
	var c seats.Chart
	for i := range rapid.IntRange(1, 12).Draw(t, "sections") {
		s := seats.Section{Section: fmt.Sprint(i), Tier: "t"}
		for j := range rapid.IntRange(1, 20).Draw(t, "rows") {
			r := seats.Row{Row: fmt.Sprint(j)}
			for k := range rapid.IntRange(1, 30).Draw(t, "seats") {
				r.Seats = append(r.Seats, seats.Seat{Seat: fmt.Sprint(k), Aisle: rapid.IntRange(0, 9).Draw(t, "aisle") == 0})
			}
			s.Rows = append(s.Rows, r)
		}
		c.Sections = append(c.Sections, s)
	}
	return c
}

// A row that is too long is told by its first seat's line; too many seats by no line.
func TestLimits(t *testing.T) {
	t.Parallel()
	file := func(rows, seats int) string {
		var b strings.Builder
		b.WriteString("section,row,seat,tier\nA,first,1,t\n")
		for i := range rows {
			for j := range seats {
				fmt.Fprintf(&b, "A,%d,%d,t\n", i, j)
			}
		}
		return b.String()
	}
	for want, text := range map[string]string{
		"line 3: row: a row has 1 to 200 seats, this has 201":      file(1, 201),
		"an event has at most 100000 seats, this chart has 100001": file(500, 200),
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if f, err := Read(strings.NewReader(file(499, 200))); err != nil || f.Chart.Size() != 99_801 {
		t.Errorf("got %v", err)
	}
}

// The largest charts that there may be fit their drawing.
func TestGridBounds(t *testing.T) {
	t.Parallel()
	for _, shape := range []struct{ sections, rows, seats int }{
		{1, seats.MaxSeats, 1}, {1000, 100, 1}, {1000, 1, 100}, {1, 500, 200}, {50, 40, 50},
	} {
		var c seats.Chart
		for i := range shape.sections {
			s := seats.Section{Section: fmt.Sprint(i), Tier: "t"}
			for j := range shape.rows {
				r := seats.Row{Row: fmt.Sprint(j)}
				for k := range shape.seats {
					r.Seats = append(r.Seats, seats.Seat{Seat: fmt.Sprint(k), Aisle: true})
				}
				s.Rows = append(s.Rows, r)
			}
			c.Sections = append(c.Sections, s)
		}
		arrange(&c)
		if err := c.Validate(); err != nil {
			t.Errorf("%+v: %v", shape, err)
		}
	}
}

// Both forms of a chart are one chart.
func TestFormsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawChart(t)
		asJSON, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var asCSV strings.Builder
		asCSV.WriteString("seat,row,section,tier,aisle\n")
		for _, s := range c.Sections {
			for _, r := range s.Rows {
				for _, seat := range r.Seats {
					fmt.Fprintf(&asCSV, "%s,%s,%s,%s,%t\n", seat.Seat, r.Row, s.Section, s.Tier, seat.Aisle)
				}
			}
		}
		a, errA := Read(strings.NewReader(string(asJSON)))
		b, errB := Read(strings.NewReader(asCSV.String()))
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		if x, y := describe(a), describe(b); x != y {
			t.Fatalf("JSON is\n%sCSV is\n%s", x, y)
		}
	})
}

// No file makes the reader fail in another way than by telling problems, and what it
// accepts is valid.
func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob("testdata/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for part := range strings.SplitSeq(string(text), "\n\n") {
			_, part, _ = strings.Cut(part, "read\n")
			part, _, _ = strings.Cut(part, "\n----")
			f.Add(part)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Read(strings.NewReader(text))
		var wrong *Problems
		switch {
		case err != nil && !errors.As(err, &wrong):
			t.Fatalf("%v isn't a list of problems", err)
		case err != nil && (len(wrong.List) == 0 || len(wrong.List) > MaxProblems):
			t.Fatalf("%d problems", len(wrong.List))
		case err == nil && file.Chart.Validate() != nil:
			t.Fatalf("accepted: %v", file.Chart.Validate())
		}
	})
}
