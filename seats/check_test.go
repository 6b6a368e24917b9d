package seats_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/seats"
)

// violations counts what the checks of seats and of their holds find.
func (h *hall) violations() map[string]int {
	h.Helper()
	found := map[string]int{}
	for _, c := range slices.Concat(seats.Checks(), holds.Checks()) {
		if list := h.query(c.SQL, nil); len(list) > 0 {
			found[c.Name] = len(list)
		}
	}
	return found
}

// sabotage is what a wrong program or person could do to the rows, each with a check that
// finds it.
var sabotage = []struct{ check, sql string }{
	{"seats_charted", `DELETE FROM seats WHERE seat = 'A-2-4'`},
	{"seats_charted", `UPDATE seats SET seat = 'A-2-5' WHERE seat = 'A-2-4'`},
	{"seats_charted", `UPDATE seats SET place = 7 WHERE seat = 'A-2-4'`},
	{"seats_charted", `UPDATE seats SET row_number = 7 WHERE seat = 'A-2-4'`},
	{"seats_charted", `UPDATE seats SET tier = 'back' WHERE seat = 'A-2-4'`},
	{"seats_charted", `UPDATE seat_sections SET rows = replace(rows::text, '"seat":"4"', '"seat":"5"')::json`},
	{"seats_charted", `UPDATE seat_sections SET position = 2 - position`},
	{"seats_charted", `DELETE FROM seat_sections WHERE section = 'B'`},
	{"seats_charted", `INSERT INTO seats VALUES (1, 'Z-1-1', 9, 0, 'front', 'available', NULL, NULL, '', 2)`},
	{"seats_balanced", `UPDATE seats SET state = 'blocked' WHERE seat = 'A-2-4'`},
	{"seats_balanced", `UPDATE seats SET state = 'sold', until = NULL WHERE seat = 'A-1-2'`},
	{"seats_balanced", `UPDATE accounts SET balance = balance + 1 WHERE code = 'available' AND unit = 'front'`},
	{"seats_balanced", `UPDATE accounts SET balance = balance - 1 WHERE code = 'capacity' AND unit = 'back'`},
	{"seats_balanced", `UPDATE tiers SET seated = false WHERE tier = 'back'`},
	{"seats_balanced", `UPDATE tiers SET seated = true WHERE tier = 'ga'`},
	{"seats_summarized", `UPDATE seat_rows SET states = reverse(states) WHERE row_number = 0`},
	{"seats_summarized", `UPDATE seat_rows SET version = version + 1 WHERE row_number = 0`},
	{"seats_summarized", `UPDATE seat_rows SET tier = 'back' WHERE row_number = 0`},
	{"seats_summarized", `UPDATE seat_rows SET section = 'B' WHERE row_number = 0`},
	{"seats_summarized", `DELETE FROM seat_rows WHERE row_number = 1`},
	{"seats_summarized", `INSERT INTO seat_rows VALUES (1, 9, 'A', 'front', 'a', 2)`},
	{"seats_recorded", `UPDATE seats SET hold_id = gen_random_uuid() WHERE seat = 'A-1-3'`},
	{"seats_recorded", `UPDATE seats SET hold_id = gen_random_uuid() WHERE seat = 'A-1-2'`},
	{"seats_recorded", `UPDATE seats SET version = version - 1 WHERE seat = 'A-1-4'`},
	{"seats_recorded", `UPDATE seats SET state = 'blocked' WHERE seat = 'A-2-1'`},
	{"seats_recorded", `DELETE FROM seat_changes WHERE 'A-1-4' = ANY (seats) AND state = 'blocked'`},
	{"seats_changed_legally", `UPDATE seat_changes SET hold_id = NULL WHERE state = 'held'`},
	{"seats_changed_legally", `UPDATE seat_changes SET hold_id = gen_random_uuid() WHERE state = 'available' AND hold_id IS NOT NULL`},
	{"seats_changed_legally", `UPDATE seat_changes SET hold_id = gen_random_uuid() WHERE state = 'blocked'`},
	{"seats_recorded", `UPDATE seat_changes SET state = 'sold' WHERE state = 'available' AND hold_id IS NOT NULL`},
	{"seats_changed_legally", `INSERT INTO seat_changes SELECT journal_id, seq + 100, line, state, hold_id, seats FROM seat_changes WHERE state = 'held'`},
	{"seats_changed_legally", `DELETE FROM seat_changes WHERE seq = 2`},
	{"seats_posted", `UPDATE seat_changes SET seats = seats[1:1] WHERE state = 'blocked'`},
	{"seats_posted", `UPDATE seat_changes SET seq = seq + 100 WHERE state = 'blocked'`},
	{"seats_posted", `UPDATE postings SET amount = amount - 1 WHERE account = 'available' AND unit = 'front' AND amount < 0`},
	{"seats_posted", `DELETE FROM postings WHERE account = 'available' AND unit = 'back' AND seq > 2`},
	{"seats_posted", `UPDATE postings SET amount = amount + 1 WHERE account LIKE 'held%' AND unit = 'front' AND amount > 0`},
	{"seats_posted", `UPDATE postings SET amount = amount + 1 WHERE account = 'blocked' AND unit = 'back'`},
	{"seats_posted", `UPDATE postings SET account = 'sold' WHERE account LIKE 'held%' AND unit = 'back'`},
	{"seats_posted", `DELETE FROM postings WHERE account = 'blocked'`},
	{"seats_posted", `UPDATE seat_changes SET state = 'sold' WHERE state = 'held' AND 'A-1-2' = ANY (seats)`},
	{"seats_posted", `UPDATE seat_changes SET state = 'blocked', hold_id = NULL WHERE state = 'held' AND 'A-1-2' = ANY (seats)`},
	{"seats_loaded", `UPDATE seat_sections SET position = position + 5`},
	{"seats_loaded", `UPDATE seat_sections SET position = position + 5 WHERE section = 'B'`},
	{"seats_loaded", `UPDATE seat_sections SET position = 2 - position`},
	{"seats_loaded", `UPDATE seat_sections SET name = 'zzz' WHERE section = 'B'`},
	{"seats_loaded", `UPDATE seat_sections SET tier = 'back' WHERE section = 'A'`},
	{"seats_loaded", `UPDATE seat_sections SET version = version - 1`},
	{"seats_loaded", `UPDATE seat_sections SET section = 'C' WHERE section = 'B'`},
	{"seats_loaded", `DELETE FROM seat_sections WHERE section = 'B'`},
	{"seats_loaded", `INSERT INTO seat_sections SELECT journal_id, 'C', 2, name, tier, rows, version FROM seat_sections WHERE section = 'B'`},
	{"seats_loaded", `UPDATE seat_sections SET rows = replace(rows::text, '"seat":"4"', '"accessible":true,"seat":"4"')::json`},
	{"seats_loaded", `UPDATE seat_sections SET rows = replace(rows::text, '"seat":"2"', '"aisle":true,"seat":"2"')::json WHERE section = 'B'`},
	{"seats_loaded", `UPDATE seat_sections SET rows = replace(rows::text, '"row":"1"', '"row":"1","rank":9')::json WHERE section = 'A'`},
	{"seats_loaded", `UPDATE seat_sections SET rows = replace(rows::text, '"x":10,', '"x":11,')::json WHERE section = 'B'`},
	{"seats_loaded", `UPDATE seat_sections SET rows = replace(rows::text, '"y":10', '"y":11')::json WHERE section = 'A'`},
	{"seats_loaded", `UPDATE entries SET data = replace(data::text, '"name":"B"', '"name":"Z"')::json WHERE kind = 'chart.loaded'`},
	{"seats_loaded", `UPDATE entries SET kind = 'chart.gone' WHERE kind = 'chart.loaded'`},
	{"seats_set_aside", `UPDATE seats SET allotment = 'other' WHERE seat = 'B-1-4'`},
	{"seats_set_aside", `UPDATE seats SET allotment = '' WHERE seat = 'B-1-4'`},
	{"seats_set_aside", `UPDATE seats SET allotment = 'press' WHERE seat = 'A-1-4'`},
	{"seats_set_aside", `UPDATE seats SET version = 2 WHERE seat = 'A-1-4'`},
	{"seats_set_aside", `UPDATE entries SET data = replace(data::text, '"allotment":"press"', '"allotment":"other"')::json WHERE kind = 'seats.blocked'`},
	{"seats_entered", `INSERT INTO seat_changes VALUES (1, 99, 0, 'held', gen_random_uuid(), '{A-2-4}')`},
	{"seats_entered", `INSERT INTO seat_changes VALUES (1, 2, 9, 'held', gen_random_uuid(), '{A-2-4}')`},
	{"seats_entered", `INSERT INTO seat_changes VALUES (1, 2, 9, 'blocked', NULL, '{A-2-4}')`},
	{"seats_entered", `INSERT INTO seat_changes VALUES (1, 3, 9, 'sold', gen_random_uuid(), '{A-2-4}')`},
	{"seats_entered", `INSERT INTO seat_changes VALUES (1, 3, 9, 'available', NULL, '{A-2-4}')`},
	{"seats_entered", `DELETE FROM entries WHERE kind = 'seats.blocked'`},
	{"seats_entered", `UPDATE entries SET kind = 'tier.changed' WHERE kind = 'hold.released'`},
	{"seats_of_holds", `UPDATE seats SET until = until + interval '1 microsecond' WHERE seat = 'A-1-2'`},
	{"seats_of_holds", `UPDATE holds SET expires_at = expires_at + interval '1 second'`},
	{"seats_of_holds", `UPDATE seats SET hold_id = gen_random_uuid() WHERE seat = 'A-1-2'`},
	{"seats_of_holds", `UPDATE seats SET state = 'available', until = NULL WHERE seat = 'A-1-2'`},
	{"seats_of_holds", `UPDATE seats SET state = 'held', until = now(), hold_id = gen_random_uuid() WHERE seat = 'A-2-4'`},
	{"seats_of_holds", `UPDATE holds SET status = 'held' WHERE customer = 'bob'`},
	{"seats_of_holds", `UPDATE holds SET status = 'expired' WHERE customer = 'ann'`},
	{"seats_of_holds", `UPDATE holds SET items = replace(items::text, 'A-1-2', 'A-2-4')::json WHERE customer = 'ann'`},
	{"seats_of_holds", `UPDATE holds SET items = replace(replace(items::text, '"tier":"front"', '"tier":"x"'), '"tier":"back"', '"tier":"front"')::json`},
	{"seats_counted", `UPDATE holds SET items = replace(items::text, '"seats":["A-1-2"],', '')::json`},
	{"seats_counted", `UPDATE holds SET items = replace(items::text, '["A-1-2"]', '["A-1-2","A-2-4"]')::json`},
	{"seats_counted", `UPDATE holds SET items = replace(items::text, '"tier":"back"', '"tier":"ga"')::json`},
}

// Each check finds what it's there for.
func TestChecksFindSabotage(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 2, 4), section("B", "back", 1, 4)))
	h.take("ann", named("A-1-2", "B-1-1"))
	came := h.take("bob", named("A-1-3"))
	if err := h.release(came.ID); err != nil {
		t.Fatal(err)
	}
	h.block("A-1-4", "A-2-1")
	h.unblock("A-2-1")
	h.must(h.Seats.Block(context.Background(), "tester", h.key(), "gig",
		seats.BlockRequest{Seats: []string{"B-1-4"}, Reason: "press", Allotment: "press"}, false))
	h.want("ahab aaaa haab")
	for i, c := range sabotage {
		t.Run(strconv.Itoa(i)+" "+c.check, func(t *testing.T) {
			h.exec(`BEGIN`)
			defer h.exec(`ROLLBACK`)
			if found := h.violations(); len(found) != 0 {
				t.Fatal(found)
			}
			h.exec(c.sql)
			if found := h.violations(); found[c.check] == 0 {
				t.Errorf("%s: it found %v", c.sql, found)
			}
		})
	}
}
