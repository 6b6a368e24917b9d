package verify_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/payments/sim"
)

// shop fits the stores with a simulated provider, whose webhooks they get.
func shop(t *testing.T, db *pgtest.DB) (service.Stores, *httptest.Server) {
	t.Helper()
	secrets, err := service.NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	provider, err := sim.New(sim.Options{Seed: 1, Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	var stores service.Stores
	mux := http.NewServeMux()
	mux.Handle("/sim/", http.StripPrefix("/sim", provider))
	mux.HandleFunc("POST /hook", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = stores.Orders.Receive(r.Context(), "sim", body, r.Header)
		}
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { provider.Close() })
	client, err := payments.NewClient(payments.Options{URL: server.URL + "/sim", Secrets: secrets, Timeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	stores = pgtest.Stores(t, db, nil, client)
	if err := provider.SetWebhookURL(server.URL + "/hook"); err != nil {
		t.Fatal(err)
	}
	return stores, server
}

// trade sells: an order that's captured, refunded in part and charged back in part; one
// whose capture and one whose refund have no outcome; one that waits for its buyer.
func trade(t *testing.T, stores service.Stores, provider *httptest.Server) {
	t.Helper()
	ctx := context.Background()
	buy := func(customer, method string) orders.Order {
		t.Helper()
		_, err := stores.Holds.Place(ctx, "t", customer, "gig", holds.Request{Customer: customer,
			Items: []holds.Line{{Tier: "ga", Quantity: 2}}})
		if err != nil {
			t.Fatal(err)
		}
		hold := ledger.NewID(1, "t", customer)
		if _, err := stores.Orders.Checkout(ctx, "t", "pay "+customer, hold, orders.CheckoutRequest{PaymentMethod: method}); err != nil {
			t.Fatal(err)
		}
		stores.Orders.Idle()
		o, err := stores.Orders.Get(ctx, orders.OrderID(1, hold))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	refund := func(o orders.Order, cents ledger.Amount) {
		t.Helper()
		r := orders.RefundRequest{Amount: &buckets.Money{Amount: cents, Currency: "USD"}, Reason: "rain"}
		if _, err := stores.Orders.Refund(ctx, "t", "refund "+o.Customer, o.ID, r, nil); err != nil {
			t.Fatal(err)
		}
		stores.Orders.Idle()
	}
	dan := buy("dan", "sim_ok")
	refund(dan, 100)
	post(t, provider.URL+"/sim/payments/"+dan.Operations[0].Payment+"/dispute", `{"amount":500}`)
	post(t, provider.URL+"/sim/control", `{"rates":{"webhook_lost":1}}`)
	buy("eve", "sim_capture_timeout")
	buy("fay", "sim_requires_action")
	gus := buy("gus", "sim_ok")
	post(t, provider.URL+"/sim/control", `{"rates":{"error":1}}`)
	refund(gus, 100)
}

func post(t *testing.T, url, body string) {
	t.Helper()
	answer, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		t.Fatalf("%s: %s", url, answer.Status)
	}
}
