package holds

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/seats"
)

// body is a command of a test: what it decides.
type body func(*ledger.State) (ledger.Decision, error)

func (body) Accounts() []string                                { return nil }
func (b body) Decide(s *ledger.State) (ledger.Decision, error) { return b(s) }

// decide runs a decision under a new key.
func (j *journal) decide(b body) error {
	key := fmt.Sprint("decide ", len(j.Entries()))
	_, err := j.do(ledger.Command{ID: ledger.NewID(testJournal, "tester", key), Principal: "tester", Body: b})
	return err
}

// house is an event with seats that is run twice, to the same end, and a model of it that
// knows only what was answered.
type house struct {
	first, second *journal
	limit         int64
	sections      []seats.Section
	holds         []uuid.UUID          // all that were placed
	sold          map[string]uuid.UUID // seats that somebody has bought
	blocked       map[string]bool
	keys          int
}

var (
	seated    = []ledger.Unit{"front", "back"}
	customers = []string{"a", "b", "c"}
)

func openHouse(t testing.TB, r *rapid.T) *house {
	price := buckets.Money{Amount: 100, Currency: "JPY"}
	h := &house{limit: rapid.Int64Range(2, 9).Draw(r, "limit"), sold: make(map[string]uuid.UUID), blocked: make(map[string]bool)}
	spec := buckets.Spec{Event: "gig", Name: "Gig", Currency: "JPY", HoldSeconds: 60, Tiers: []buckets.TierSpec{
		{Tier: "front", Seated: true, LimitPerCustomer: &h.limit, Price: price}, {Tier: "back", Seated: true, Price: price},
		{Tier: "ga", Quantity: 9, Price: price}}}
	h.first, h.second = openJournal(t, spec), openJournal(t, spec)
	h.load(r)
	return h
}

// both does something to both journals, which must say the same.
func (h *house) both(r *rapid.T, act func(*journal) (ledger.Receipt, error)) (ledger.Receipt, error) {
	receipt, err := act(h.first)
	again, other := act(h.second)
	if string(receipt.Data) != string(again.Data) || fmt.Sprint(err) != fmt.Sprint(other) {
		r.Fatalf("first %s %v, then %s %v", receipt.Data, err, again.Data, other)
	}
	if err != nil && fault.As(err) == nil {
		r.Fatal(err)
	}
	return receipt, err
}

// labels are those of all seats.
func (h *house) labels() (list []string) {
	for _, s := range h.sections {
		for _, row := range s.Rows {
			for _, seat := range row.Seats {
				list = append(list, seats.Label(s.Section, row.Row, seat.Seat))
			}
		}
	}
	return list
}

// tierOf gives the tier of a seat; its section's name begins with it.
func tierOf(label string) ledger.Unit {
	if label[0] == 'F' {
		return "front"
	}
	return "back"
}

// load adds a section.
func (h *house) load(r *rapid.T) {
	tier := rapid.SampledFrom(seated).Draw(r, "tier of section")
	s := seats.Section{Section: fmt.Sprint(map[ledger.Unit]string{"front": "F", "back": "B"}[tier], len(h.sections)), Tier: tier}
	for i := range rapid.IntRange(1, 3).Draw(r, "rows") {
		row := seats.Row{Row: fmt.Sprint(i)}
		for n := range rapid.IntRange(1, 7).Draw(r, "seats") {
			row.Seats = append(row.Seats, seats.Seat{Seat: fmt.Sprint(n), Accessible: rapid.IntRange(0, 5).Draw(r, "accessible") == 0,
				Aisle: rapid.IntRange(0, 5).Draw(r, "aisle") == 0})
		}
		s.Rows = append(s.Rows, row)
	}
	if _, err := h.both(r, func(j *journal) (ledger.Receipt, error) { return j.load(seats.Chart{Sections: []seats.Section{s}}) }); err != nil {
		r.Fatal(err)
	}
	h.sections = append(h.sections, s)
}

// some draws seats of which most are there.
func (h *house) some(r *rapid.T, most int) []string {
	all := append(h.labels(), "F99-1-1")
	return rapid.SliceOfNDistinct(rapid.SampledFrom(all), 1, min(most, len(all)), rapid.ID).Draw(r, "labels")
}

