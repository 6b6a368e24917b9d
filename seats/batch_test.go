package seats_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// happened is what the event's entries did to a seat, in their order.
func (h *hall) happened(label string) []string {
	h.Helper()
	return h.query(`SELECT c.state || ' by ' || e.kind FROM seat_changes c JOIN entries e USING (journal_id, seq)
		WHERE $1 = ANY (c.seats) ORDER BY c.seq, c.line`, label)
}

func (h *hall) wantHappened(label string, want ...string) {
	h.Helper()
	if got := h.happened(label); fmt.Sprint(got) != fmt.Sprint(want) {
		h.Errorf("%s: got %q, want %q", label, got, want)
	}
}

// A seat that changes several times in one batch ends as the last change says, and every
// change is recorded; the names and the best see what came before.
func TestASeatChangesOftenInABatch(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 2, 4)))
	ann := h.take("ann", named("A-1-1", "A-1-2"))
	var bob, cid, eve holds.Hold
	errs := h.oneBatch(
		func() error { return h.release(ann.ID) },
		func() (err error) { bob, err = h.placeAs("bob", "bob", named("A-1-2", "A-2-1")); return err },
		func() error { _, err := h.place("dan", named("A-1-1", "A-1-2")); return err }, // bob has it
		func() error { return h.release(ledger.NewID(gigJournal, "tester", "bob")) },
		func() (err error) { cid, err = h.place("cid", best(4)); return err },
		func() (err error) { eve, err = h.place("eve", best(2), named("A-2-1")); return err },
		func() error { return h.release(ann.ID) }, // it has ended: nothing happens
	)
	for i, err := range errs {
		if i == 2 && !errors.Is(err, seats.ErrSeatUnavailable) || i != 2 && err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if labelsOf(bob) != "A-1-2 A-2-1" || labelsOf(cid) != "A-1-1 A-1-2 A-1-3 A-1-4" || labelsOf(eve) != "A-2-2 A-2-3 A-2-1" {
		t.Errorf("bob got %s, cid %s, eve %s", labelsOf(bob), labelsOf(cid), labelsOf(eve))
	}
	h.want("hhhh hhha")
	h.wantHappened("A-1-2", "available by chart.loaded", "held by hold.placed", "available by hold.released",
		"held by hold.placed", "available by hold.released", "held by hold.placed")
	h.wantHappened("A-2-1", "available by chart.loaded", "held by hold.placed", "available by hold.released", "held by hold.placed")
	h.wantHappened("A-2-4", "available by chart.loaded")
}

// Seats whose holds run out go to the next in the same batch, by name and as the best; so
// do those that are blocked and put back.
func TestAnExpiryAndItsSuccessorInABatch(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 1, 6)))
	h.take("ann", named("A-1-1", "A-1-2"))
	h.take("ann", named("A-1-3", "A-1-4"))
	h.block("A-1-6")
	h.runOut()
	errs := h.oneBatch(
		func() error { _, err := h.place("bob", named("A-1-2")); return err },
		func() error { h.unblock("A-1-6"); return nil },
		func() error { _, err := h.place("cid", best(2)); return err },
		func() error { h.block("A-1-1"); return nil },
		func() error { h.unblock("A-1-1"); return nil },
		func() error { _, err := h.place("dan", best(2), named("A-1-1")); return err },
	)
	for i, err := range errs {
		if err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	h.want("hhhhhh")
	h.wantHappened("A-1-2", "available by chart.loaded", "held by hold.placed", "available by hold.expired", "held by hold.placed")
	h.wantHappened("A-1-1", "available by chart.loaded", "held by hold.placed", "available by hold.expired",
		"blocked by seats.blocked", "available by seats.unblocked", "held by hold.placed")
}

// A chart is loaded, and its seats are taken by whoever is next in the batch.
func TestAChartAndItsFirstBuyersInABatch(t *testing.T) {
	t.Parallel()
	h := openHall(t, chart(section("A", "front", 1, 2)))
	var bob holds.Hold
	errs := h.oneBatch(
		func() error { _, err := h.place("ann", named("B-1-1")); return err }, // not yet
		func() error { h.load(*chart(section("B", "back", 1, 4), section("C", "front", 1, 2))); return nil },
		func() error { _, err := h.place("ann", named("B-1-1", "C-1-2", "A-1-1")); return err },
		func() (err error) {
			line := best(3)
			line.BestAvailable.Section = "B"
			bob, err = h.place("bob", line)
			return err
		},
		func() error { h.block("C-1-1"); return nil },
		func() error { h.load(*chart(section("D", "back", 1, 2))); return nil },
	)
	for i, err := range errs {
		if i == 0 && !errors.Is(err, seats.ErrSeatNotFound) || i > 0 && err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	if labelsOf(bob) != "B-1-2 B-1-3 B-1-4" {
		t.Errorf("bob got %s", labelsOf(bob))
	}
	h.want("ha hhhh bh aa")
}
