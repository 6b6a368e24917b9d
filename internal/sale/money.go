package sale

import (
	"context"
	"net/url"
	"slices"
	"strings"
)

// Balance is a line of the trial balance: what an account has, on its side.
type Balance struct {
	Account string `json:"account"`
	Unit    string `json:"unit"`
	Debit   int64  `json:"debit"`
	Credit  int64  `json:"credit"`
}

// money is what became of it.
type money struct {
	orders     []Order
	accounts   []Balance        // in money, that aren't zero
	cases      map[string]int64 // open ones, by reason
	reconciled Reconciled
}

// currency is the sale's.
const currency = "USD"

// money reads the orders and holds them against what the buyers saw, against the
// provider's own report, and against the ledger's accounts.
func (s *sale) money(ctx context.Context) (m money, err error) {
	if m.orders, err = List[Order](ctx, s.plan.URL, "/v1/orders", s.ofEvent()); err != nil {
		return m, err
	}
	settlement, err := ReadSettlement(ctx, s.plan.URL)
	if err != nil {
		return m, err
	}
	charges := settlement.Charges(m.orders)
	for _, row := range charges.Lost {
		s.book.surprise("the provider took %d in %s, and the ledger doesn't know it", row.Gross, row.ID)
	}
	s.attach(m.orders)
	s.auditOwners(m.orders)
	for _, p := range s.book.purchases {
		s.auditOrder(p, charges.of(p.order.ID))
	}
	if m.reconciled, err = settlement.Reconcile(ctx, s.plan.URL, "report-"+s.plan.Event); err != nil {
		s.book.surprise("%v", err)
	}
	if m.reconciled.Unexplained > 0 {
		s.book.surprise("%d lines of the provider's report aren't explained: %v", m.reconciled.Unexplained, m.reconciled.ByResult)
	}
	if err := s.readAccounts(ctx, &m); err != nil {
		return m, err
	}
	s.auditBalance(settlement, &charges, &m)
	m.cases, err = s.openCases(ctx)
	return m, err
}

// attach gives each purchase its order as it is in the end. An answer may have been
// lost: then the hold tells whose it is.
func (s *sale) attach(orders []Order) {
	byHold := map[string]*receipt{}
	for _, r := range s.book.receipts {
		byHold[r.hold.ID] = r
	}
	found := map[string]bool{}
	for _, o := range orders {
		r := byHold[o.HoldID]
		if r == nil || r.purchase == nil {
			s.book.surprise("order %s is nobody's: no buyer has paid for hold %s", o.ID, o.HoldID)
			continue
		}
		p := r.purchase
		found[o.ID] = true
		s.auditSeats(r, &o)
		if p.order.Paid() && !o.Paid() {
			s.book.surprise("order %s is %s, its buyer saw it %s", o.ID, o.Status, p.order.Status)
		}
		s.book.see(p, o)
	}
	for _, p := range s.book.purchases {
		if p.order.ID != "" && !found[p.order.ID] {
			s.book.surprise("order %s isn't among the event's orders", p.order.ID)
		}
	}
}

// auditSeats compares the seats that an order is for with those that were held.
func (s *sale) auditSeats(r *receipt, o *Order) {
	var held, ordered []string
	for _, i := range r.hold.Items {
		held = append(held, i.Seats...)
	}
	for _, i := range o.Items {
		ordered = append(ordered, i.Seats...)
	}
	slices.Sort(held)
	slices.Sort(ordered)
	if !slices.Equal(held, ordered) {
		s.book.surprise("order %s is for seats %v, its hold is of %v", o.ID, ordered, held)
	}
}

// auditOrder holds an order against what the provider did, and what its buyer asked for.
func (s *sale) auditOrder(p *purchase, c charge) {
	o := &p.order
	switch {
	case o.ID == "":
	case o.Paid() && (c.times != 1 || c.taken != o.Total.Amount || o.Captured.Amount != c.taken):
		s.book.surprise("order %s is %s for %d: the provider charged %d times, %d together",
			o.ID, o.Status, o.Total.Amount, c.times, c.taken)
	case o.Settled() && !o.Paid() && c.taken != c.refunded:
		s.book.surprise("order %s is %s: the provider took %d and gave %d back", o.ID, o.Status, c.taken, c.refunded)
	case o.Settled() && o.Paid() && (o.Refunded.Amount != p.asked || c.refunded != p.asked):
		s.book.surprise("order %s: its buyer asked for %d back, it says %d, the provider gave %d",
			o.ID, p.asked, o.Refunded.Amount, c.refunded)
	}
}

// readAccounts reads the balances of money.
func (s *sale) readAccounts(ctx context.Context, m *money) error {
	var trial struct {
		Accounts []Balance `json:"accounts"`
	}
	if err := s.api.read(ctx, s.path("/trial-balance"), &trial); err != nil {
		return err
	}
	for _, a := range trial.Accounts {
		if strings.HasPrefix(a.Unit, currency) && (a.Debit != 0 || a.Credit != 0) {
			m.accounts = append(m.accounts, a)
		}
	}
	return nil
}

// auditBalance compares what the ledger has at the provider with what the provider's
// report adds up to.
func (s *sale) auditBalance(settlement *Settlement, charges *Charges, m *money) {
	reported := int64(0)
	for _, row := range settlement.Rows {
		reported += row.Gross - row.Fee
	}
	booked := int64(0)
	for _, a := range m.accounts {
		if a.Account == "provider:sim" && a.Unit == currency {
			booked = a.Debit - a.Credit
		}
	}
	if booked != reported && len(charges.Lost) == 0 && charges.Ahead == 0 {
		s.book.surprise("the provider's report adds up to %d, the ledger has %d there", reported, booked)
	}
}

// ofEvent filters a list by the sale's event.
func (s *sale) ofEvent() url.Values { return url.Values{"event": {s.plan.Event}} }

// openCases counts the cases that aren't resolved, by reason.
func (s *sale) openCases(ctx context.Context) (map[string]int64, error) {
	type entry struct {
		Reason string `json:"reason"`
		Status string `json:"status"`
	}
	cases, err := List[entry](ctx, s.plan.URL, "/v1/recon/cases", s.ofEvent())
	reasons := map[string]int64{}
	for _, c := range cases {
		if c.Status != "resolved" {
			reasons[c.Reason]++
		}
	}
	return reasons, err
}
