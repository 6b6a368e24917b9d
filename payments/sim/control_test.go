package sim

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/tierledger/tierledger/payments"
)

// TestBadCalls has requests that are refused before anything is decided.
func TestBadCalls(t *testing.T) {
	w := newWorld(t, Options{})
	good := map[string]any{"reference": "r", "amount": 1, "currency": "USD", "payment_method": "sim_ok", "capture": "manual"}
	with := func(name string, value any) string {
		body := map[string]any{}
		for k, v := range good {
			body[k] = v
		}
		body[name] = value
		return string(encode(body))
	}
	for _, test := range []struct{ path, key, body, want string }{
		{"/payments", "", with("amount", 1), "idempotency_key_required"},
		{"/payments", strings.Repeat("k", 256), with("amount", 1), "Idempotency-Key"},
		{"/payments", "k", ``, "JSON"},
		{"/payments", "k", with("amount", 1) + "{}", "more than one"},
		{"/payments", "k", with("tip", 1), "tip"},
		{"/payments", "k", with("return_url", strings.Repeat("x", 65<<10)), "65536 bytes"},
		{"/payments", "k", with("reference", ""), "reference"},
		{"/payments", "k", with("amount", 0), "amount"},
		{"/payments", "k", with("amount", maxAmount+1), "amount"},
		{"/payments", "k", with("currency", "usd"), "currency"},
		{"/payments", "k", with("currency", "XYZ"), "currency"},
		{"/payments", "k", with("payment_method", "card"), "sim_ok, sim_decline"},
		{"/payments", "k", with("capture", "later"), "capture"},
		{"/payments", "k", with("payment_method", "sim_transfer"), "automatic"},
		{"/payments/pay_1/capture", "k", `{"reference":"r","currency":"USD"}`, "amount"},
		{"/payments/pay_1/void", "k", `{}`, "reference"},
		{"/payments/pay_1/void", "k", `{"reference":"r"}`, "payment_not_found"},
	} {
		resp, text := w.send("POST", test.path, test.key, test.body)
		if resp.StatusCode/100 != 4 || !strings.Contains(text, test.want) || resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %.100s: %d %s, want %s", test.path, test.body, resp.StatusCode, text, test.want)
		}
	}
	for _, path := range []string{"/payments/pay_1", "/payments/pay_1/bank", "/payments"} {
		if resp, text := w.send("GET", path, "", ""); resp.StatusCode/100 != 4 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
}

func TestControl(t *testing.T) {
	w := newWorld(t, Options{})
	w.control(`{"rates": {"decline": 1}, "webhook_delay_ms": 5}`)
	w.control(`{"slow_ms": 7}`)
	var set Settings
	_, text := w.send("GET", "/control", "", "")
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		t.Fatal(err)
	}
	if set.Rates.Decline != 1 || set.WebhookDelay != 5 || set.SlowLatency != 7 || set != w.sim.Settings() {
		t.Errorf("%s", text)
	}
	w.is(w.authorize("sim_ok"), nil, payments.Declined, "card_declined")
	for body, want := range map[string]string{
		`{"rates": {"slow": 1.01}}`:                   "rates.slow",
		`{"rates": {"webhook_lost": -0.1}}`:           "rates.webhook_lost",
		`{"rates": {"slow": 0.6, "error": 0.6}}`:      "by sum",
		`{"rates": {"requires_action": 0.1}}`:         "by sum",
		`{"rates": {"luck": 1}}`:                      "luck",
		`{"slow_ms": -1}`:                             "slow_ms",
		`{"clock_offset_ms": -99999999999}`:           "clock_offset_ms",
		`{"webhook_url": "mailto:a@b"}`:               "webhook_url",
		``:                                            "JSON",
		`{"slow_ms": 1, "authorize_latency_ms": 1e9}`: "",
	} {
		resp, text := w.send("POST", "/control", "", body)
		if resp.StatusCode != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %s", body, resp.StatusCode, text, want)
		}
	}
	if w.sim.Settings() != set {
		t.Error("a refused change was put in force")
	}
	if err := w.sim.Configure(DefaultSettings()); err != nil {
		t.Error(err)
	}
	if _, err := New(Options{WebhookURL: "http://ledger.test/hook"}); !errors.Is(err, errNoSecrets) {
		t.Errorf("webhooks without secrets: %v", err)
	}
}

// TestBankPage follows next_action as a browser does.
func TestBankPage(t *testing.T) {
	w := newWorld(t, Options{})
	for _, back := range []string{"", "https://shop.test/done"} {
		a, err := w.Authorize(t.Context(), payments.Authorization{
			Operation: w.operation(), Amount: usd106, Method: "sim_requires_action", ReturnURL: back})
		w.is(a, err, payments.RequiresAction, "")
		path, ok := strings.CutPrefix(a.NextAction.URL, w.url)
		if !ok {
			t.Fatalf("next action %s isn't below %s", a.NextAction.URL, w.url)
		}
		if resp, text := w.send("GET", path, "", ""); resp.StatusCode != http.StatusOK || !strings.Contains(text, "106.00 USD") {
			t.Errorf("%d %s", resp.StatusCode, text)
		}
		want := back
		if back == "" {
			want = a.NextAction.URL
		}
		resp, _ := w.send("POST", strings.TrimSuffix(path, "bank")+"complete", "", "", "Content-Type", "application/x-www-form-urlencoded")
		if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != want {
			t.Errorf("%d to %s, want %s", resp.StatusCode, resp.Header.Get("Location"), want)
		}
		w.is(w.lookup(a.Operation), nil, payments.Succeeded, "")
	}
}
