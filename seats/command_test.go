package seats_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// refused compares an error's code, and the field that it names.
func (h *hall) refused(err error, want *fault.Def, name string) {
	h.Helper()
	if f := fault.As(err); f == nil || f.Def != want || name != "" && field(err, "field") != name {
		h.Errorf("got %v, want %s of %q", err, want.Code, name)
	}
}

// A chart is loaded whole or not at all, once, and says where it's wrong.
func TestChartsThatAreRefused(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 2, 3)))
	big := section("B", "back", 1, seats.MaxRowSeats+1)
	twice := section("B", "back", 2, 3)
	twice.Rows[1].Seats[2].Seat = "1"
	rowTwice := section("B", "back", 2, 3)
	rowTwice.Rows[1].Row = "1"
	ranked := section("B", "back", 1, 1)
	ranked.Rows[0].Rank = new(-1)
	far := section("B", "back", 1, 1)
	far.Rows[0].Seats[0].Y = seats.MaxCoordinate + 1
	tooMany := make([]seats.Section, 5)
	for i := range tooMany {
		tooMany[i] = section(fmt.Sprint("T", i), "back", 100, seats.MaxRowSeats)
	}
	before := h.written()
	for name, c := range map[string]struct {
		sections []seats.Section
		want     *fault.Def
		field    string
	}{
		"no sections":           {nil, fault.ErrInvalidRequest, "sections"},
		"an unknown tier":       {[]seats.Section{section("B", "box", 1, 1)}, buckets.ErrTierNotFound, ""},
		"a tier without seats":  {[]seats.Section{section("B", "ga", 1, 1)}, fault.ErrInvalidRequest, "sections[0].tier"},
		"a known section":       {[]seats.Section{section("B", "back", 1, 1), section("A", "back", 1, 1)}, seats.ErrSectionExists, ""},
		"a section twice":       {[]seats.Section{section("B", "back", 1, 1), section("B", "back", 1, 1)}, fault.ErrInvalidRequest, "sections[1].section"},
		"a dash":                {[]seats.Section{section("B-1", "back", 1, 1)}, fault.ErrInvalidRequest, "sections[0].section"},
		"a row of too many":     {[]seats.Section{big}, fault.ErrInvalidRequest, "sections[0].rows[0].seats"},
		"a row of none":         {[]seats.Section{section("B", "back", 1, 0)}, fault.ErrInvalidRequest, "sections[0].rows[0].seats"},
		"no rows":               {[]seats.Section{section("B", "back", 0, 0)}, fault.ErrInvalidRequest, "sections[0].rows"},
		"a seat twice":          {[]seats.Section{twice}, fault.ErrInvalidRequest, "sections[0].rows[1].seats[2].seat"},
		"a row twice":           {[]seats.Section{rowTwice}, fault.ErrInvalidRequest, "sections[0].rows[1].row"},
		"a rank below the best": {[]seats.Section{ranked}, fault.ErrInvalidRequest, "sections[0].rows[0].rank"},
		"too far":               {[]seats.Section{far}, fault.ErrInvalidRequest, "sections[0].rows[0].seats[0].y"},
		"more than fit":         {tooMany, fault.ErrInvalidRequest, "sections"},
	} {
		t.Log(name)
		_, err := h.Seats.Load(t.Context(), "tester", h.key(), "gig", seats.Chart{Sections: c.sections})
		h.refused(err, c.want, c.field)
	}
	_, err := h.Seats.Load(t.Context(), "tester", h.key(), "nope", *chart(section("B", "back", 1, 1)))
	h.refused(err, buckets.ErrEventNotFound, "")
	if after := h.written(); !slices.Equal(after, before) {
		t.Errorf("the database has %q, had %q", after, before)
	}
}

// The same load under the same key is the same load.
func TestALoadIsRepeated(t *testing.T) {
	t.Parallel()
	h := openHall(t, nil)
	first, err := h.Seats.Load(t.Context(), "tester", "load", "gig", *chart(section("A", "front", 2, 3)))
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.another().Seats.Load(t.Context(), "tester", "load", "gig", *chart(section("A", "front", 2, 3)))
	if err != nil || !again.Replayed || string(again.Data) != string(first.Data) {
		t.Errorf("first %s, then %s: %v", first.Data, again.Data, err)
	}
	_, err = h.Seats.Load(t.Context(), "tester", "load", "gig", *chart(section("A", "front", 2, 4)))
	h.refused(err, ledger.ErrIdempotencyMismatch, "")
	var v seats.ChartView
	if err := json.Unmarshal(first.Data, &v); err != nil || v.Seats != 6 || v.Version != first.Seq || v.Sections[0].Rows != 2 {
		t.Errorf("%s: %v", first.Data, err)
	}
}

