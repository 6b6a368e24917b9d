package orders

import (
	"net/url"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Limits of checkouts.
const (
	// minTimeLeft is how much of a hold's own time a checkout needs: an authorization
	// takes a second or so, and a buyer who's asked to act needs the rest.
	minTimeLeft = 5 * time.Second
	// maxPendingOf bounds the pending orders of a customer, and maxPending those of an
	// event, or of a lane of it: each may keep tickets from others for the length of its grace.
	maxPendingOf = 5
	maxPending   = 10_000
	retryPending = 5 * time.Second

	maxMethod    = 64   // bytes of a payment method
	maxReturnURL = 2048 // bytes
)

// CheckoutRequest is how a customer wants to pay for a hold.
type CheckoutRequest struct {
	PaymentMethod string         `json:"payment_method"`
	ReturnURL     string         `json:"return_url,omitempty"` // where the buyer goes after the bank's page
	Total         *buckets.Money `json:"total,omitempty"`      // what the buyer was shown; refused if it's wrong
}

// validate refuses what no state of the hold could make right.
func (r *CheckoutRequest) validate() error {
	if r.PaymentMethod == "" || len(r.PaymentMethod) > maxMethod || !visible(r.PaymentMethod) {
		return fault.BadField("payment_method", "must have 1 to %d visible characters", maxMethod)
	}
	if r.ReturnURL != "" && !validURL(r.ReturnURL) {
		return fault.BadField("return_url", "must be an http or https URL of at most %d visible characters", maxReturnURL)
	}
	return nil
}

// validURL allows what a browser can be sent to, and no script.
func validURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && len(s) <= maxReturnURL && visible(s)
}

// visible tells whether s is printable ASCII without spaces.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// checkout is the command that begins to pay for a hold.
type checkout struct {
	ref
	request    CheckoutRequest
	noProvider bool // there's nobody to pay with
}

// Decide creates the order, or goes on with it after a payment that wasn't made, and
// sends its authorization.
func (c *checkout) Decide(s *ledger.State) (ledger.Decision, error) {
	d, _ := c.open(s)
	if d.hold == nil {
		return ledger.Decision{}, holds.NotFound(c.hold)
	}
	if err := c.judge(d); err != nil {
		return ledger.Decision{}, err
	}
	d.keepHold(d.hold.Pay(time.Duration(d.event.GraceSeconds)*time.Second, s.NextSeq()), nil)
	kind := KindAttempted
	if d.order == nil {
		kind = KindCreated
		d.order = newOrder(s, d.hold)
	}
	d.order.dueAt = d.hold.PayUntil
	if d.order.Total.Amount == 0 {
		d.confirm(nil)
		return d.decide(KindConfirmed), nil
	}
	d.order.PaymentStatus = PaymentAuthorizing
	op := d.send(payments.Authorize, "", d.order.Total.Amount, "")
	op.method, op.returnURL = c.request.PaymentMethod, c.request.ReturnURL
	return d.decide(kind), nil
}

// judge refuses in the order of precedence.
func (c *checkout) judge(d *deal) error {
	h, now := d.hold, d.s.Now
	switch {
	case h.Status == holds.Confirmed:
		return holds.ErrHoldConfirmed.Because("hold %s was bought", h.ID).With("hold_id", h.ID).With("order_id", c.order)
	case !h.Status.Claims() || h.Due(now):
		return ErrHoldExpired.Because("hold %s has ended", h.ID).With("hold_id", h.ID)
	case h.Status != holds.Held:
		return holds.ErrPaymentInProgress.Because("order %s is being paid", c.order).
			With("hold_id", h.ID).With("order_id", c.order)
	case h.ExpiresAt.Sub(now) < minTimeLeft:
		return ErrTooLate.Because("the hold ends in %s", h.ExpiresAt.Sub(now).Round(time.Millisecond)).
			With("expires_at", h.ExpiresAt).With("minimum_seconds", int(minTimeLeft.Seconds()))
	}
	if total := c.request.Total; total != nil && *total != h.Total {
		return ErrPriceChanged.Because("the order costs %d %s", h.Total.Amount, h.Total.Currency).With("total", h.Total)
	}
	if err := holds.WithinLimits(d.s, h.Customer, h.Items); err != nil {
		return err
	}
	if d.order != nil {
		if err := d.exhausted(payments.Authorize); err != nil {
			return err
		}
	}
	shelf := shelfOf(d.s)
	if d.order == nil && (shelf.pendingOf[h.Customer] >= maxPendingOf || shelf.pending >= maxPending) {
		return ErrTooManyCheckouts.Because("%d by this customer, %d for this event", shelf.pendingOf[h.Customer], shelf.pending).
			With("limit_per_customer", maxPendingOf).With("limit_per_event", maxPending).After(retryPending)
	}
	if c.noProvider && h.Total.Amount > 0 {
		return payments.ErrProviderUnavailable.Because("no provider is configured").After(retryPending)
	}
	return nil
}

// confirm sells the tickets of the hold, in one entry with the money of the payment; op
// is nil when there's nothing to pay.
func (d *deal) confirm(op *Operation) {
	d.keepHold(d.hold.Confirm(d.s.NextSeq()))
	d.sell(op, providerAccount(d.provider))
}

// sell posts what a sale brings: money that was taken and rests on an account, or the
// claim on what's reserved, whose capture is sent.
func (d *deal) sell(op *Operation, from string) {
	o := d.order
	if op == nil || op.taken > 0 || op.Kind == payments.Capture {
		d.proceeds(from, o.Parts)
		d.to(Captured)
		o.Captured.Amount, o.PaymentStatus = o.Total.Amount, PaymentCaptured
		return
	}
	d.proceeds(capturePending(d.provider), o.Parts)
	d.to(Confirmed)
	o.PaymentStatus = PaymentCapturing
	d.send(payments.Capture, op.Payment, o.Total.Amount, "")
}