func (h *house) place(r *rapid.T) {
	var lines []Line
	named := make(map[string]bool)
	for range rapid.IntRange(1, 3).Draw(r, "lines") {
		switch rapid.IntRange(0, 4).Draw(r, "kind") {
		case 0:
			lines = append(lines, Line{Tier: "ga", Quantity: ledger.Amount(rapid.IntRange(1, 3).Draw(r, "quantity"))})
		case 1, 2:
			labels := slices.DeleteFunc(h.some(r, 3), func(l string) bool { return named[l] })
			for _, label := range labels {
				named[label] = true
			}
			if len(labels) > 0 {
				lines = append(lines, Line{Seats: labels})
			}
		default:
			b := seats.Best{Quantity: ledger.Amount(rapid.IntRange(1, 4).Draw(r, "quantity")),
				AcceptSplit: rapid.Bool().Draw(r, "split"), Accessible: rapid.IntRange(0, 5).Draw(r, "accessible") == 0}
			switch rapid.IntRange(0, 2).Draw(r, "of") {
			case 0:
				b.Tier = rapid.SampledFrom(seated).Draw(r, "tier")
			case 1:
				b.Section = rapid.SampledFrom(h.sections).Draw(r, "section").Section
			}
			lines = append(lines, Line{BestAvailable: &b})
		}
	}
	if len(lines) == 0 {
		return
	}
	h.keys++
	key, customer := fmt.Sprint("k", h.keys), rapid.SampledFrom(customers).Draw(r, "customer")
	_, err := h.both(r, func(j *journal) (ledger.Receipt, error) { return j.place(key, customer, lines...) })
	if err != nil {
		if !slices.Contains([]string{"seat_not_found", "invalid_quantity", "limit_exceeded", "seat_unavailable", "not_together",
			"temporarily_held", "sold_out"}, fault.As(err).Code) {
			r.Fatal(err)
		}
		return
	}
	h.holds = append(h.holds, h.first.ids[key])
	h.checkGranted(r, h.first.ids[key], lines)
}

// checkGranted compares a hold with what was asked.
func (h *house) checkGranted(r *rapid.T, id uuid.UUID, lines []Line) {
	hold := h.first.shelf.holds[id]
	asked := 0
	got := Seats(hold.Items)
	for _, l := range lines {
		asked += len(l.Seats)
		if l.BestAvailable != nil {
			asked += int(l.BestAvailable.Quantity)
		}
		for _, label := range l.Seats {
			if !slices.Contains(got, label) {
				r.Fatalf("asked for %s, got %v", label, got)
			}
		}
	}
	if len(got) != asked || len(got) > MaxSeats || len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
		r.Fatalf("asked for %d, got %v", asked, got)
	}
	for _, i := range hold.Items {
		for _, label := range i.Seats {
			if tierOf(label) != i.Tier {
				r.Fatalf("%s is of %s", label, i.Tier)
			}
		}
	}
}

// hold draws a hold in one of some states; false when there's none.
func (h *house) hold(r *rapid.T, states ...Status) (uuid.UUID, bool) {
	list := slices.DeleteFunc(slices.Clone(h.holds), func(id uuid.UUID) bool {
		return !slices.Contains(states, h.first.shelf.holds[id].Status)
	})
	if len(list) == 0 {
		return uuid.Nil, false
	}
	return rapid.SampledFrom(list).Draw(r, "hold"), true
}

// release ends any hold, also one that has ended.
func (h *house) release(r *rapid.T) {
	if id, ok := h.hold(r, Statuses()...); ok {
		h.both(r, func(j *journal) (ledger.Receipt, error) {
			return j.do(ledger.Command{ID: ledger.NewID(testJournal, "tester", fmt.Sprint("r", len(j.Entries()))), Principal: "tester",
				Body: &release{holdID: id}})
		})
	}
}

