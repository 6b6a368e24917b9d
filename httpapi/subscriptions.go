package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/subscribers"
)

// createSubscription answers with the secret; a repeat doesn't.
func (a *api) createSubscription(ctx context.Context, c *call) (answer, error) {
	var spec subscribers.Spec
	key, err := c.command(&spec)
	if err != nil {
		return answer{}, err
	}
	made, err := a.Subscribers.Create(ctx, c.caller.principal, key, spec)
	return issued(http.StatusCreated, made, err)
}

// issued answers a change with the subscription, and with its secret if it made one.
func issued(status int, made subscribers.Issued, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	body, err := json.Marshal(made)
	return answer{status: status, body: body, replayed: made.Replayed}, err
}

func (a *api) listSubscriptions(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	after, err := page.afterID()
	if err != nil {
		return answer{}, err
	}
	list, err := a.Subscribers.List(ctx, after, page.Limit+1)
	if err != nil {
		return answer{}, err
	}
	return listed(page, list, func(s subscribers.Subscription) string { return s.ID.String() })
}

func (a *api) getSubscription(ctx context.Context, c *call) (answer, error) {
	id, err := c.subscriptionID()
	if err != nil {
		return answer{}, err
	}
	sub, err := a.Subscribers.Get(ctx, id)
	if err != nil {
		return answer{}, err
	}
	return found(sub)
}

func (a *api) changeSubscription(ctx context.Context, c *call) (answer, error) {
	var change subscribers.Change
	key, id, err := c.subscriptionCommand(&change)
	if err != nil {
		return answer{}, err
	}
	made, err := a.Subscribers.Update(ctx, c.caller.principal, key, id, change)
	return issued(http.StatusOK, made, err)
}

// rotateSecret answers with the new secret; a repeat doesn't.
func (a *api) rotateSecret(ctx context.Context, c *call) (answer, error) {
	var body struct {
		OverlapSeconds *int64 `json:"overlap_seconds,omitempty"`
	}
	key, id, err := c.subscriptionCommand(&body)
	if err != nil {
		return answer{}, err
	}
	overlap := subscribers.DefaultOverlap
	if body.OverlapSeconds != nil {
		if *body.OverlapSeconds > int64(subscribers.MaxOverlap/time.Second) {
			*body.OverlapSeconds = -1 // what doesn't fit a duration is refused like it
		}
		overlap = time.Duration(max(*body.OverlapSeconds, -1)) * time.Second
	}
	made, err := a.Subscribers.Rotate(ctx, c.caller.principal, key, id, overlap)
	return issued(http.StatusOK, made, err)
}

func (a *api) enableSubscription(ctx context.Context, c *call) (answer, error) {
	key, id, err := c.subscriptionCommand(&struct{}{})
	if err != nil {
		return answer{}, err
	}
	made, err := a.Subscribers.Enable(ctx, c.caller.principal, key, id)
	return issued(http.StatusOK, made, err)
}

func (a *api) disableSubscription(ctx context.Context, c *call) (answer, error) {
	var body struct {
		Reason string `json:"reason"`
	}
	key, id, err := c.subscriptionCommand(&body)
	if err != nil {
		return answer{}, err
	}
	made, err := a.Subscribers.Disable(ctx, c.caller.principal, key, id, body.Reason)
	return issued(http.StatusOK, made, err)
}

// testSubscription answers with what came of a webhook that's sent at once.
func (a *api) testSubscription(ctx context.Context, c *call) (answer, error) {
	key, id, err := c.subscriptionCommand(&struct{}{})
	if err != nil {
		return answer{}, err
	}
	trial, err := a.Subscribers.Try(ctx, c.caller.principal, key, id)
	if err != nil {
		return answer{}, err
	}
	return found(trial)
}

