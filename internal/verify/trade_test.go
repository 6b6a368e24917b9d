package verify_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/orders"
)

// trade sells: an order that's captured, refunded in part and charged back in part; one
// whose capture and one whose refund have no outcome; one that waits for its buyer.
func trade(t *testing.T, stores service.Stores, provider string) {
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
	dan := captured(t, stores, buy("dan", "sim_ok"))
	refund(dan, 100)
	post(t, provider+"/payments/"+dan.Operations[0].Payment+"/dispute", `{"amount":500}`)
	post(t, provider+"/control", `{"rates":{"webhook_lost":1}}`)
	buy("eve", "sim_capture_timeout")
	buy("fay", "sim_requires_action")
	gus := captured(t, stores, buy("gus", "sim_ok"))
	post(t, provider+"/control", `{"rates":{"error":1}}`)
	refund(gus, 100)
}

// captured waits for the capture of an order: on a busy machine the provider's answer may come
// too late, and the janitor has to ask for it.
func captured(t *testing.T, stores service.Stores, o orders.Order) orders.Order {
	t.Helper()
	ctx := context.Background()
	pgtest.Until(t, "the order of "+o.Customer+" is captured", func() bool {
		if o.Status == orders.Captured {
			return true
		}
		_, err := stores.Orders.Work(ctx)
		if err == nil {
			stores.Orders.Idle()
			o, err = stores.Orders.Get(ctx, o.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		return false
	})
	return o
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
