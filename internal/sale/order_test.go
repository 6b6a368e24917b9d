package sale

import (
	"testing"
	"time"
)

func TestOrderStates(t *testing.T) {
	t.Parallel()
	step := func(kind, status string) Operation { return Operation{Kind: kind, Status: status} }
	for name, c := range map[string]struct {
		order                              Order
		settled, paid, declined, wasOwning bool
	}{
		"under way":          {Order{Status: "pending", PaymentStatus: "authorizing", Operations: []Operation{step("authorize", "sent")}}, false, false, false, false},
		"declined":           {Order{Status: "pending", PaymentStatus: "declined", Operations: []Operation{step("authorize", "declined")}}, true, false, true, false},
		"tried again":        {Order{Status: "pending", PaymentStatus: "declined", Operations: []Operation{step("authorize", "declined"), step("authorize", "sent")}}, false, false, false, false},
		"confirmed":          {Order{Status: "confirmed", Operations: []Operation{step("authorize", "succeeded"), step("capture", "sent")}}, false, false, false, true},
		"captured":           {Order{Status: "captured", Operations: []Operation{step("authorize", "succeeded"), step("capture", "succeeded")}}, true, true, false, true},
		"refund under way":   {Order{Status: "captured", Operations: []Operation{step("capture", "succeeded"), step("refund", "unknown")}}, false, true, false, true},
		"capture failed":     {Order{Status: "cancelled", Operations: []Operation{step("capture", "declined")}}, true, false, false, true},
		"transfer may come":  {Order{Status: "cancelled", Operations: []Operation{step("authorize", "requires_action")}}, false, false, false, false},
		"case for a person":  {Order{Status: "cancelled", Reconciling: true}, false, false, false, false},
		"refunded":           {Order{Status: "refunded"}, true, true, false, true},
		"partially refunded": {Order{Status: "partially_refunded"}, true, true, false, true},
	} {
		o := c.order
		if o.Settled() != c.settled || o.Paid() != c.paid || o.Declined() != c.declined || o.wasSold() != c.wasOwning {
			t.Errorf("%s: settled %t, paid %t, declined %t, was sold %t", name, o.Settled(), o.Paid(), o.Declined(), o.wasSold())
		}
	}
}

func TestOrderTellsWhatComesNext(t *testing.T) {
	t.Parallel()
	soon, later := time.Unix(10, 0), time.Unix(20, 0)
	o := Order{Operations: []Operation{
		{Kind: "authorize", Status: "succeeded", Payment: "pay_1", NextAttemptAt: &soon}, // settled: nothing comes
		{Kind: "refund", Status: "unknown", NextAttemptAt: &later},
	}}
	if at, ok := o.next(); !ok || !at.Equal(later) {
		t.Errorf("next %v, %t", at, ok)
	}
	if o.ActsOn() != "" {
		t.Errorf("the buyer has nothing to do, and acts on %q", o.ActsOn())
	}
	o.NextAction = &struct {
		Type string `json:"type"`
	}{"redirect"}
	if o.ActsOn() != "pay_1" {
		t.Errorf("the buyer acts on %q", o.ActsOn())
	}
	o.Status, o.Items = "captured", []OrderItem{{Tier: "ga", Quantity: 3, Returned: 1}, {Tier: "vip", Quantity: 1}}
	if o.Tickets() != 3 {
		t.Errorf("%d tickets", o.Tickets())
	}
	if o.Status = "cancelled"; o.Tickets() != 0 {
		t.Errorf("a cancelled order has %d tickets", o.Tickets())
	}
}