// Seats are blocked all or none, and a seat tells what it is in each state.
func TestBlocksAndWhatASeatSays(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 1, 5), section("B", "back", 1, 1)))
	ctx := t.Context()
	hold := h.take("ann", named("A-1-2"))
	block := func(do func(context.Context, string, string, string, seats.BlockRequest, bool) (ledger.Receipt, error),
		dry bool, r seats.BlockRequest) error {
		r.Reason = "camera"
		_, err := do(ctx, "tester", h.key(), "gig", r, dry)
		return err
	}
	if err := block(h.Seats.Block, true, seats.BlockRequest{Seats: []string{"A-1-1"}}); err != nil {
		t.Error(err)
	}
	h.want("ahaaa a")
	h.refused(block(h.Seats.Block, false, seats.BlockRequest{Seats: []string{"A-1-1", "A-1-2"}}), seats.ErrSeatUnavailable, "")
	h.refused(block(h.Seats.Block, false, seats.BlockRequest{Seats: []string{"A-1-1", "A-9-2"}}), seats.ErrSeatNotFound, "")
	h.refused(block(h.Seats.Block, false, seats.BlockRequest{Seats: []string{"A-1-1", "A-1-1"}}), fault.ErrInvalidRequest, "seats[1]")
	h.refused(block(h.Seats.Block, false, seats.BlockRequest{Seats: []string{"A-1-1"}, Allotment: "a b"}), fault.ErrInvalidRequest, "allotment")
	h.refused(block(h.Seats.Unblock, false, seats.BlockRequest{Seats: []string{"A-1-1"}}), seats.ErrNotBlocked, "")
	h.want("ahaaa a")
	if err := block(h.Seats.Block, false, seats.BlockRequest{Seats: []string{"A-1-4", "B-1-1"}, Allotment: "press"}); err != nil {
		t.Fatal(err)
	}
	h.block("A-1-5")
	h.refused(block(h.Seats.Unblock, false, seats.BlockRequest{Seats: []string{"A-1-4"}, Allotment: "press"}), fault.ErrInvalidRequest, "allotment")
	h.want("ahabb b")
	_, err := h.place("bob", named("A-1-4", "A-1-5"))
	if taken, _ := field(err, "seats").([]seats.Taken); len(taken) != 2 || taken[0] != (seats.Taken{Seat: "A-1-4", Reason: seats.OtherAllotment}) ||
		taken[1] != (seats.Taken{Seat: "A-1-5", Reason: "blocked"}) {
		t.Errorf("got %v, %+v", err, taken)
	}
	for label, want := range map[string]string{
		"A-1-1": `{"seat":"A-1-1","section":"A","row":"1","tier":"front","state":"available","version":2}`,
		"A-1-2": fmt.Sprintf(`{"seat":"A-1-2","section":"A","row":"1","tier":"front","state":"held","hold_id":%q,"until":%q,"version":3}`,
			hold.ID, hold.ExpiresAt.Format("2006-01-02T15:04:05.999999Z07:00")),
		"B-1-1": `{"seat":"B-1-1","section":"B","row":"1","tier":"back","state":"blocked","allotment":"press","version":4}`,
	} {
		v, err := h.Seats.Get(ctx, "gig", label)
		if v.Until != nil {
			*v.Until = v.Until.UTC()
		}
		if text, _ := json.Marshal(v); err != nil || string(text) != want {
			t.Errorf("%s: got %s, want %s: %v", label, text, want, err)
		}
	}
	_, err = h.Seats.Get(ctx, "gig", "A-1-9")
	h.refused(err, seats.ErrSeatNotFound, "")
}

// The database refuses what no decision may do, whoever asks with the service's rights.
func TestTheDatabaseRefuses(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 1, 3)))
	h.take("ann", named("A-1-2"))
	conn, err := pgx.Connect(t.Context(), h.db.ServiceURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	const denied = "42501"
	for sql, want := range map[string]string{
		`UPDATE seats SET state = 'lost'`:       "seats_state",
		`UPDATE seats SET hold_id = NULL`:       "seats_hold",
		`UPDATE seats SET until = NULL`:         "seats_until",
		`UPDATE seats SET until = now()`:        "seats_until",
		`UPDATE seats SET allotment = 'press'`:  "seats_allotment",
		`UPDATE seat_rows SET states = ''`:      "seat_rows_states",
		`UPDATE seat_rows SET states = 'xyz'`:   "seat_rows_states",
		`INSERT INTO seats SELECT * FROM seats`: "seats_pkey",
		`INSERT INTO seats SELECT (json_populate_record(s, '{"seat":"A-1-9"}')).* FROM seats s`:               "seats_place_key",
		`INSERT INTO seat_rows SELECT * FROM seat_rows`:                                                       "seat_rows_pkey",
		`INSERT INTO seat_sections SELECT * FROM seat_sections`:                                               "seat_sections_pkey",
		`INSERT INTO seat_sections SELECT (json_populate_record(s, '{"position":9}')).* FROM seat_sections s`: "seat_sections_section_key",
		`INSERT INTO seat_changes SELECT * FROM seat_changes`:                                                 "seat_changes_pkey",
		`UPDATE seats SET seat = 'A-1-9'`:                                                                     denied,
		`UPDATE seats SET tier = 'back'`:                                                                      denied,
		`UPDATE seats SET place = 7`:                                                                          denied,
		`UPDATE seat_rows SET tier = 'back'`:                                                                  denied,
		`UPDATE seat_sections SET name = 'x'`:                                                                 denied,
		`UPDATE seat_changes SET state = 'sold'`:                                                              denied,
		`DELETE FROM seats`:                                                                                   denied,
		`DELETE FROM seat_rows`:                                                                               denied,
		`DELETE FROM seat_sections`:                                                                           denied,
		`DELETE FROM seat_changes`:                                                                            denied,
	} {
		_, err := conn.Exec(t.Context(), sql)
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.ConstraintName != want && e.Code != want {
			t.Errorf("%s: %v", sql, err)
		}
	}
}
