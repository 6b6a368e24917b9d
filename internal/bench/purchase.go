package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tierledger/tierledger/internal/load"
	"github.com/tierledger/tierledger/internal/sale"
)

const (
	// checkoutTries bounds how often a payment is asked for under its key.
	checkoutTries = 4
	// firstPoll and lastPoll are the pauses between a client's looks at an order, each
	// half as long again as the one before.
	firstPoll = 20 * time.Millisecond
	lastPoll  = 200 * time.Millisecond
	// pollFor is how long a client waits for the money to be captured; what takes longer
	// is left to be settled at the end. Nothing does when nothing goes wrong.
	pollFor       = 20 * time.Second
	pollForFaults = time.Second
)

// Outcomes of a purchase; refusals are counted by their code.
const (
	outcomeCaptured = "captured"
	outcomeDeclined = "declined"
	outcomeOpen     = "open"
	outcomeAnswered = "answered" // a checkout, whatever the provider said
)

// saleRecorders keep what came back, by what was asked.
type saleRecorders struct {
	holds     *load.Recorder
	checkouts *load.Recorder // until the first answer
	beyond    *load.Recorder // of that, what isn't the provider's time
	complete  *load.Recorder // from the hold until the money was seen to be captured
	status    *load.Recorder // of the readers
	ends      *load.Recorder // of all purchases, and their failures
}

func newSaleRecorders() *saleRecorders {
	return &saleRecorders{
		load.NewRecorder(), load.NewRecorder(), load.NewRecorder(), load.NewRecorder(), load.NewRecorder(),
		load.NewRecorder(),
	}
}

// failures lists what failed, of buyers and readers.
func (s *saleRecorders) failures() []string {
	return append(s.ends.FailureTexts(), s.status.FailureTexts()...)
}

func (s *saleRecorders) failed() int64 { return s.ends.Failures() + s.status.Failures() }

// end counts the end of a purchase.
func (s *saleRecorders) end(outcome string, took time.Duration) {
	s.ends.Answered(outcome, took)
	if outcome == outcomeCaptured {
		s.complete.Answered(outcome, took)
	}
}

// purchase buys tickets of an event on the connection of one client: hold, payment, and
// looks at the order until it's captured. Latencies count from when it was due. One that
// has begun is waited for even when ctx ends.
func (r *saleRun) purchase(ctx context.Context, to *saleRecorders, client int, event string, n int64, due time.Time) {
	ctx = context.WithoutCancel(ctx)
	behind := time.Since(due) // what the client was late; the payment's latency has it too
	key := event + "-" + strconv.FormatInt(n, 10)
	hold, refused, err := r.hold(ctx, client, event, key)
	if err != nil {
		to.ends.Failed(err.Error())
		return
	}
	if refused != "" {
		to.holds.Answered(refused, time.Since(due))
		to.end(refused, time.Since(due))
		return
	}
	to.holds.Answered(outcomeHeld, time.Since(due))
	started := time.Now()
	outcome, order, err := r.checkout(ctx, client, hold, key+"-pay")
	took := time.Since(started) + behind
	if err == nil && outcome == "" || outcome == outcomeDeclined {
		to.checkouts.Answered(outcomeAnswered, took)
		to.beyond.Answered(outcomeAnswered, max(0, took-r.Authorize))
	}
	if err == nil && outcome == "" {
		r.recent.add(order.ID)
		outcome, err = r.follow(ctx, client, &order)
	}
	if err != nil {
		to.ends.Failed(err.Error())
		return
	}
	to.end(outcome, time.Since(due))
}

// hold places a hold; refused is the code of a refusal.
func (r *saleRun) hold(ctx context.Context, client int, event, key string) (id, refused string, err error) {
	b := append(r.server.bodies[client][:0], `{"customer":"`...)
	b = append(b, key...)
	b = append(b, `","items":[{"tier":"`+tier+`","quantity":`...)
	b = strconv.AppendInt(b, r.PerHold, 10)
	b = append(b, `}]}`...)
	r.server.bodies[client] = b
	a, err := r.server.clients[client].Do(ctx, http.MethodPost, "/v1/events/"+event+"/holds", key, b)
	switch {
	case err != nil:
		return "", "", err
	case a.Status == http.StatusConflict:
		return "", a.Code(), nil
	case a.Status != http.StatusCreated:
		return "", "", fmt.Errorf("hold: %d %s", a.Status, a.Code())
	}
	var hold struct {
		ID string `json:"hold_id"`
	}
	err = json.Unmarshal(a.Body, &hold)
	return hold.ID, "", err
}

var payBody = []byte(`{"payment_method":"sim_ok"}`)

// checkout asks for the payment, and again under the same key when no answer came or
// the service wants it later. The outcome is a refusal's code, outcomeDeclined, or ""
// with the order that the answer tells of.
func (r *saleRun) checkout(ctx context.Context, client int, hold, key string) (outcome string, order sale.Order, err error) {
	for range checkoutTries {
		var a load.Answer
		a, err = r.server.clients[client].Do(ctx, http.MethodPost, "/v1/holds/"+hold+"/checkout", key, payBody)
		if err != nil {
			continue
		}
		switch a.Status {
		case http.StatusCreated, http.StatusAccepted:
			err = json.Unmarshal(a.Body, &order)
			return "", order, err
		case http.StatusPaymentRequired:
			return outcomeDeclined, order, nil
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			outcome = a.Code()
			time.Sleep(min(a.RetryAfter(), time.Second))
		case http.StatusConflict:
			return a.Code(), order, nil
		default:
			return "", order, fmt.Errorf("checkout: %d %s", a.Status, a.Code())
		}
	}
	return outcome, order, err
}

// follow looks at an order until it's captured or the money won't come, and approves at
// the buyer's bank where that's asked. What isn't known in time stays open.
func (r *saleRun) follow(ctx context.Context, client int, order *sale.Order) (outcome string, err error) {
	patience := pollFor
	if r.Faults > 0 {
		patience = pollForFaults
	}
	approved := false
	started := time.Now()
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		switch {
		case order.Paid():
			return outcomeCaptured, nil
		case order.Declined() || order.Status == "cancelled":
			return outcomeDeclined, nil
		case time.Since(started) > patience:
			r.open.add(order.ID)
			return outcomeOpen, nil
		}
		if payment := order.ActsOn(); payment != "" && !approved {
			if err := r.approve(ctx, client, payment); err != nil {
				return "", err
			}
			approved = true
		}
		time.Sleep(pause)
		if err := r.look(ctx, client, order); err != nil {
			return "", err
		}
	}
}

// look reads an order.
func (r *saleRun) look(ctx context.Context, client int, order *sale.Order) error {
	a, err := r.server.clients[client].Do(ctx, http.MethodGet, "/v1/orders/"+order.ID, "", nil)
	if err == nil && a.Status != http.StatusOK {
		err = fmt.Errorf("order: %d %s", a.Status, a.Code())
	}
	if err != nil {
		return err
	}
	*order = sale.Order{}
	return json.Unmarshal(a.Body, order)
}

// approve is the bank's yes; it may have been told before.
func (r *saleRun) approve(ctx context.Context, client int, payment string) error {
	a, err := r.server.clients[client].Do(ctx, http.MethodPost, "/sim/payments/"+payment+"/complete", "", nil)
	if err == nil && a.Status != http.StatusOK && a.Code() != "nothing_open" {
		err = fmt.Errorf("the bank: %d %s", a.Status, a.Code())
	}
	return err
}
