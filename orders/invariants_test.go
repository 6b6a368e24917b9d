package orders

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// check holds the whole state against what must be true after every command.
func (w *world) check(r *rapid.T) {
	w.T = r
	w.checkEntries()
	var want = map[ledger.AccountKey]ledger.Amount{} // what rows say that accounts have
	add := func(code string, unit ledger.Unit, n ledger.Amount) {
		want[ledger.AccountKey{Code: code, Unit: unit}] += n
	}
	pending := int64(0)
	for _, h := range w.placedHolds {
		w.checkHold(h)
		if h.Status.Claims() {
			for _, i := range h.Items {
				add(ledger.HeldBy(h.Customer), i.Tier, i.Quantity)
			}
		}
		o := w.order(h)
		if o == nil {
			continue
		}
		w.checkOrder(h, o)
		if o.Status == Pending {
			pending++
		}
		if o.Status.Owns() {
			add("organiser:o", "USD", -o.Parts.Face)
			add("fees:platform", "USD", -o.Parts.Fee)
			add("tax:sales", "USD", -o.Parts.Tax)
			add("capture-pending:sim", "USD", max(0, o.Total.Amount-o.Captured.Amount-w.writtenOff(o)))
			for _, i := range o.tickets() {
				add(ledger.SoldTo(h.Customer), i.Tier, i.Quantity)
			}
		}
		for _, op := range o.Operations {
			w.checkOperation(op)
			add("auth:open", "USD.AUTH", op.authorized)
			w.addProceeds(add, op)
			if op.Kind == payments.Refund && op.sends > 0 && op.Status.open() {
				add("refunds-pending:sim", op.Amount.Currency, -op.Amount.Amount)
			}
		}
	}
	for _, c := range w.cases {
		if c.Suspended < 0 || c.Suspended > c.Amount.Amount {
			r.Fatalf("case %s %s of %d has %d in suspense", c.Reason, c.Status, c.Amount.Amount, c.Suspended)
		}
		add("suspense:late", c.Amount.Currency, -c.Suspended)
	}
	w.checkBalances(want)
	if w.shelf.pending != pending {
		r.Fatalf("counted %d pending orders, there are %d", w.shelf.pending, pending)
	}
}

// addProceeds adds what a refund or a chargeback takes from those whom a sale belongs to.
func (w *world) addProceeds(add func(string, ledger.Unit, ledger.Amount), op *Operation) {
	switch {
	case op.Kind == payments.Refund && op.Status != OpDeclined && op.Status != OpNotAttempted:
		add("organiser:o", "USD", op.parts.Face)
		add("fees:platform", "USD", op.parts.Fee)
		add("tax:sales", "USD", op.parts.Tax)
	case op.Kind == payments.Chargeback && op.Status == OpSucceeded:
		add("organiser:o", "USD", op.parts.Face)
		add("organiser:o:dispute-hold", "USD", -op.parts.Face)
		add("disputes:sim", op.Amount.Currency, op.disputed)
	}
}

// checkEntries checks the entries since the last time and sums them up.
func (w *world) checkEntries() {
	if w.sums == nil {
		w.sums = map[ledger.AccountKey]ledger.Amount{}
	}
	for _, e := range w.Entries()[w.seen:] {
		units := map[ledger.Unit]ledger.Amount{}
		for _, p := range e.Postings {
			key := ledger.AccountKey{Code: p.Account, Unit: p.Unit}
			units[p.Unit] += p.Amount
			w.sums[key] += p.Amount
			if w.sums[key] != p.Balance {
				w.T.Fatalf("entry %d %s: %s has %d, says %d", e.Seq, e.Kind, p.Account, w.sums[key], p.Balance)
			}
		}
		for unit, sum := range units {
			if sum != 0 {
				w.T.Fatalf("entry %d %s: %s sums to %d", e.Seq, e.Kind, unit, sum)
			}
		}
	}
	w.seen = len(w.Entries())
}

// checkBalances compares the accounts that rows account for, and bounds others.
func (w *world) checkBalances(want map[ledger.AccountKey]ledger.Amount) {
	for key, balance := range w.sums {
		switch key.Code {
		case ledger.Available, "capture-pending:sim", "auth:open", "disputes:sim", "chargeback-loss":
			if balance < 0 {
				w.T.Fatalf("%s has %d %s", key.Code, balance, key.Unit)
			}
		case "organiser:o:dispute-hold", "suspense:late", "refunds-pending:sim":
			if balance > 0 {
				w.T.Fatalf("%s has %d %s", key.Code, balance, key.Unit)
			}
		}
		accounted := slices.Contains([]string{"capture-pending:sim", "auth:open", "refunds-pending:sim", "suspense:late",
			"organiser:o", "organiser:o:dispute-hold", "fees:platform", "tax:sales", "disputes:sim",
			ledger.HeldBy("ann"), ledger.HeldBy("bob"), ledger.SoldTo("ann"), ledger.SoldTo("bob")}, key.Code)
		if accounted && balance != want[key] {
			w.T.Fatalf("%s has %d %s, its rows say %d", key.Code, balance, key.Unit, want[key])
		}
	}
	for key, balance := range want {
		if balance != w.sums[key] {
			w.T.Fatalf("%s has %d %s, its rows say %d", key.Code, w.sums[key], key.Unit, balance)
		}
	}
}

