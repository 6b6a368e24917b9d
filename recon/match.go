package recon

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Result is what a line, or an operation without one, was found to be.
type Result string

// The results. Only what agrees in everything is matched: a line one cent short needs
// somebody's decision.
const (
	Matched         Result = "matched"
	MissingHere     Result = "missing_here"     // no operation of ours moved this money
	Duplicate       Result = "duplicate"        // another line, or another payment, has the operation already
	CurrencyDiffers Result = "currency_differs" // from the operation's
	AmountDiffers   Result = "amount_differs"   // likewise
	Unsettled       Result = "unsettled"        // the operation hasn't succeeded here, or not failed
	MissingThere    Result = "missing_there"    // an operation moved money, and no line says so
	Timing          Result = "timing"           // likewise, but younger than every line: the next report's
)

// verdict is a line with what it was found to be.
type verdict struct {
	Line
	journal   ledger.JournalID
	operation uuid.UUID  // ours, from the reference or found; uuid.Nil for none
	compared  *Operation // with; nil when there's none here
	result    Result
}

// claim says that an operation has a line of a type.
type claim struct {
	operation uuid.UUID
	kind      LineType
}

// evidence is all that lines are judged by.
type evidence struct {
	lines      []Line
	operations []Operation    // those that the lines name, and those of their payments
	moved      []Operation    // those that moved money while the report's lines were made, and a while after
	claims     map[claim]bool // by lines of other reports; match adds its own
	last       time.Time      // of the youngest line of any report; older than moved ones that must have a line

	byID      map[uuid.UUID]*Operation
	byPayment map[string][]*Operation
	failed    map[string]bool // references of the lines of captures that failed
}

