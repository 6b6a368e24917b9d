package bench

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/pgtest"
)

// smallSeats is a run that takes a few seconds.
func smallSeats(t *testing.T, databaseURL string) Seats {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := DefaultSeats()
	s.DatabaseURL = databaseURL
	s.Clients, s.Duration, s.Size, s.MapReads, s.Followers = 8, time.Second, 600, 200, 20
	s.Server = []string{program, asServer}
	s.Stderr = t.Output()
	return s
}

func TestSeatsMeasureEverySystem(t *testing.T) {
	s := smallSeats(t, pgtest.New(t).URL())
	s.Baseline, s.Sellout, s.HoldSeconds = true, true, 1
	var systems []string
	s.Progress = func(p Progress) { systems = append(systems, p.System) }
	report, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"attempts_per_s", "holds_per_s", "p50_ms", "p95_ms", "p99_ms", "releases_per_s",
		"map_bytes_gzip", "map_p50_ms", "map_p99_ms", "map_reads_per_s", "map_not_modified",
		"delta_p50_ms", "delta_p99_ms", "deltas", "wal_bytes_per_hold", "batch_mean", "ratio_to_baseline",
		"sellout_seats", "sellout_held", "sellout_attempts", "verify_seconds"} {
		if n, ok := fields[name].(float64); !ok || n <= 0 {
			t.Errorf("%s is %v", name, fields[name])
		}
	}
	for _, name := range []string{"double_holds", "errors", "followers_cut", "delta_wrong", "sellout_refused_early"} {
		if fields[name] != 0.0 {
			t.Errorf("%s is %v", name, fields[name])
		}
	}
	if report.Refused["seat_unavailable"] == 0 || report.SelloutHeld != report.SelloutSeats || len(report.Systems) != 3 ||
		len(systems) == 0 {
		t.Errorf("%s", text)
	}
}

func TestSeatsInAnOpenLoop(t *testing.T) {
	s := smallSeats(t, pgtest.New(t).URL())
	s.Rate, s.Customers, s.Limit, s.MapReads, s.Followers, s.Sellout, s.AcceptSplit = 200, 10, 4, 0, 0, true, false
	report, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if n := report.Attempts + *report.Dropped; n != 200 || report.Refused["limit_exceeded"] == 0 || report.MapReport != nil || report.DeltaReport != nil {
		t.Errorf("%d attempts or dropped: %+v", n, report)
	}
}

func TestSeatsValidateNamesTheFlag(t *testing.T) {
	for flag, change := range map[string]func(*Seats){
		"--clients":      func(s *Seats) { s.Clients = 0 },
		"--duration":     func(s *Seats) { s.Duration = time.Millisecond },
		"--rate":         func(s *Seats) { s.Rate = maxRate + 1 },
		"--seats":        func(s *Seats) { s.Size = maxSeats + 1 },
		"--hold-seconds": func(s *Seats) { s.HoldSeconds = 0 },
		"--release":      func(s *Seats) { s.Release = 1.1 },
		"--customers":    func(s *Seats) { s.Customers = -1 },
		"--limit":        func(s *Seats) { s.Limit = -1 },
		"--map-readers":  func(s *Seats) { s.MapReads = -1 },
		"--followers":    func(s *Seats) { s.Followers = -1 },
	} {
		s := DefaultSeats()
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&s)
		if err := s.Validate(); err == nil || !strings.HasPrefix(err.Error(), flag) {
			t.Errorf("%s: got %v", flag, err)
		}
	}
}

func TestSeatsReportNamesWhatIsWrong(t *testing.T) {
	for says, change := range map[string]func(*SeatsReport){
		"an invariant":         func(r *SeatsReport) { r.Verified = false },
		"2 seats were given":   func(r *SeatsReport) { r.DoubleHolds = 2 },
		"the changes told 4":   func(r *SeatsReport) { r.DeltaReport = &DeltaReport{DeltaWrong: 4} },
		"3 requests failed: x": func(r *SeatsReport) { r.fail(3, []string{"x"}) },
	} {
		r := SeatsReport{Verified: true}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		change(&r)
		if err := r.Err(); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: got %v", says, err)
		}
	}
}