// pay has a payment for a hold begin, succeed or fail, as an order would.
func (h *house) pay(r *rapid.T) {
	id, ok := h.hold(r, Held, PaymentPending)
	if !ok {
		return
	}
	outcome := rapid.IntRange(0, 2).Draw(r, "outcome")
	_, err := h.both(r, func(j *journal) (ledger.Receipt, error) {
		return ledger.Receipt{}, j.decide(func(s *ledger.State) (ledger.Decision, error) {
			hold, _ := Find(s, id)
			var legs []ledger.Leg
			switch {
			case !hold.Status.Claims(): // it has run out
				return ledger.Decision{}, ErrHoldNotFound.Because("%s", id)
			case hold.Status == Held:
				hold = hold.Pay(time.Minute, s.NextSeq())
			case outcome == 0:
				hold, legs = hold.Again(s.Now, s.NextSeq())
			default:
				hold, legs = hold.Confirm(s.NextSeq())
			}
			return ledger.Decision{Kind: "test.paid", Legs: legs, Rows: []ledger.Row{Row(hold)}, Data: hold.data()}, nil
		})
	})
	if hold := h.first.shelf.holds[id]; err == nil && hold.Status == Confirmed {
		for _, label := range Seats(hold.Items) {
			h.sold[label] = id
		}
	}
}

// giveBack returns a sold seat, as a refund would.
func (h *house) giveBack(r *rapid.T) {
	if len(h.sold) == 0 {
		return
	}
	label := rapid.SampledFrom(slices.Sorted(maps.Keys(h.sold))).Draw(r, "label")
	id := h.sold[label]
	customer := h.first.shelf.holds[id].Customer
	_, err := h.both(r, func(j *journal) (ledger.Receipt, error) {
		return ledger.Receipt{}, j.decide(func(*ledger.State) (ledger.Decision, error) {
			legs, rows := Return(id, customer, []Item{{Tier: tierOf(label), Quantity: 1, Seats: []string{label}}})
			return ledger.Decision{Kind: "test.returned", Legs: legs, Rows: rows, Data: []byte(`{}`)}, nil
		})
	})
	if err != nil {
		r.Fatal(err)
	}
	delete(h.sold, label)
}

// honour sells seats that nobody holds to a hold that has ended, as a late payment would.
func (h *house) honour(r *rapid.T) {
	id, ok := h.hold(r, Released, Expired)
	if !ok {
		return
	}
	hold := h.first.shelf.holds[id]
	_, err := h.both(r, func(j *journal) (ledger.Receipt, error) {
		return ledger.Receipt{}, j.decide(func(s *ledger.State) (ledger.Decision, error) {
			if err := Fits(s, &buckets.Route{Customer: hold.Customer}, *hold, hold.Items); err != nil {
				return ledger.Decision{}, err
			}
			legs, rows := Take(s, *hold, hold.Items)
			return ledger.Decision{Kind: "test.honoured", Legs: legs, Rows: rows, Data: []byte(`{}`)}, nil
		})
	})
	for _, label := range Seats(hold.Items) {
		if err == nil {
			h.sold[label] = id
		}
	}
}

func (h *house) setAside(r *rapid.T) {
	labels, block := h.some(r, 4), rapid.Bool().Draw(r, "block")
	_, err := h.both(r, func(j *journal) (ledger.Receipt, error) { return j.setAside(block, labels) })
	if err != nil {
		return
	}
	for _, label := range labels {
		h.blocked[label] = block
	}
}

// Whatever happens to seats and in whatever order, every seat is what its hold, its sale or
// its block says, the accounts count the same, and so do the rows; and the same commands
// come to the same again.
func TestSeatsAgreeWithWhatHappened(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := openHouse(t, r)
		acts := []func(*rapid.T){h.place, h.place, h.place, h.release, h.pay, h.pay, h.pay, h.giveBack, h.honour, h.setAside}
		for range rapid.IntRange(1, 50).Draw(r, "steps") {
			wait := time.Duration(rapid.IntRange(0, 20).Draw(r, "wait")) * time.Second
			h.first.now, h.second.now = h.first.now.Add(wait), h.second.now.Add(wait)
			if n := rapid.IntRange(0, 30).Draw(r, "what"); n == 30 {
				h.load(r)
			} else {
				acts[n%len(acts)](r)
			}
			h.check(r)
		}
		first, second := h.first.Entries(), h.second.Entries()
		if a, b := first[len(first)-1], second[len(second)-1]; a.Hash != b.Hash {
			r.Fatalf("entry %d: %x, then %x", a.Seq, a.Hash, b.Hash)
		}
	})
}
