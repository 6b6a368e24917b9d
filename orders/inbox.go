package orders

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/cases"
	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Kinds of the entries of webhooks that change no order.
const (
	KindWebhook      = "webhook.received"     // it says nothing new
	KindParked       = "webhook.parked"       // what it's about isn't known yet
	KindUnidentified = "webhook.unidentified" // it's about no payment of ours
)

type webhookStatus string

const (
	webhookApplied      webhookStatus = "applied"
	webhookParked       webhookStatus = "parked"
	webhookUnidentified webhookStatus = "unidentified"
)

// errParked says that evidence can't be applied yet.
var errParked = &fault.Def{Kind: fault.Conflict, Code: "parked", Title: "What the webhook is about isn't known yet."}

// webhook is a webhook as its row. Every delivery of one event has the same event id, so
// the second finds the entry of the first.
type webhook struct {
	provider   string
	event      string
	kind       string    // the provider's type
	operation  uuid.UUID // ours; uuid.Nil for none
	body       []byte
	receivedAt time.Time
	status     webhookStatus
	tries      int
	dueAt      *time.Time
	version    ledger.Seq
}

// Keep records the webhook.
func (w *webhook) Keep(s *ledger.State) {
	shelf := shelfOf(s)
	shelf.webhooks = append(shelf.webhooks, w)
}

// applied gives the webhook as it is once what it says has been taken in.
func (w *webhook) applied(s *ledger.State) *webhook { return w.as(s, webhookApplied) }

func (w *webhook) as(s *ledger.State, status webhookStatus) *webhook {
	kept := *w
	kept.status, kept.version, kept.dueAt = status, s.NextSeq(), nil
	if kept.receivedAt.IsZero() {
		kept.receivedAt = s.Now
	}
	kept.tries++
	return &kept
}

// data is what an entry records of a webhook. The raw body is in its row.
func (w *webhook) data(order uuid.UUID) json.RawMessage {
	view := struct {
		Provider  string        `json:"provider"`
		EventID   string        `json:"event_id"`
		Type      string        `json:"type"`
		Status    webhookStatus `json:"status"`
		Operation *uuid.UUID    `json:"operation_id,omitempty"`
		Order     *uuid.UUID    `json:"order_id,omitempty"`
	}{Provider: w.provider, EventID: w.event, Type: w.kind, Status: w.status}
	if w.operation != uuid.Nil {
		view.Operation = &w.operation
	}
	if order != uuid.Nil {
		view.Order = &order
	}
	text, err := json.Marshal(view)
	if err != nil {
		panic(err) // strings and ids
	}
	return text
}

// park is the command that keeps a webhook until what it's about is known.
type park struct{ webhook *webhook }

func (*park) Accounts() []string { return nil }

// Decide parks it, till the next step of the schedule.
func (c *park) Decide(s *ledger.State) (ledger.Decision, error) {
	w := c.webhook.as(s, webhookParked)
	w.dueAt = new(s.Now.Add(schedule[min(w.tries-1, len(schedule)-1)]))
	return ledger.Decision{Kind: KindParked, Rows: []ledger.Row{w}, Data: w.data(uuid.Nil)}, nil
}

// unidentified is the command that keeps what a provider tells of a payment that isn't
// ours: money rests in suspense, with a case.
type unidentified struct {
	journal ledger.JournalID
	webhook *webhook
	result  payments.Result
}

// maxUnidentified bounds the cases that one such payment may have, one after the other.
const maxUnidentified = 8

// about is the id under which a payment that isn't ours is known.
func (c *unidentified) about() uuid.UUID {
	return ledger.NewID(c.journal, ledger.SystemPrincipal, "payment", c.webhook.provider, c.result.Payment.Reference)
}

const unidentifiedSuspense = "suspense:unidentified"

// Accounts names those that the money may rest on.
func (c *unidentified) Accounts() []string {
	return []string{unidentifiedSuspense, providerAccount(c.webhook.provider)}
}

// CaseIDs names the cases that the payment may have.
func (c *unidentified) CaseIDs() []uuid.UUID {
	ids := make([]uuid.UUID, maxUnidentified)
	for n := range ids {
		ids[n] = cases.ID(c.journal, cases.Unidentified, c.about(), n)
	}
	return ids
}

// Decide books the money that the payment has brought and not given back, as far as it
// isn't booked yet: that's what its case says. An older word changes nothing.
func (c *unidentified) Decide(s *ledger.State) (ledger.Decision, error) {
	w := c.webhook.as(s, webhookUnidentified)
	d := ledger.Decision{Kind: KindUnidentified, Rows: []ledger.Row{w}, Data: w.data(uuid.Nil)}
	known, news := c.known(s)
	if !news {
		return d, nil
	}
	p := c.result.Payment
	rests := max(p.Captured-p.Refunded-p.Disputed, 0)
	change := rests - known.Suspended
	known.Amount.Amount, known.Suspended = max(known.Amount.Amount, p.Captured), rests
	known.LastFact = fact(s.Now, "payment %s: %d captured, %d refunded, %d disputed", p.Reference, p.Captured, p.Refunded, p.Disputed)
	known.ToldAt, known.Version = &c.result.At, s.NextSeq()
	if rests == 0 {
		known = known.Resolve(known.LastFact, s.Now, s.NextSeq())
	}
	if change != 0 {
		d.Legs = []ledger.Leg{
			{Account: providerAccount(w.provider), Unit: p.Currency, Amount: change},
			{Account: unidentifiedSuspense, Unit: p.Currency, Amount: -change},
		}
	}
	d.Rows = append(d.Rows, cases.Row(known))
	text, err := json.Marshal(struct {
		Webhook json.RawMessage `json:"webhook"`
		Cases   []cases.Case    `json:"cases"`
	}{d.Data, []cases.Case{known}})
	d.Data = text
	return d, err
}

// known gives the payment's case, a new one if it has none that isn't resolved; and
// whether what's told now is news.
func (c *unidentified) known(s *ledger.State) (cases.Case, bool) {
	p, about := c.result.Payment, c.about()
	for n, id := range c.CaseIDs() {
		known, ok := cases.Find(s, id)
		switch {
		case ok && known.ToldAt != nil && c.result.At.Before(*known.ToldAt):
			return known, false
		case ok && known.Status != cases.Resolved:
			return known, known.Amount.Currency == p.Currency
		case ok && known.ProposedBy != ledger.SystemPrincipal && p.Captured <= known.Amount.Amount,
			ok && !c.result.At.After(*known.ToldAt):
			return known, false // people have settled it, or it's told already
		case ok:
			continue
		case n > 0 && p.Captured-p.Refunded-p.Disputed <= 0:
			return known, false // it was all given back before
		}
		opened := cases.Case{Reason: cases.Unidentified, OperationID: &about, Provider: c.webhook.provider}
		opened.Amount.Amount, opened.Amount.Currency = p.Captured, p.Currency
		return cases.OpenedNow(s, opened, n), p.Captured > 0
	}
	return cases.Case{}, false
}
