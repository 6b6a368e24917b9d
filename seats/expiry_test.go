package seats_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/seats"
)

// Seats can be had when their hold's time is over, with no sweeper: by name, and as the
// best although nothing was free.
func TestSeatsComeBackOnTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line holds.Line
		want string
	}{
		"by name":  {named("A-1-3"), "aahaaa"},
		"the best": {best(6), "hhhhhh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHall(t, chart(section("A", "front", 1, 6)))
			first := h.take("ann", named("A-1-1", "A-1-2", "A-1-3"))
			h.take("bob", named("A-1-4", "A-1-5", "A-1-6"))
			_, err := h.place("cid", c.line)
			switch {
			case c.line.Seats != nil:
				taken, _ := field(err, "seats").([]seats.Taken)
				if len(taken) != 1 || !taken[0].MayReturnAt.Equal(first.ExpiresAt) {
					t.Errorf("got %v, %+v", err, taken)
				}
			case !errors.Is(err, holds.ErrTemporarilyHeld) || field(err, "retry_at") != first.ExpiresAt.Format(time.RFC3339Nano):
				t.Errorf("got %v", err)
			}
			h.runOut()
			h.want("hhhhhh") // nobody has asked yet
			h.take("cid", c.line)
			h.want(c.want)
		})
	}
}

// More holds are due than a batch expires: who asks is judged when all of them have.
func TestMoreIsDueThanABatchTakes(t *testing.T) {
	t.Parallel()
	const rows, perRow = 10, 60
	for name, lines := range map[string][]holds.Line{
		"the best":                {best(6)},
		"by name":                 {named("A-10-55", "A-10-56", "A-10-57", "A-10-58", "A-10-59", "A-10-60")},
		"by name, and the best":   {named("A-10-60"), best(5)},
		"and tickets beside them": {best(6), {Tier: "ga", Quantity: 10}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openHall(t, chart(section("A", "front", rows, perRow)))
			if granted, refused := pgtest.Rush(rows*perRow, func(i int) error {
				_, err := h.place(fmt.Sprint("c", i), named(fmt.Sprintf("A-%d-%d", i/perRow+1, i%perRow+1)))
				return err
			}); granted != rows*perRow {
				t.Fatal(refused)
			}
			h.runOut()
			hold := h.take("buyer", lines...)
			if n := len(holds.Seats(hold.Items)); n != 6 {
				t.Errorf("%d seats", n)
			}
			if n := h.query(`SELECT count(*)::text FROM seats WHERE state = 'held'`); n[0] != "6" {
				t.Errorf("%s seats are held", n)
			}
		})
	}
}

// Everything that ends a hold with seats at once, through two processes: each ends once,
// and each seat is free or of a hold that's open.
func TestEverythingThatEndsAHoldAtOnce(t *testing.T) {
	t.Parallel()
	const n = 300
	h := openHall(t, chart(section("A", "front", 10, n/10)))
	processes := []*hall{h, h.another()}
	list := make([]holds.Hold, n)
	if granted, refused := pgtest.Rush(n, func(i int) (err error) {
		list[i], err = h.place(fmt.Sprint("c", i), named(fmt.Sprintf("A-%d-%d", i%10+1, i/10+1)))
		return err
	}); granted != n {
		t.Fatal(refused)
	}
	h.db.Except("holds_recorded")
	h.exec(`WITH due AS (UPDATE holds SET expires_at = now() WHERE right(customer, 1) < '5' RETURNING hold_id)
		UPDATE seats SET until = now() WHERE hold_id IN (SELECT hold_id FROM due)`)
	granted, refused := pgtest.Rush(4*n, func(i int) error {
		p := processes[i%2]
		switch i / 2 % 4 {
		case 0, 1:
			return p.release(list[i/4].ID)
		case 2:
			_, err := p.place("next", best(1))
			return err
		}
		_, err := p.Holds.Sweep(context.Background())
		return err
	})
	delete(refused, "temporarily_held")
	if len(refused) > 0 || granted == 0 {
		t.Errorf("%d granted, refused %v", granted, refused)
	}
}

