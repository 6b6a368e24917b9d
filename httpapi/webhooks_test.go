package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/tierledger/tierledger/httpapi"
	"github.com/tierledger/tierledger/payments"
)

// signed gives the headers of a webhook that is signed now, or some time ago.
func (w *world) signed(id, body string, ago time.Duration) []string {
	w.t.Helper()
	header := make(http.Header)
	w.secrets.Sign(header, id, time.Now().Add(-ago), []byte(body))
	var headers []string
	for name := range header {
		headers = append(headers, name, header.Get(name))
	}
	return headers
}

// foreign is a webhook about a payment that isn't ours.
func foreign(payment string) string {
	return fmt.Sprintf(`{"type":"authorize.succeeded","timestamp":"2026-11-30T12:00:00Z","data":{"id":"op_%[1]s","kind":"authorize",
		"reference":"their own","status":"succeeded","amount":5300,"currency":"USD","updated_at":"2026-11-30T12:00:00Z","payment":{
		"id":%[1]q,"reference":"their own","status":"captured","currency":"USD","amount":5300,"authorized":5300,"captured":5300}}}`, payment)
}

// stored counts the webhooks that are kept.
func (w *world) stored() (n int) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.db.ServiceURL())
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(w.t.Context(), "SELECT count(*) FROM webhooks").Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

const hooks = "/v1/webhooks/sim"

func TestWebhook(t *testing.T) {
	keys, _ := keysFor(t, "u auditor")
	w := serve(t, func(c *httpapi.Config) { c.Keys, c.LoopbackAdmin = keys, false })
	body := foreign("pay_9")
	first := w.do("POST", hooks, body, w.signed("evt_9", body, 0)...).is(200)
	if got := string(first.body); got != `{"received":true}` {
		t.Errorf("got %s", got)
	}
	w.do("POST", hooks, body, w.signed("evt_9", body, time.Second)...).is(200)
	for name, kind := range map[string]string{"evt_a": "text/plain", "evt_b": "application/x-www-form-urlencoded", "evt_c": "x;;"} {
		w.do("POST", hooks, body, append(w.signed(name, body, 0), "Content-Type", kind)...).is(200)
	}
	if n := w.stored(); n != 4 {
		t.Errorf("%d webhooks are stored, want 4", n)
	}
}

// What isn't the provider's, or not of now, is refused before anything is looked up.
func TestWebhookForged(t *testing.T) {
	w := serve(t, nil)
	body := foreign("pay_9")
	good := func() []string { return w.signed("evt_9", body, 0) }
	other, err := payments.ParseSecrets("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	if err != nil {
		t.Fatal(err)
	}
	forged := make(http.Header)
	other.Sign(forged, "evt_9", time.Now(), []byte(body))

	const invalid, untimely = "webhook_signature_invalid", "webhook_timestamp_out_of_tolerance"
	w.do("POST", hooks, body).refused(401, invalid)
	w.do("POST", hooks, "", good()...).refused(401, invalid)
	w.do("POST", hooks, body+" ", good()...).refused(401, invalid)
	w.do("POST", hooks, strings.Replace(body, "pay_9", "pay_8", 1), good()...).refused(401, invalid)
	w.do("POST", hooks, body, "Webhook-Id", "evt_9", "Webhook-Timestamp", forged.Get("Webhook-Timestamp"),
		"Webhook-Signature", forged.Get("Webhook-Signature")).refused(401, invalid)
	for _, off := range []time.Duration{6 * time.Minute, -6 * time.Minute} {
		r := w.do("POST", hooks, body, w.signed("evt_9", body, off)...).refused(401, untimely).has("tolerance_seconds", 300)
		r.isProblem()
		if got := r.header.Get("WWW-Authenticate"); got != `StandardWebhooks realm="tierledger"` {
			t.Errorf("WWW-Authenticate is %q", got)
		}
	}
	w.do("POST", "/v1/webhooks/acme", body, good()...).refused(404, "provider_not_found")
	w.do("POST", "/v1/webhooks/acme", body).refused(404, "provider_not_found")
	for _, text := range []string{`{}`, `[]`, `null`, `{"type":"x"}`, "\x00\xff", strings.Repeat("[", 50_000)} {
		w.do("POST", hooks, text, w.signed("evt_9", text, 0)...).refused(422, "webhook_unreadable")
	}
	if n := w.stored(); n != 0 {
		t.Errorf("%d webhooks are stored, want none", n)
	}
}

func TestWebhookLimits(t *testing.T) {
	w := serve(t, nil)
	body := foreign("pay_9")
	large := body + strings.Repeat(" ", 64<<10-len(body))
	w.do("POST", hooks, large, w.signed("evt_1", large, 0)...).is(200)
	w.do("POST", hooks, large+" ", w.signed("evt_2", large+" ", 0)...).refused(400, "invalid_request").has("field", "body")
	w.do("POST", hooks+"?x=1", body, w.signed("evt_3", body, 0)...).refused(400, "invalid_request").has("field", "x")
	w.get(hooks).refused(405, "method_not_allowed")

	// Of unknown length.
	for size, status := range map[int]int{len(large): 200, len(large) + 1: 400} {
		text := body + strings.Repeat(" ", size-len(body))
		request, err := http.NewRequest("POST", w.url+hooks, io.MultiReader(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		headers := w.signed(fmt.Sprint("evt_", size), text, 0)
		for i := 0; i < len(headers); i += 2 {
			request.Header.Set(headers[i], headers[i+1])
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("%d bytes: got %d, want %d", size, response.StatusCode, status)
		}
	}
}

// The provider's own webhook, delivered again by hand: the first changes the order, the
// second nothing.
func TestWebhookTwice(t *testing.T) {
	w := serve(t, nil)
	w.event("e", 10)
	w.unhook()
	open := w.checkout("e", "k", "alice", 2, "sim_requires_action").is(202)
	w.says(open, "complete")
	body, headers := w.hook(open)
	w.do("POST", hooks, body, headers...).is(200)
	paid := w.becomes(open.ordered(), "captured")
	w.do("POST", hooks, body, headers...).is(200)
	after := w.get(open.ordered()).is(200)
	if string(after.body) != string(paid.body) {
		t.Errorf("the second delivery made %s of %s", after.body, paid.body)
	}
	metrics := string(w.get("/metrics").is(200).body)
	if want := `tierledger_webhooks_total{result="received"} 2` + "\n"; !strings.Contains(metrics, want) {
		t.Errorf("the metrics have no line %s", want)
	}
	if charges := w.charges(); charges != 1 {
		t.Errorf("the provider charged %d times", charges)
	}
}

// hook makes the webhook that the provider would send about an order's authorization.
func (w *world) hook(order reply) (body string, headers []string) {
	w.t.Helper()
	operation := w.get(order.ordered()).is(200).text("operations.0.operation_id")
	found := w.provider("GET", "/operations/"+operation, "").is(200)
	data, err := json.Marshal(found.field("data.0"))
	if err != nil {
		w.t.Fatal(err)
	}
	body = fmt.Sprintf(`{"type":"authorize.succeeded","timestamp":%q,"data":%s}`, found.text("data.0.updated_at"), data)
	return body, w.signed("evt_by_hand", body, 0)
}