// listDeliveries answers with the log of a subscription, the newest first.
func (a *api) listDeliveries(ctx context.Context, c *call) (answer, error) {
	page, err := c.page()
	if err != nil {
		return answer{}, err
	}
	id, err := c.subscriptionID()
	if err != nil {
		return answer{}, err
	}
	filter := subscribers.Filter{Status: subscribers.DeliveryStatus(c.query.Get("status")), Limit: page.Limit + 1}
	if filter.Status != "" && !filter.Status.Valid() {
		return answer{}, oneOf("status", subscribers.DeliveryStatuses())
	}
	if filter.Before, err = page.beforeDelivery(); err != nil {
		return answer{}, err
	}
	list, err := a.Subscribers.Deliveries(ctx, id, filter)
	if err != nil {
		return answer{}, err
	}
	return listed(page, list, func(d subscribers.Delivery) string {
		return d.CreatedAt.Format(time.RFC3339Nano) + " " + strconv.FormatUint(uint64(d.Journal), 10) + " " + strconv.FormatInt(int64(d.Seq), 10)
	})
}

// beforeDelivery reads the position in a log; the zero value at its beginning.
func (p *cursor) beforeDelivery() (at subscribers.Position, err error) {
	if p.After == "" {
		return at, nil
	}
	words := strings.Split(p.After, " ")
	if len(words) != 3 {
		return at, badCursor()
	}
	if at.At, err = time.Parse(time.RFC3339Nano, words[0]); err != nil || at.At.IsZero() {
		return at, badCursor()
	}
	journal, err := strconv.ParseUint(words[1], 10, 32)
	if err != nil {
		return at, badCursor()
	}
	seq, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return at, badCursor()
	}
	at.Journal, at.Seq = ledger.JournalID(journal), ledger.Seq(seq)
	return at, nil
}

func (a *api) getDelivery(ctx context.Context, c *call) (answer, error) {
	id, err := c.subscriptionID()
	if err != nil {
		return answer{}, err
	}
	journal, err := strconv.ParseUint(c.vars["journal"], 10, 32)
	seq, wrong := strconv.ParseInt(c.vars["seq"], 10, 64)
	if err != nil || wrong != nil {
		return answer{}, subscribers.ErrDeliveryNotFound.Because("no entry has such a name").
			With("journal", clip(c.vars["journal"])).With("seq", clip(c.vars["seq"]))
	}
	delivery, err := a.Subscribers.Delivery(ctx, id, ledger.JournalID(journal), ledger.Seq(seq))
	if err != nil {
		return answer{}, err
	}
	return found(delivery)
}

func (a *api) resendDeliveries(ctx context.Context, c *call) (answer, error) {
	dryRun, key, err := c.maybeDry()
	if err == nil {
		err = c.unconditional()
	}
	if err != nil {
		return answer{}, err
	}
	var body struct {
		Journal *ledger.JournalID            `json:"journal,omitempty"`
		Seq     *ledger.Seq                  `json:"seq,omitempty"`
		Status  []subscribers.DeliveryStatus `json:"status,omitempty"`
		Since   string                       `json:"since,omitempty"`
		Until   string                       `json:"until,omitempty"`
	}
	if err := c.body(&body); err != nil {
		return answer{}, err
	}
	id, err := c.subscriptionID()
	if err != nil {
		return answer{}, err
	}
	resend := subscribers.Resend{Journal: body.Journal, Seq: body.Seq, Status: body.Status}
	if resend.Since, err = optionalTime("since", body.Since); err != nil {
		return answer{}, err
	}
	if resend.Until, err = optionalTime("until", body.Until); err != nil {
		return answer{}, err
	}
	done, replayed, err := a.Subscribers.Resend(ctx, c.caller.principal, key, id, resend, dryRun)
	if err != nil {
		return answer{}, err
	}
	ans, err := found(done)
	ans.replayed = replayed
	return ans, err
}

// optionalTime reads a time; nil for none.
func optionalTime(field, text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, fault.BadField(field, "must be a time such as 2027-03-01T09:00:00Z")
	}
	return &at, nil
}

// subscriptionCommand reads what a change of a subscription needs: its key, the subscription
// of the path, and the body, which may be missing.
func (c *call) subscriptionCommand(dst any) (key string, id uuid.UUID, err error) {
	key, err = c.commandOf(maxBody, func(text []byte) error {
		if len(text) == 0 {
			text = []byte("{}")
		}
		return decode(text, dst)
	})
	if err != nil {
		return "", id, err
	}
	id, err = c.subscriptionID()
	return key, id, err
}

// subscriptionID reads the subscription of the path. What can't be an id is none's.
func (c *call) subscriptionID() (uuid.UUID, error) {
	return c.named("subscription_id", subscribers.ErrSubscriptionNotFound)
}