// A row of which nothing is free and nothing may come back isn't read.
func TestAFullRowIsNotRead(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 4, 2), section("B", "back", 1, 2)))
	h.block("A-1-1", "A-1-2")
	h.take("ann", named("A-2-1", "A-2-2"))
	h.block("A-3-1")
	for name, c := range map[string]struct {
		sections, tiers []string
		any             bool
		want            string
	}{
		"any":         {nil, nil, true, "[1 hh 2 ba 3 aa 4 aa]"},
		"of a tier":   {nil, []string{"front"}, false, "[1 hh 2 ba 3 aa]"},
		"a section's": {[]string{"B"}, nil, false, "[4 aa]"},
		"both":        {[]string{"B"}, []string{"front"}, false, "[1 hh 2 ba 3 aa 4 aa]"},
		"of none":     {[]string{"C"}, []string{"ga"}, false, "[]"},
	} {
		rows, err := h.owner.Query(t.Context(), seats.Statements["sqlBatchRows"], int64(gigJournal), c.sections, c.tiers, c.any)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			var number int
			var states string
			err := row.Scan(&number, &states)
			return fmt.Sprint(number, " ", states), err
		})
		slices.Sort(got)
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s: got %v, want %s; %v", name, got, c.want, err)
		}
	}
}

// A process that never saw the chart expires and releases its seats, and sells them by name
// and as the best; one that loaded a part of it before another loaded the rest, too.
func TestAProcessThatNeverSawTheChart(t *testing.T) {
	t.Parallel()
	h := openHall(t, nil)
	early := h.another() // it knows the event without a chart
	if _, err := early.place("ann", best(1)); !errors.Is(err, holds.ErrSoldOut) {
		t.Errorf("without a chart: %v", err)
	}
	h.load(*chart(section("A", "front", 2, 4)))
	first := h.take("ann", named("A-1-1", "A-1-2"))
	h.take("bob", named("A-1-3"))
	if err := h.another().release(first.ID); err != nil {
		t.Fatal(err)
	}
	h.want("aaha aaaa")
	h.runOut()
	if _, err := h.another().Holds.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.want("aaaa aaaa")
	if got := labelsOf(early.take("cid", best(4))); got != "A-1-1 A-1-2 A-1-3 A-1-4" {
		t.Errorf("cid got %s", got)
	}
	h.load(*chart(section("B", "back", 1, 4))) // early knows A alone
	if got := labelsOf(early.take("dan", named("B-1-1", "A-2-1"))); got != "B-1-1 A-2-1" {
		t.Errorf("dan got %s", got)
	}
	line := holds.Line{BestAvailable: &seats.Best{Quantity: 3, Tier: "back"}}
	if got := labelsOf(h.another().take("eve", line)); got != "B-1-2 B-1-3 B-1-4" {
		t.Errorf("eve got %s", got)
	}
	early.load(*chart(section("C", "back", 1, 2))) // from a process that had to learn B
	if _, err := early.Seats.Load(t.Context(), "tester", early.key(), "gig", *chart(section("B", "back", 1, 1))); !errors.Is(err, seats.ErrSectionExists) {
		t.Errorf("a section of another process: %v", err)
	}
	if got := labelsOf(h.take("fay", holds.Line{BestAvailable: &seats.Best{Quantity: 2, Section: "C"}})); got != "C-1-1 C-1-2" {
		t.Errorf("fay got %s", got)
	}
	h.want("hhhh haaa hhhh hh")
}

// Charts that are loaded by many processes at once, while others buy what's there already.
func TestChartsLoadedWhileOthersBuy(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("S", "front", 1, 6)))
	processes := []*hall{h, h.another(), h.another()}
	const loads = 30
	granted, refused := pgtest.Rush(3*loads, func(i int) error {
		p := processes[i%3]
		if i%2 == 0 { // every section twice: one of each is refused
			name := fmt.Sprint("X", i/4)
			_, err := p.Seats.Load(context.Background(), "tester", p.key(), "gig", *chart(section(name, "back", 2, 3)))
			return err
		}
		_, err := p.place(fmt.Sprint("c", i), holds.Line{BestAvailable: &seats.Best{Quantity: 3}})
		return err
	})
	for code := range refused {
		if !slices.Contains([]string{"section_exists", "temporarily_held", "not_together"}, code) {
			t.Errorf("refused with %s", code)
		}
	}
	if refused["section_exists"] != 22 {
		t.Errorf("%d granted, refused %v", granted, refused)
	}
	a, err := h.Events.Availability(t.Context(), "gig")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(a.Tiers, func(t buckets.TierAvailability) bool { return t.Tier == "back" })
	if back := a.Tiers[i]; back.Available+back.Held != 23*6 {
		t.Errorf("%+v", back)
	}
}