// match judges the lines, in their order, and gives the operations that have none.
func (e *evidence) match() (verdicts []verdict, unreported []Difference) {
	e.index()
	verdicts = make([]verdict, len(e.lines))
	order := make([]*verdict, len(e.lines)) // of time: of two lines for one operation, the later is too many
	for i, l := range e.lines {
		verdicts[i] = verdict{Line: l, journal: e.journalOf(l.Payment)}
		order[i] = &verdicts[i]
	}
	slices.SortFunc(order, func(a, b *verdict) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	var unnamed []*verdict
	for _, v := range order {
		switch {
		case v.Type == LineFee:
			e.judgeFee(v)
		case !e.judgeNamed(v):
			unnamed = append(unnamed, v)
		}
	}
	// Several may fit: those of the same amount first, so that none is taken from them.
	unnamed = slices.DeleteFunc(unnamed, func(v *verdict) bool { return e.judgeUnnamed(v, true) })
	for _, v := range unnamed {
		e.judgeUnnamed(v, false)
	}
	return verdicts, e.unreported()
}

func (e *evidence) index() {
	e.byID, e.byPayment = make(map[uuid.UUID]*Operation), make(map[string][]*Operation)
	for i := range e.operations {
		o := &e.operations[i]
		if e.byID[o.ID] != nil {
			continue
		}
		e.byID[o.ID] = o
		if o.Payment != "" {
			e.byPayment[o.Payment] = append(e.byPayment[o.Payment], o)
		}
	}
	if e.claims == nil {
		e.claims = make(map[claim]bool)
	}
	e.failed = make(map[string]bool)
	for i := range e.lines {
		if e.lines[i].Type == LineCaptureFailed {
			e.failed[e.lines[i].Reference] = true
		}
	}
}

// journalOf gives the journal of a payment; the system journal when it isn't ours.
func (e *evidence) journalOf(payment string) ledger.JournalID {
	if list := e.byPayment[payment]; len(list) > 0 {
		return journalOf(list[0])
	}
	return ledger.System
}

func journalOf(o *Operation) ledger.JournalID {
	journal, _ := ledger.JournalOf(o.ID)
	return journal
}

// judgeFee explains a fee by its payment: its booking is all there is to do.
func (e *evidence) judgeFee(v *verdict) {
	v.result = Matched
	if v.Payment != "" && len(e.byPayment[v.Payment]) == 0 {
		v.result = MissingHere
	}
}

// judgeNamed judges a line that names an operation of ours; false when it names none.
func (e *evidence) judgeNamed(v *verdict) bool {
	id, err := uuid.Parse(v.Reference)
	if err != nil {
		return false
	}
	if _, ours := ledger.JournalOf(id); !ours {
		return false
	}
	o := e.byID[id]
	v.operation = id
	if o == nil || !v.fits(o) {
		v.result = MissingHere
		return true
	}
	e.judge(v, o)
	return true
}

// judgeUnnamed judges a line of something that the provider did by itself. It is an
// operation of the payment that has no line yet: one of the same amount, or any. False
// when exact and there's none; when not exact, such a line is missing here.
func (e *evidence) judgeUnnamed(v *verdict, exact bool) bool {
	for _, o := range e.byPayment[v.Payment] {
		if v.fits(o) && foreign(o) && !e.claims[claim{o.ID, v.Type}] && (!exact || v.ours(o) == v.gross()) {
			e.judge(v, o)
			return true
		}
	}
	if !exact {
		v.result = MissingHere
	}
	return false
}

// foreign tells whether an operation is the provider's own: its id is then made of the
// provider's name of it.
func foreign(o *Operation) bool {
	return o.ID == ledger.NewID(journalOf(o), ledger.SystemPrincipal, "foreign", o.Provider, o.Reference)
}

// fits tells whether a line's type is of what an operation does.
func (v *verdict) fits(o *Operation) bool {
	switch v.Type {
	case LineCharge:
		return o.Kind == payments.Authorize
	case LineCapture:
		return o.Kind == payments.Capture
	case LineCaptureFailed:
		return o.Kind == payments.Capture || o.Kind == payments.Authorize
	case LineRefund:
		return o.Kind == payments.Refund
	case LineChargeback:
		return o.Kind == payments.Chargeback
	}
	return false
}

// judge compares a line with its operation, and claims it for the line.
func (e *evidence) judge(v *verdict, o *Operation) {
	v.journal, v.operation, v.compared = journalOf(o), o.ID, o
	c := claim{o.ID, v.Type}
	if e.claims[c] || o.Payment != "" && o.Payment != v.Payment {
		v.result = Duplicate
		return
	}
	e.claims[c] = true
	switch {
	case o.Amount.Currency != v.Currency:
		v.result = CurrencyDiffers
	case v.ours(o) != v.gross():
		v.result = AmountDiffers
	case !e.settled(v, o):
		v.result = Unsettled
	default:
		v.result = Matched
	}
}

// The statuses that say that an operation moved its money, or that it didn't.
const (
	succeeded = "succeeded"
	declined  = "declined"
)

// settled tells whether the operation's status is what the line says.
func (e *evidence) settled(v *verdict, o *Operation) bool {
	switch {
	case v.Type == LineCaptureFailed:
		return o.Status == declined
	case v.Type == LineCharge && o.Status == succeeded:
		return o.Captured
	case (v.Type == LineCharge || v.Type == LineCapture) && o.Status == declined:
		// The money was taken, and the bank took it back later: there's a line of that,
		// or it's in a report to come.
		return o.ToldAt != nil && o.ToldAt.After(v.CreatedAt) && (e.returned(o) || o.ToldAt.After(e.last))
	}
	return o.Status == succeeded
}

// returned tells whether a line says that the bank took an operation's money back.
func (e *evidence) returned(o *Operation) bool {
	return e.claims[claim{o.ID, LineCaptureFailed}] || e.failed[o.ID.String()]
}

// unreported gives the operations that moved money and have no line, in their order.
func (e *evidence) unreported() []Difference {
	var list []Difference
	for i := range e.moved {
		o := &e.moved[i]
		if e.claimed(o) {
			continue
		}
		d := Difference{OperationID: &o.ID, Result: MissingThere, Ours: signed(o)}
		if o.ToldAt != nil && o.ToldAt.After(e.last) {
			d.Result = Timing
		}
		list = append(list, d)
	}
	return list
}

// claimed tells whether a line says that an operation moved its money.
func (e *evidence) claimed(o *Operation) bool {
	for _, kind := range []LineType{LineCharge, LineCapture, LineRefund, LineChargeback} {
		if e.claims[claim{o.ID, kind}] {
			return true
		}
	}
	return false
}

// gross is what the line says.
func (v *verdict) gross() buckets.Money { return buckets.Money{Amount: v.Gross, Currency: v.Currency} }

// ours is what the line would say if it agreed with an operation.
func (v *verdict) ours(o *Operation) buckets.Money {
	if v.Type == LineCaptureFailed {
		return buckets.Money{Amount: -o.Amount.Amount, Currency: o.Amount.Currency}
	}
	return *signed(o)
}

// signed is an operation's amount as it changed the provider's balance.
func signed(o *Operation) *buckets.Money {
	m := o.Amount
	if o.Kind == payments.Refund || o.Kind == payments.Chargeback {
		m.Amount = -m.Amount
	}
	return &m
}