func TestHouse(t *testing.T) {
	h := newHouse(50_000, true)
	if len(h.sections) != 50 || h.hot != 1 || len(h.rows) != 2000 || len(h.labels) != 50_000 || len(h.numbers) != 50_000 {
		t.Errorf("%d sections, %d hot, %d rows, %d labels, %d numbers", len(h.sections), h.hot, len(h.rows), len(h.labels), len(h.numbers))
	}
	if h.labels[1000] != "S02-1-1" || h.tiers[24] != frontTier || h.tiers[25] != backTier || len(h.rowsOf(49)) != 40 {
		t.Errorf("seat 1000 is %s; tiers %v", h.labels[1000], h.tiers)
	}
	if !h.together([]int32{3, 1, 2}) || h.together([]int32{1, 3}) || h.together([]int32{24, 25}) {
		t.Error("together: seats side by side in one row")
	}
	for _, seats := range []int{minSeats, 333, 1501} {
		h := newHouse(seats, false)
		var chart struct{ Sections []chartSection }
		if err := json.Unmarshal(h.chart, &chart); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, s := range chart.Sections {
			for _, r := range s.Rows {
				n += len(r.Seats)
			}
		}
		if n != seats || len(h.labels) != seats {
			t.Errorf("%d seats, %d labels, want %d", n, len(h.labels), seats)
		}
	}
}

func TestSeatAsksAreRepeatableAndMixed(t *testing.T) {
	s := DefaultSeats()
	o := &office{Seats: &s, event: "e", house: newHouse(s.Size, true)}
	var named, hot, sections, tiers, split, released, shuffled int
	const asks = 4000
	for n := range int64(asks) {
		a := o.ask("run", n)
		text := string(a.append(nil, o.house))
		again := o.ask("run", n)
		if text != string(again.append(nil, o.house)) || a.key != again.key || a.release != again.release {
			t.Fatalf("ask %d: %s", n, text)
		}
		if !json.Valid([]byte(text)) || a.quantity < 1 || a.quantity > maxSeatsPerHold {
			t.Fatalf("ask %d: %s", n, text)
		}
		switch {
		case a.seats != nil:
			named++
			if o.house.rowOf(a.seats[0]).section == 0 {
				hot++
			}
			if !o.house.together(a.seats) || !a.fits(a.seats, o.house) {
				t.Fatalf("ask %d: %s", n, text)
			}
			if len(a.seats) > 1 && a.seats[0] > a.seats[1] {
				shuffled++
			}
		case a.section != "":
			sections++
		default:
			tiers++
		}
		if a.split {
			split++
		}
		if a.release {
			released++
		}
	}
	for name, x := range map[string]struct{ n, of, percent int }{
		"named": {named, asks, 50}, "hot": {hot, named, 80}, "by section": {sections, asks, 25},
		"by tier": {tiers, asks, 25}, "split": {split, sections + tiers, 25}, "released": {released, asks, 60},
	} {
		if share := 100 * x.n / x.of; share < x.percent-4 || share > x.percent+4 {
			t.Errorf("%s: %d %%, want about %d", name, share, x.percent)
		}
	}
	if shuffled < named/4 {
		t.Errorf("%d of %d groups name their seats from right to left", shuffled, named)
	}
}

func TestAnswersMustFit(t *testing.T) {
	h := newHouse(2000, false)
	for name, x := range map[string]struct {
		ask   seatAsk
		seats []int32
		fits  bool
	}{
		"others":          {seatAsk{seats: []int32{1, 2}, quantity: 2}, []int32{1, 3}, false},
		"another order":   {seatAsk{seats: []int32{1, 2}, quantity: 2}, []int32{2, 1}, true},
		"twice":           {seatAsk{quantity: 2}, []int32{1, 1}, false},
		"too few":         {seatAsk{quantity: 2}, []int32{1}, false},
		"another section": {seatAsk{quantity: 1, section: "S01"}, []int32{1999}, false},
		"another tier":    {seatAsk{quantity: 1, tier: frontTier}, []int32{1999}, false},
		"its tier":        {seatAsk{quantity: 1, tier: backTier}, []int32{1999}, true},
	} {
		if got := x.ask.fits(x.seats, h); got != x.fits {
			t.Errorf("%s: %t", name, got)
		}
	}
}
