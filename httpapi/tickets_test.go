package httpapi_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/tierledger/tierledger/internal/pg"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/keyring"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/outbox"
	"github.com/tierledger/tierledger/tickets"
)

// office is a world that issues tickets, when issue says so.
type office struct {
	*world
	inbox *outbox.Inbox
}

func openOffice(t *testing.T, secrets ...string) *office {
	t.Helper()
	o := &office{world: serve(t, nil)}
	var err error
	if o.stores.Tickets.Ring, err = keyring.Parse(secrets...); err != nil {
		t.Fatal(err)
	}
	pool, err := pg.Open(context.Background(), pg.Options{URL: o.db.ServiceURL(), Name: t.Name(), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	o.inbox = outbox.NewInbox(outbox.InboxOptions{Pool: pool, Consumer: o.stores.Tickets.Consumer(), Log: slog.New(slog.DiscardHandler)})
	return o
}

// issue has the consumer take all that the event's journal has.
func (o *office) issue() {
	o.t.Helper()
	if err := o.inbox.Advance(context.Background(), ledger.JournalID(1)); err != nil {
		o.t.Fatal(err)
	}
}

// buy sells tickets of ga, and gives the path of the order once it's captured.
func (o *office) buy(customer string, quantity int) string {
	o.t.Helper()
	hold := o.hold("gig", "hold-"+customer, customer, quantity).is(201).text("hold_id")
	order := o.post("/v1/holds/"+hold+"/checkout", "pay-"+customer, `{"payment_method":"sim_ok"}`)
	path := "/v1/orders/" + order.text("order_id")
	pgtest.Until(o.t, "the capture", func() bool { return o.get(path).text("status") == "captured" })
	return path
}

// A buyer's tickets are listed once the order is captured, are verified by a gate that has
// nothing but the published keys, and are revoked with the units that go back.
func TestTickets(t *testing.T) {
	o := openOffice(t, keyring.New())
	o.event("gig", 10)
	path := o.buy("ann", 2)
	if body := string(o.get(path + "/tickets").is(200).body); body != `{"data":[],"next_cursor":null}` {
		t.Errorf("before they're issued: %s", body)
	}
	o.issue()
	list := o.get(path+"/tickets").is(200).has("data.0.status", "valid", "data.0.number", 1, "data.0.event", "gig", "data.0.tier", "ga",
		"data.0.seat", "<nil>", "data.1.number", 2, "data.1.status", "valid", "next_cursor", "<nil>")
	second := "/v1/tickets/" + list.text("data.1.ticket_id")
	tag := o.get(second).is(200).has("token", list.text("data.1.token"), "status", "valid").header.Get("ETag")
	o.get(second, "If-None-Match", tag).is(304)

	claims := o.verify(list.text("data.1.token"))
	for name, want := range map[string]any{"jti": list.text("data.1.ticket_id"), "event": "gig", "tier": "ga",
		"order": strings.TrimPrefix(path, "/v1/orders/"), "number": 2.0} {
		if claims[name] != want {
			t.Errorf("%s is %v, want %v", name, claims[name], want)
		}
	}

	o.post(path+"/refunds", "refund", `{"items":[{"tier":"ga","quantity":1}],"return_tickets":true,"reason":"ill"}`).is(201)
	o.issue()
	o.get(path+"/tickets").is(200).has("data.0.status", "valid", "data.1.status", "revoked", "data.1.token", list.text("data.1.token"))
	if now := o.get(second, "If-None-Match", tag).is(200).has("status", "revoked").header.Get("ETag"); now == tag {
		t.Errorf("the tag is still %s", tag)
	}
}

// verify checks a token as a gate does, and gives its claims.
func (o *office) verify(token string) jwt.MapClaims {
	o.t.Helper()
	var set struct{ Keys []map[string]string }
	if err := json.Unmarshal(o.get("/v1/ticket-keys").is(200).body, &set); err != nil {
		o.t.Fatal(err)
	}
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		for _, k := range set.Keys {
			if k["kid"] == t.Header["kid"] && k["crv"] == "Ed25519" {
				x, err := base64.RawURLEncoding.DecodeString(k["x"])
				return ed25519.PublicKey(x), err
			}
		}
		return nil, errors.New("no such key")
	}, jwt.WithValidMethods([]string{"EdDSA"}))
	if err != nil {
		o.t.Fatal(err)
	}
	return claims
}

// A long list of tickets comes in pages.
func TestTicketsInPages(t *testing.T) {
	o := openOffice(t, keyring.New())
	o.event("gig", 10)
	path := o.buy("ann", 5) + "/tickets"
	o.issue()
	var numbers []string
	for query, pages := "?limit=2", 0; query != ""; pages++ {
		page := o.get(path + query).is(200)
		for i := range len(page.field("data").([]any)) {
			numbers = append(numbers, page.text(fmt.Sprintf("data.%d.number", i)))
		}
		query = ""
		if next := page.text("next_cursor"); next != "<nil>" {
			query = "?cursor=" + escape(next)
		}
		if pages > 3 {
			t.Fatal("it doesn't end")
		}
	}
	if got := strings.Join(numbers, " "); got != "1 2 3 4 5" {
		t.Errorf("listed %s", got)
	}
	cursor := func(after string) string {
		return "?cursor=" + encode(fmt.Sprintf(`{"path":%q,"filters":"","limit":2,"after":%q}`, path, after))
	}
	for _, after := range []string{"0", "-1", "x", "99999999999"} {
		o.get(path+cursor(after)).refused(400, "invalid_request")
	}
}

// The keys are for anybody, may be kept, and change with the secrets.
func TestTicketKeys(t *testing.T) {
	o := openOffice(t, keyring.New(), keyring.New())
	r := o.get("/v1/ticket-keys", "Authorization", "Bearer nobody's").is(200)
	r.has("keys.0.kid", o.stores.Tickets.Ring[0].ID, "keys.1.kid", o.stores.Tickets.Ring[1].ID, "keys.0.alg", "EdDSA")
	if kind, keep := r.header.Get("Content-Type"), r.header.Get("Cache-Control"); kind != "application/jwk-set+json" || keep != "public, max-age=300" {
		t.Errorf("%s, %s", kind, keep)
	}
	tag := r.header.Get("ETag")
	o.get("/v1/ticket-keys", "If-None-Match", tag).is(304)
	o.stores.Tickets.Ring = o.stores.Tickets.Ring[:1]
	if now := o.get("/v1/ticket-keys", "If-None-Match", tag).is(200).header.Get("ETag"); now == tag || now == "" {
		t.Errorf("the tag was %s, is %s", tag, now)
	}
}

func TestTicketsThatDoNotExist(t *testing.T) {
	o := openOffice(t)
	o.event("gig", 10)
	o.get("/v1/ticket-keys").refused(404, tickets.ErrNoTicketKeys.Code)
	for _, id := range []string{"x", "00000001-77a1-8c40-a3b5-0d7e21c4f9a8", "f47ac10b-58cc-4372-a567-0e02b2c3d479"} {
		r := o.get("/v1/tickets/"+id).refused(404, tickets.ErrTicketNotFound.Code)
		r.has("ticket_id", id)
		o.get("/v1/orders/"+id+"/tickets").refused(404, "order_not_found")
	}
	o.get("/v1/tickets/x?limit=1").refused(400, "invalid_request")
}