// checkHold checks that tickets are freed on evidence alone.
func (w *world) checkHold(h *holds.Hold) {
	if w.was == nil {
		w.was = map[uuid.UUID]holds.Status{}
	}
	was := w.was[h.ID]
	w.was[h.ID] = h.Status
	if was == holds.Confirmed && h.Status != was || was != "" && !holds.Status.Claims(was) && h.Status != was {
		w.T.Fatalf("a hold that was %s is %s", was, h.Status)
	}
	o := w.order(h)
	if o == nil || h.Status.Claims() || h.Status == holds.Confirmed || !was.Claims() {
		return
	}
	for _, op := range o.Operations {
		if op.Kind == payments.Authorize && (op.Status == OpSent || op.Status == OpUnknown) {
			w.T.Fatalf("a hold is %s, its authorization %d is %s", h.Status, op.Attempt, op.Status)
		}
	}
}

// checkOrder checks an order against its hold, its operations and its cases.
func (w *world) checkOrder(h *holds.Hold, o *Order) {
	switch {
	case (h.Status == holds.PaymentPending || h.Status == holds.Reconciling) && o.Status != Pending,
		h.Status == holds.Confirmed && o.Status == Pending,
		o.Status == Pending && h.Status == holds.Released:
		w.T.Fatalf("the hold is %s, the order %s", h.Status, o.Status)
	}
	reconciling := h.Status == holds.Reconciling
	counted := 0
	var back holds.Parts
	for _, op := range o.Operations {
		if op.Status == OpSucceeded && (op.Kind == payments.Capture || op.taken > 0) && !w.setAside(op) {
			counted++
		}
		if op.Kind == payments.Chargeback && op.Status == OpSucceeded ||
			op.Kind == payments.Refund && op.Status != OpDeclined && op.Status != OpNotAttempted {
			back = back.Plus(op.parts)
		}
	}
	for _, c := range w.cases {
		reconciling = reconciling || *c.OrderID == o.ID && c.Status != cases.Resolved
	}
	switch left := o.Parts.Minus(o.RefundedParts); {
	case o.Reconciling != reconciling:
		w.T.Fatalf("order %s, hold %s: reconciling is %v", o.Status, h.Status, o.Reconciling)
	case o.Captured.Amount > 0 && counted != 1:
		w.T.Fatalf("order %s captured %d, by %d payments", o.Status, o.Captured.Amount, counted)
	case o.RefundedParts != back:
		w.T.Fatalf("order %s refunded %v, its operations %v", o.Status, o.RefundedParts, back)
	case min(left.Face, left.Fee, left.Tax, o.RefundedParts.Face, o.RefundedParts.Fee, o.RefundedParts.Tax) < 0,
		o.RefundedParts.Sum() > o.Captured.Amount, o.Captured.Amount > o.Total.Amount:
		w.T.Fatalf("order %s: %v captured %d refunded %v", o.Status, o.Parts, o.Captured.Amount, o.RefundedParts)
	case o.Status == Pending && o.dueAt == nil && h.Status != holds.Reconciling && o.openOf(payments.Authorize) == nil:
		w.T.Fatalf("a pending order that nobody looks at, hold %s", h.Status)
	}
}

// openOf gives an open operation of a kind.
func (o *Order) openOf(kind payments.Kind) *Operation {
	for _, op := range o.Operations {
		if op.Kind == kind && op.Status.open() {
			return op
		}
	}
	return nil
}

// setAside tells whether a payment isn't the order's: the last case about it says so.
func (w *world) setAside(op *Operation) bool {
	aside := false
	for _, c := range w.casesAbout(op) {
		if slices.Contains(lateReasons, c.Reason) && c.Reason != cases.AmountMismatch ||
			c.Reason == cases.AmountMismatch && op.Kind == payments.Authorize && c.Amount != op.Amount {
			aside = c.Status != cases.Resolved || c.Resolution != cases.Honour
		}
	}
	return aside
}

