package orders

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/seats"
)

const testJournal = ledger.JournalID(9)

// journal is an event in memory: the same decisions, no database and no provider.
type journal struct {
	*ledger.Memory
	testing.TB
	now      time.Time
	shelf    *shelf
	event    *buckets.Event
	holds    map[uuid.UUID]*holds.Hold
	ahead    *[]*holds.Hold
	cases    map[uuid.UUID]*cases.Case
	commands int
}

// rows gives a field of another package's shelf: what a database would keep, memory has
// nowhere else.
func rows[T any](s ledger.Shelf, field string) *T {
	return (*T)(reflect.ValueOf(s).Elem().FieldByName(field).Addr().UnsafePointer())
}

// openJournal opens an event of two tiers, whose tickets cost 53.00 and 106.00.
func openJournal(t testing.TB, policy string, ga, vip ledger.Amount) *journal {
	t.Helper()
	tier := func(name ledger.Unit, n, price, fee ledger.Amount) buckets.TierSpec {
		rate := &buckets.Rate{}
		if err := rate.UnmarshalJSON([]byte(`"0.0095"`)); err != nil {
			t.Fatal(err)
		}
		return buckets.TierSpec{Tier: name, Quantity: n, Price: buckets.Money{Amount: price, Currency: "USD"},
			Fee: &buckets.Money{Amount: fee, Currency: "USD"}, TaxRate: rate}
	}
	c, err := buckets.OpenCommand(testJournal, buckets.Spec{
		Event: "gig", Name: "Gig", Currency: "USD", Organiser: "o", LatePaymentPolicy: policy,
		Tiers: []buckets.TierSpec{tier("ga", ga, 5000, 250), tier("vip", vip, 10000, 500)},
	})
	if err != nil {
		t.Fatal(err)
	}
	offer, places, claims, kept := buckets.NewShelf(), seats.NewCharts().Shelf(), holds.Shelves()(), cases.NewShelf()
	j := &journal{
		TB: t, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), shelf: NewShelf().(*shelf),
		holds: *rows[map[uuid.UUID]*holds.Hold](claims, "holds"), ahead: rows[[]*holds.Hold](claims, "ahead"),
		cases: *rows[map[uuid.UUID]*cases.Case](kept, "cases"),
	}
	j.Memory = ledger.NewMemory(testJournal, offer, places, claims, j.shelf, kept)
	if _, errs := j.Memory.Do(j.now, c); errs[0] != nil {
		t.Fatal(errs[0])
	}
	j.event = offer.(*buckets.Shelf).Event
	return j
}

// do runs a command as a batch would: with the holds that are due.
func (j *journal) do(principal string, body ledger.Body) (ledger.Receipt, error) {
	*j.ahead = nil
	for _, h := range j.holds {
		if h.Status == holds.Held {
			*j.ahead = append(*j.ahead, h)
		}
	}
	slices.SortFunc(*j.ahead, func(a, b *holds.Hold) int { return slices.Compare(a.ID[:], b.ID[:]) })
	j.commands++
	receipts, errs := j.Memory.Do(j.now, ledger.Command{
		ID: ledger.NewID(testJournal, principal, strconv.Itoa(j.commands)), Principal: principal, Body: body})
	return receipts[0], errs[0]
}

// placing is the command of a hold, as package holds has it.
type placing struct {
	journal  *journal
	id       uuid.UUID
	customer string
	items    []holds.Item // tier and quantity
}

func (p *placing) Accounts() []string { return nil }

func (p *placing) Decide(s *ledger.State) (ledger.Decision, error) {
	if err := holds.Fits(s, &buckets.Route{Customer: p.customer}, holds.Hold{}, p.items); err != nil {
		return ledger.Decision{}, err
	}
	event := p.journal.event
	h := holds.Hold{ID: p.id, Event: event.Event, Customer: p.customer, Status: holds.Held, Version: s.NextSeq(), CreatedAt: s.Now,
		ExpiresAt: s.Now.Add(time.Duration(event.HoldSeconds) * time.Second), Total: buckets.Money{Currency: event.Currency}}
	d := ledger.Decision{Kind: holds.KindPlaced}
	for _, i := range p.items {
		price := buckets.ShelfOf(s).Tiers[i.Tier].Price
		i.UnitPrice = buckets.Money{Amount: price.Amount, Currency: event.Currency}
		i.UnitFee = &buckets.Money{Amount: price.Fee, Currency: event.Currency}
		i.UnitTax = &buckets.Money{Amount: price.Tax(), Currency: event.Currency}
		h.Items = append(h.Items, i)
		h.Total.Amount += i.Of(i.Quantity).Sum()
		d.Legs = append(d.Legs, ledger.Leg{Account: ledger.Available, Unit: i.Tier, Amount: -i.Quantity},
			ledger.Leg{Account: ledger.HeldBy(p.customer), Unit: i.Tier, Amount: i.Quantity})
	}
	d.Rows, d.Data = []ledger.Row{placed{p.journal, &h}}, json.RawMessage(`{}`)
	return d, nil
}

