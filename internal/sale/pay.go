package sale

import (
	"context"
	"encoding/json"
	"time"
)

const (
	// checkoutTries bounds how often a buyer asks for one payment.
	checkoutTries = 5
	// payFaster is how many times sooner buyers pay than others give back: a payment can
	// only begin in a hold's first seconds.
	payFaster = 3
	// hangUpAfter is how long the impatient wait for the first answer.
	hangUpAfter = 30 * time.Millisecond
	// firstPoll and lastPoll are the pauses between a buyer's looks at an order.
	firstPoll = 100 * time.Millisecond
	lastPoll  = time.Second
)

// purchase is an order as its buyer has seen it. Only its buyer changes it, and later
// the one who waits for all; others read it under the book's lock.
type purchase struct {
	receipt *receipt
	buyer   *buyer
	order   Order    // as seen last; its ID is "" until the first look
	owned   int64    // first version at which the tickets were seen to be the buyer's; 0: none
	backs   []change // tickets that the buyer gave back
	asked   int64    // money that the buyer asked back
	acted   bool     // the bank did what it does late
}

// pay pays for a hold, as its buyer does: one method after the other.
func (s *sale) pay(ctx context.Context, b *buyer, r *receipt) {
	if !s.waitUntil(ctx, time.Now().Add(b.thinks/payFaster)) {
		return
	}
	p := &purchase{receipt: r, buyer: b}
	s.book.buy(p)
	for i, method := range b.wallet.methods {
		act := noBank
		if i == 0 {
			act = b.wallet.bank
		}
		if !s.checkout(ctx, p, method, b.hangsUp && i == 0) || !s.follow(ctx, p, act) {
			break
		}
	}
	if p.order.Paid() && b.refunds != nothing {
		s.refund(ctx, p)
	}
}

// checkout asks for a payment under one key until there's an answer; false when it
// leads nowhere. A decline is an answer.
func (s *sale) checkout(ctx context.Context, p *purchase, method string, hangUp bool) bool {
	path, key := "/v1/holds/"+p.receipt.hold.ID+"/checkout", s.newKey(p.buyer.customer)
	request := map[string]any{"payment_method": method, "total": p.receipt.hold.Total}
	if hangUp {
		// The answer is lost: whatever became of it, the key finds it again.
		brief, cancel := context.WithTimeout(ctx, hangUpAfter)
		_, _, _ = s.api.call(brief, "POST", path, key, request)
		cancel()
	}
	for range checkoutTries {
		got, err := s.api.checkout(ctx, path, key, request)
		if err != nil {
			if ctx.Err() == nil {
				s.book.surprise("%s wanted to pay and got no answer: %v", p.buyer.customer, err)
			}
			return false
		}
		if got.status == 503 || got.status == 429 {
			if !s.waitUntil(ctx, p.buyer.soon(time.Now().Add(got.retryAfter))) {
				return false
			}
			continue
		}
		if p.buyer.habit == repeats {
			s.payAgain(ctx, p, path, key, request, got)
		}
		return s.accept(ctx, p, got)
	}
	return false
}

// payAgain repeats a checkout, which pays nothing more.
func (s *sale) payAgain(ctx context.Context, p *purchase, path, key string, request any, first answer) {
	if first.status != 201 && first.status != 402 {
		return // still open, and told as it is; or refused, and judged anew
	}
	again, err := s.api.checkout(ctx, path, key, request)
	if err == nil && !again.repeats(first) && (first.status == 201 || again.code != first.code) {
		s.book.surprise("%s sent a payment again and got %s, not the first answer", p.buyer.customer, again)
	}
}

// accept reads the answer to a checkout; false when the buyer has to go home.
func (s *sale) accept(ctx context.Context, p *purchase, got answer) bool {
	switch {
	case got.status == 201 || got.status == 202:
		var o Order
		if err := json.Unmarshal(got.body, &o); err != nil || o.ID == "" {
			s.book.surprise("%s paid and got %s", p.buyer.customer, got)
			return false
		}
		s.book.see(p, o)
		return true
	case got.code == "payment_declined":
		var no struct {
			OrderID string `json:"order_id"`
		}
		_ = json.Unmarshal(got.body, &no) // what isn't there isn't found either
		return s.look(ctx, p, no.OrderID)
	case got.code == "hold_expired", got.code == "too_late":
		return false
	}
	s.book.surprise("%s wanted to pay and got %s", p.buyer.customer, got)
	return false
}

// look reads an order; false when it couldn't be read.
func (s *sale) look(ctx context.Context, p *purchase, id string) bool {
	var o Order
	if err := s.api.read(ctx, "/v1/orders/"+id, &o); err != nil {
		if ctx.Err() == nil {
			s.book.surprise("%s can't read the order: %v", p.buyer.customer, err)
		}
		return false
	}
	s.book.see(p, o)
	return true
}

// follow looks at an order until it's settled or the sale is over, and acts as the
// buyer's bank on the way. It's true when the payment was declined.
func (s *sale) follow(ctx context.Context, p *purchase, act bank) (declined bool) {
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		switch o := &p.order; {
		case o.Declined():
			return true
		case o.Settled():
			return false
		case o.ActsOn() != "" && (act == completes || act == fails):
			s.tellBank(ctx, p, act)
			act = noBank
		}
		if !s.waitUntil(ctx, time.Now().Add(pause)) || !s.look(ctx, p, p.order.ID) {
			return false
		}
	}
}

// tellBank makes the buyer's bank say yes or no. It may come too late: the order may
// have been given up meanwhile.
func (s *sale) tellBank(ctx context.Context, p *purchase, act bank) {
	word := "complete"
	if act == fails {
		word = "fail"
	}
	if err := s.act(ctx, p.order.payment(), word); err != nil && ctx.Err() == nil {
		s.book.surprise("%s: %v", p.buyer.customer, err)
	}
}

// refund asks for money back, and follows it.
func (s *sale) refund(ctx context.Context, p *purchase) {
	before := p.order
	request := map[string]any{"reason": "can't come", "return_tickets": p.buyer.refunds != half}
	asked, backs := before.Total.Amount, before.Items
	switch p.buyer.refunds {
	case half:
		asked, backs = (before.Total.Amount+1)/2, nil
		request["amount"] = Money{asked, before.Total.Currency}
	case oneTicket:
		back := OrderItem{Tier: before.Items[0].Tier, Quantity: 1}
		if n := len(before.Items[0].Seats); n > 0 {
			back.Seats = before.Items[0].Seats[n-1:]
		}
		backs = []OrderItem{back}
		request["items"] = []item{{back.Tier, 1, back.Seats}}
		asked = 0 // its price with fee and tax: the order tells
	}
	path := "/v1/orders/" + before.ID + "/refunds"
	got, err := s.api.command(ctx, path, s.newKey(p.buyer.customer), request, outcomeRefund)
	var o Order
	if err != nil || got.status != 201 || json.Unmarshal(got.body, &o) != nil {
		if ctx.Err() == nil {
			s.book.surprise("%s wanted money back and got %s (%v)", p.buyer.customer, got, err)
		}
		return
	}
	if asked == 0 {
		asked = o.Refunded.Amount
	}
	s.book.giveBack(p, o, asked, backs)
	s.follow(ctx, p, noBank)
}