// checkOperation checks what the schema checks.
func (w *world) checkOperation(op *Operation) {
	p := op.parts
	switch {
	case op.Amount.Amount < 0, op.authorized < 0 || op.authorized > op.Amount.Amount, op.taken < 0,
		op.Kind != payments.Authorize && (op.authorized != 0 || op.taken != 0),
		min(p.Face, p.Fee, p.Tax) < 0 || p.Sum() > op.Amount.Amount,
		(op.sentAt == nil) != (op.sends == 0):
		w.T.Fatalf("%s %s of %d: authorized %d, taken %d, parts %v", op.Kind, op.Status, op.Amount.Amount, op.authorized, op.taken, p)
	case op.Status.open() && op.NextAttemptAt == nil && op.sends > 0, !op.Status.open() && op.NextAttemptAt != nil:
		w.T.Fatalf("%s %s, next attempt at %v", op.Kind, op.Status, op.NextAttemptAt)
	}
}

// settleAll has the provider tell the truth about everything and everybody do their work,
// until nothing changes; then nothing may be left open.
func (w *world) settleAll() {
	paid := rapid.Bool().Draw(w.T, "open payments were made")
	for before := -1; before != len(w.Entries()); {
		before = len(w.Entries())
		w.now = w.now.Add(48 * time.Hour)
		for _, h := range w.placedHolds {
			if o := w.order(h); o != nil {
				w.settleOrder(h, o, paid)
				w.check(w.T)
			}
		}
		_, err := w.hold("zoe", holds.Item{Tier: "ga", Quantity: 100}) // a batch, so that what is due expires
		w.must(err)
		if len(w.Entries()) > 5000 {
			w.T.Fatal("it doesn't end")
		}
	}
	for _, h := range w.placedHolds {
		if h.Status.Claims() {
			w.T.Fatalf("a hold is still %s", h.Status)
		}
		if o := w.order(h); o != nil && (o.Status == Pending || o.Status == Confirmed && w.writtenOff(o) == 0 || o.Reconciling) {
			w.T.Fatalf("an order is still %s, reconciling %v", o.Status, o.Reconciling)
		}
	}
	for key, balance := range w.sums {
		switch key.Code {
		case "capture-pending:sim", "auth:open", "refunds-pending:sim", "suspense:late":
			if balance != 0 {
				w.T.Fatalf("%s still has %d %s", key.Code, balance, key.Unit)
			}
		}
	}
}

// writtenOff sums what people have written off of an order's claim.
func (w *world) writtenOff(o *Order) (sum ledger.Amount) {
	for _, op := range o.Operations {
		for _, c := range w.casesAbout(op) {
			if c.Reason == cases.CaptureFailed && c.Status == cases.Resolved && c.Resolution == cases.WriteOff {
				sum += c.Amount.Amount
			}
		}
	}
	return sum
}

// settleOrder does one round of everybody's work on an order.
func (w *world) settleOrder(h *holds.Hold, o *Order, paid bool) {
	for _, op := range slices.Clone(o.Operations) {
		_, err := w.do(ledger.SystemPrincipal, &claim{ref: w.of(h), operation: op.ID})
		w.must(err)
		standing := op.Kind == payments.Void && op.Status == OpDeclined && o.reserved(op.Payment)
		if op.sends == 0 || !op.Status.open() && !standing {
			continue
		}
		outcome := payments.Succeeded
		if op.Kind == payments.Authorize && !paid {
			outcome = payments.Declined
		}
		r := w.said(op, outcome)
		if op.ToldAt != nil && op.ToldAt.After(r.At) {
			r.At = *op.ToldAt
		}
		_, err = w.tell(h, fromLookup, r)
		w.must(err)
	}
	_, err := w.do(ledger.SystemPrincipal, &timeout{w.of(h)})
	w.must(err)
	for _, op := range o.Operations {
		for _, c := range w.casesAbout(op) {
			w.settleCase(h, c)
		}
	}
}

// reserved tells whether an authorization of a payment still stands.
func (o *Order) reserved(payment string) bool {
	return slices.ContainsFunc(o.Operations, func(op *Operation) bool { return op.Payment == payment && op.authorized > 0 })
}

// settleCase has policy, then people do what there's left to do about a case: the first
// resolution that is possible.
func (w *world) settleCase(h *holds.Hold, c *cases.Case) {
	if c.Status == cases.Open && c.NextAttemptAt != nil {
		_, err := w.settle(h, c, "")
		w.must(err)
	}
	if c.Status != cases.Open {
		return
	}
	for _, resolution := range []cases.Resolution{cases.Refund, cases.WriteOff, cases.Link} {
		_, err := w.do("fay", &proposing{c.ID, "fay", resolution})
		w.must(err)
		if _, err = w.settle(h, c, "gus"); err == nil {
			return
		}
		w.must(err)
		_, err = w.do("gus", &proposing{caseID: c.ID, by: "gus"})
		w.must(err)
	}
}