type placed struct {
	journal *journal
	*holds.Hold
}

// Keep records the hold.
func (p placed) Keep(*ledger.State) { p.journal.holds[p.ID] = p.Hold }

// hold places a hold; its id is made of its number.
func (j *journal) hold(customer string, items ...holds.Item) (*holds.Hold, error) {
	id := ledger.NewID(testJournal, customer, "hold", strconv.Itoa(len(j.holds)))
	_, err := j.do(customer, &placing{j, id, customer, items})
	return j.holds[id], err
}

// proposing is the command by which a person proposes a resolution, or rejects the one
// that was proposed, as package recon has it.
type proposing struct {
	caseID     uuid.UUID
	by         string
	resolution cases.Resolution // "" rejects
}

func (p *proposing) Accounts() []string { return nil }

func (p *proposing) Decide(s *ledger.State) (ledger.Decision, error) {
	c, ok := cases.Find(s, p.caseID)
	d := ledger.Decision{Kind: "case.proposed", Data: json.RawMessage(`{}`)}
	switch {
	case ok && p.resolution != "" && c.Status == cases.Open:
		c = c.Propose(p.by, p.resolution, "so", "evidence", s.NextSeq())
	case ok && p.resolution == "" && c.Approvable(p.by, nil) == nil:
		d.Kind, c = "case.rejected", c.Reject(p.by, "no", s.NextSeq())
	default:
		return ledger.Decision{}, cases.ErrCaseState.Because("case %s is %s", p.caseID, c.Status)
	}
	d.Rows = []ledger.Row{cases.Row(c)}
	return d, nil
}

// of says which order a hold has or gets.
func (j *journal) of(h *holds.Hold) ref {
	return ref{order: OrderID(testJournal, h.ID), hold: h.ID, customer: h.Customer, organiser: "o", provider: "sim"}
}

// order gives the order of a hold; nil for none.
func (j *journal) order(h *holds.Hold) *Order { return j.shelf.orders[OrderID(testJournal, h.ID)] }

func (j *journal) checkout(h *holds.Hold) (ledger.Receipt, error) {
	return j.do(h.Customer, &checkout{ref: j.of(h), request: CheckoutRequest{PaymentMethod: "card"}})
}

// tell applies evidence of one of our operations.
func (j *journal) tell(h *holds.Hold, source source, r payments.Result) (ledger.Receipt, error) {
	c := &observe{ref: j.of(h), operation: r.Operation, evidence: evidence{source, r}}
	if r.Operation == uuid.Nil {
		c.operation = ledger.NewID(testJournal, ledger.SystemPrincipal, "foreign", "sim", r.Reference)
	}
	if source == fromWebhook {
		c.webhook = &webhook{provider: "sim", event: strconv.Itoa(j.commands), operation: r.Operation}
	}
	return j.do(ledger.SystemPrincipal, c)
}

// said is what the provider would say of an operation that went as it was asked to.
func (j *journal) said(op *Operation, outcome payments.Outcome) payments.Result {
	r := payments.Result{
		Operation: op.ID, Kind: op.Kind, Outcome: outcome, Reference: "op_" + op.ID.String()[9:13], Amount: op.Amount, At: j.now,
		Payment: payments.Payment{Reference: op.Payment, Currency: op.Amount.Currency, Amount: op.Amount.Amount},
	}
	if op.Kind == payments.Authorize {
		r.Payment.Reference, r.Payment.Operation = "pay_"+op.ID.String(), op.ID
	}
	done := outcome == payments.Succeeded
	switch {
	case outcome == payments.Declined:
		r.Reason = "declined_by_provider"
	case done && op.Kind == payments.Authorize:
		r.Payment.Authorized = op.Amount.Amount
	case done && (op.Kind == payments.Capture || op.Kind == payments.Refund):
		r.Payment.Authorized, r.Payment.Captured = op.Amount.Amount, op.Amount.Amount
	}
	return r
}

// caseOf finds a case of an order by its reason.
func (j *journal) caseOf(h *holds.Hold, reason cases.Reason) *cases.Case {
	var found *cases.Case
	for _, c := range j.cases {
		if *c.HoldID == h.ID && c.Reason == reason && (found == nil || c.Version > found.Version) {
			found = c
		}
	}
	return found
}

// casesAbout gives the cases about an operation, the older ones first.
func (j *journal) casesAbout(op *Operation) []*cases.Case {
	var found []*cases.Case
	for _, c := range j.cases {
		if *c.OperationID == op.ID {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *cases.Case) int {
		return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), cmp.Compare(a.Version, b.Version), slices.Compare(a.ID[:], b.ID[:]))
	})
	return found
}

// settle carries out what policy, or with two names what people decide about a case.
func (j *journal) settle(h *holds.Hold, c *cases.Case, approver string) (ledger.Receipt, error) {
	return j.do(approver, &settle{ref: j.of(h), route: &buckets.Route{}, caseID: c.ID, approver: approver})
}
