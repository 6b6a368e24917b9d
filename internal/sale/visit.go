package sale

import (
	"bytes"
	"context"
	"encoding/json"
	"time"
)

// visit is one buyer's time at the sale.
func (s *sale) visit(ctx context.Context, b *buyer) {
	s.book.arrive()
	if b.habit == grabs {
		s.grab(ctx, b)
	}
	if r := s.claim(ctx, b); r != nil {
		s.use(ctx, b, r)
	}
}

// soon is a moment after a time: people don't come back in step.
func (b *buyer) soon(t time.Time) time.Time {
	return t.Add(time.Duration(5+b.rand.IntN(200)) * time.Millisecond)
}

// claim asks for the buyer's tickets, and again when told to come back, under one
// key. It returns nil when the buyer goes home without.
func (s *sale) claim(ctx context.Context, b *buyer) *receipt {
	if b.party != nil {
		return s.claimSeats(ctx, b)
	}
	key := s.newKey(b.customer)
	for range b.tries {
		got, ok := s.place(ctx, b, key, b.items)
		if !ok {
			return nil
		}
		if got.status == 201 { // perhaps a repeat of one whose answer we never got
			return s.keep(b, key, b.items, got)
		}
		at, again := got.returns()
		if !again {
			if got.code != "sold_out" {
				s.book.surprise("%s asked for tickets and got %s", b.customer, got)
			}
			return nil
		}
		if !s.waitUntil(ctx, b.soon(at)) {
			return nil
		}
	}
	return nil
}

// place asks for tickets once; false when no answer came.
func (s *sale) place(ctx context.Context, b *buyer, key string, items []line) (answer, bool) {
	request := map[string]any{"customer": b.customer, "items": items}
	got, err := s.api.command(ctx, s.path("/holds"), key, request, outcomeHeld)
	if err != nil && ctx.Err() == nil {
		s.book.surprise("%s got no answer: %v", b.customer, err)
	}
	return got, err == nil
}

// keep writes the receipt of a hold.
func (s *sale) keep(b *buyer, key string, lines []line, got answer) *receipt {
	r := &receipt{key: key, lines: lines, answer: got}
	if err := json.Unmarshal(got.body, &r.hold); err != nil || r.hold.Status != "held" {
		s.book.surprise("%s holds tickets and got %s", b.customer, got)
		return nil
	}
	s.book.keep(r, !b.served)
	b.served = true
	return r
}

// use does with a hold what the buyer's habit is.
func (s *sale) use(ctx context.Context, b *buyer, r *receipt) {
	switch b.habit {
	case releases:
		if s.waitUntil(ctx, time.Now().Add(b.thinks)) {
			s.release(ctx, b, r)
		}
		return
	case abandons:
		return
	case repeats:
		// Perhaps long after the hold has ended: the first answer is the answer.
		got, ok := s.place(ctx, b, r.key, r.lines)
		if ok && !got.repeats(r.answer) {
			s.book.surprise("%s sent a request again and got %s, not the first answer", b.customer, got)
		}
	case alters: // whatever became of the hold: the key is used for good
		other := append([]line(nil), r.lines...)
		if b.party != nil {
			other = []line{{Tier: "ga"}} // instead of seats
		}
		other[0].Quantity++
		got, ok := s.place(ctx, b, r.key, other)
		if ok && (got.status != 422 || got.code != "idempotency_mismatch") {
			s.book.surprise("%s reused a key for another request and got %s", b.customer, got)
		}
	}
	s.pay(ctx, b, r)
}

// grab asks for more than anyone may have.
func (s *sale) grab(ctx context.Context, b *buyer) {
	lines, no := []line{{Tier: "ga", Quantity: customerLimit + 1}}, "limit_exceeded"
	if b.party != nil { // so many seats aren't a request
		lines, no = []line{{Best: &best{Quantity: customerLimit + 1}}}, "invalid_quantity"
	}
	key := s.newKey(b.customer)
	for range b.tries {
		got, ok := s.place(ctx, b, key, lines)
		at, again := got.returns()
		switch {
		case !ok, got.code == no:
			return
		case !again || got.code == "temporarily_held": // the limit comes before the stock
			s.book.surprise("%s asked for %d tickets and got %s", b.customer, customerLimit+1, got)
			return
		case !s.waitUntil(ctx, b.soon(at)):
			return
		}
	}
}

// release gives a hold back, and says so twice, as impatient people do.
func (s *sale) release(ctx context.Context, b *buyer, r *receipt) {
	path, key := "/v1/holds/"+r.hold.ID+"/release", s.newKey(b.customer)
	got, err := s.api.command(ctx, path, key, nil, outcomeReleased)
	var h hold
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case err != nil || got.status != 200 || json.Unmarshal(got.body, &h) != nil:
		s.book.surprise("%s released a hold and got %s (%v)", b.customer, got, err)
		return
	case h.Status != "released": // it had run out before
		return
	}
	s.book.release(r)
	again, err := s.api.command(ctx, path, key, nil, outcomeReleased)
	if err == nil && !again.repeats(got) {
		s.book.surprise("%s released a hold again and got %s, not the first answer", b.customer, again)
	}
}

// repeats tells whether an answer is an earlier one over again, and says so.
func (a answer) repeats(first answer) bool {
	return a.replayed && a.status == first.status && bytes.Equal(a.body, first.body)
}
