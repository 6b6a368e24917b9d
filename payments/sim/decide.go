package sim

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tierledger/tierledger/payments"
)

// The payment methods; doc.go says what they do.
const (
	methodOK             = "sim_ok"
	methodDecline        = "sim_decline"
	methodRequiresAction = "sim_requires_action"
	methodProcessing     = "sim_processing"
	methodTransfer       = "sim_transfer"
	methodTimeoutApplied = "sim_timeout_applied"
	methodTimeoutLost    = "sim_timeout_lost"
	methodSlow           = "sim_slow"
	methodError          = "sim_error"
	methodCaptureFails   = "sim_capture_fails"
	methodCaptureTimeout = "sim_capture_timeout"
	methodRefundPending  = "sim_refund_pending"
	methodWebhookLate    = "sim_webhook_late"
	methodWebhookTwice   = "sim_webhook_twice"
)

// Methods lists the payment methods.
func Methods() []string {
	return []string{
		methodOK, methodDecline, methodRequiresAction, methodProcessing, methodTransfer,
		methodTimeoutApplied, methodTimeoutLost, methodSlow, methodError, methodCaptureFails,
		methodCaptureTimeout, methodRefundPending, methodWebhookLate, methodWebhookTwice,
	}
}

// The ways to capture.
const (
	manual    = "manual"
	automatic = "automatic"
)

// moment is what a decision knows besides the book and the request.
type moment struct {
	now     time.Time
	unlucky string // the method whose behaviour chance has put in the place of sim_ok's; or ""
	base    string // where this server's paths begin, for links
}

// decision judges a request: it gives the change, or why it's refused.
type decision func(b *book, p payment, r *request, m moment) (change, *refusal)

// refusal is a call that changed nothing.
type refusal struct {
	status  int
	code    string
	detail  string
	payment *payment
}

func refuse(status int, code, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, detail: fmt.Sprintf(format, args...)}
}

// conflict is a refusal because of the state that a payment is in.
func conflict(code string, p *payment) *refusal {
	return &refusal{http.StatusConflict, code, fmt.Sprintf("payment %s is %s", p.ID, p.Status), p}
}

func authorize(b *book, _ payment, r *request, m moment) (change, *refusal) {
	p := payment{
		ID: fmt.Sprintf("pay_%08d", len(b.payments)+1), Reference: r.Reference,
		Amount: r.Amount, Currency: r.Currency, Method: r.Method, Capture: r.Capture,
		ReturnURL: r.ReturnURL, Metadata: r.Metadata, CreatedAt: m.now, UpdatedAt: m.now,
	}
	o := b.newOperation(&p, payments.Authorize, r.Reference, r.Amount, m.now)
	var rows []row
	switch m.behaviour(r.Method) {
	case methodDecline:
		p.Status = failed
		o.settle(payments.Declined, "card_declined", m.now)
	case methodRequiresAction:
		p.Status, o.Status = requiresAction, payments.RequiresAction
		o.NextAction = &payments.NextAction{Type: "redirect", URL: m.bank(&p)}
	case methodTransfer:
		p.Status, o.Status = requiresAction, payments.RequiresAction
		o.NextAction = &payments.NextAction{Type: "transfer", URL: m.bank(&p)}
	case methodProcessing:
		p.Status, o.Status = processing, payments.Pending
	default:
		p.pay(r.Amount)
		rows = b.charged(&p, &o)
	}
	return change{At: m.now, Payment: p, Operations: []operation{o}, Rows: rows}, nil
}

func capture(b *book, p payment, r *request, m moment) (change, *refusal) {
	switch {
	case p.Captured > 0:
		return change{}, conflict("already_captured", &p)
	case p.Status != authorized:
		return change{}, conflict("not_authorized", &p)
	case r.Amount > p.Authorized:
		return change{}, conflict("amount_too_large", &p)
	}
	o := b.newOperation(&p, payments.Capture, r.Reference, r.Amount, m.now)
	if m.behaviour(p.Method) == methodCaptureFails {
		p.Status, p.Authorized = failed, 0
		o.settle(payments.Declined, "capture_failed", m.now)
		return p.changed(m.now, o), nil
	}
	p.Captured, p.Status = r.Amount, captured
	c := p.changed(m.now, o)
	c.Rows = []row{b.newRow(rowCapture, &o, r.Amount, feeOf(r.Amount, p.Currency))}
	return c, nil
}

func void(b *book, p payment, r *request, m moment) (change, *refusal) {
	switch {
	case p.Status == voided:
		return change{}, conflict("already_voided", &p)
	case p.Captured > 0:
		return change{}, conflict("already_captured", &p)
	case p.Status != authorized:
		return change{}, conflict("not_authorized", &p)
	}
	o := b.newOperation(&p, payments.Void, r.Reference, p.Authorized, m.now)
	p.Status, p.Authorized = voided, 0
	return p.changed(m.now, o), nil
}

func cancel(b *book, p payment, r *request, m moment) (change, *refusal) {
	switch {
	case p.Status == canceled:
		return change{}, conflict("already_canceled", &p)
	case p.Status == failed || p.Status == voided:
		return change{}, conflict("already_"+string(p.Status), &p)
	case p.Status != requiresAction && p.Status != processing:
		return change{}, conflict(payments.ReasonAlreadyPaid, &p)
	case p.Method == methodTransfer:
		return change{}, conflict(payments.ReasonNotCancellable, &p)
	}
	o := b.newOperation(&p, payments.Cancel, r.Reference, p.Amount, m.now)
	intent := b.last(p.ID, isAuthorization)
	intent.settle(payments.Declined, string(canceled), m.now)
	p.Status = canceled
	return p.changed(m.now, o, intent), nil
}

func refund(b *book, p payment, r *request, m moment) (change, *refusal) {
	switch {
	case p.Captured == 0:
		return change{}, conflict("not_captured", &p)
	case r.Amount > p.refundable():
		return change{}, conflict("amount_too_large", &p)
	}
	o := b.newOperation(&p, payments.Refund, r.Reference, r.Amount, m.now)
	if p.Method == methodRefundPending {
		p.RefundsPending += r.Amount
		o.Status = payments.Pending
		return p.changed(m.now, o), nil
	}
	p.refund(r.Amount)
	c := p.changed(m.now, o)
	c.Rows = []row{b.newRow(rowRefund, &o, -r.Amount, 0)}
	return c, nil
}

// charged gives the row of a payment that was captured when it was made.
func (b *book) charged(p *payment, o *operation) []row {
	if p.Captured == 0 {
		return nil
	}
	return []row{b.newRow(rowCharge, o, p.Captured, feeOf(p.Captured, p.Currency))}
}

// changed makes the change that leaves the payment as it is now.
func (p *payment) changed(now time.Time, operations ...operation) change {
	p.UpdatedAt = now
	return change{At: now, Payment: *p, Operations: operations}
}

// behaviour is the method by which a payment goes: chance touches only sim_ok.
func (m moment) behaviour(method string) string {
	if method == methodOK && m.unlucky != "" {
		return m.unlucky
	}
	return method
}

// bank is the page on which the buyer acts.
func (m moment) bank(p *payment) string { return m.base + "/payments/" + p.ID + "/bank" }

func isAuthorization(o *operation) bool { return o.Kind == payments.Authorize }
