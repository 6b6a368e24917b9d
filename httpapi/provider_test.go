package httpapi_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/payments/sim"
)

// bank is a world's simulated provider, on a server of its own.
type bank struct {
	sim     *sim.Server
	secrets payments.Secrets
	server  *httptest.Server
}

// newBank starts a provider that tells nobody anything yet. Its client waits for an answer
// as long as it's told to.
func newBank(t *testing.T, patience time.Duration) (*bank, *payments.Client) {
	t.Helper()
	b := &bank{}
	var err error
	if b.secrets, err = payments.ParseSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"); err != nil {
		t.Fatal(err)
	}
	if b.sim, err = sim.New(sim.Options{Seed: 1, Secrets: b.secrets}); err != nil {
		t.Fatal(err)
	}
	b.server = httptest.NewServer(b.sim)
	t.Cleanup(func() {
		if err := b.sim.Close(); err != nil {
			t.Error(err)
		}
		b.server.Close()
	})
	c, err := payments.NewClient(payments.Options{URL: b.server.URL, Secrets: b.secrets, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return b, c
}

// tell says where the provider's webhooks go from now on; "" for nowhere.
func (b *bank) tell(t *testing.T, url string) {
	t.Helper()
	if err := b.sim.SetWebhookURL(url); err != nil {
		t.Fatal(err)
	}
}

// unhook keeps the provider from telling anything.
func (w *world) unhook() { w.tell(w.t, "") }

// unplug takes the provider off the net, and plug brings it back to the same address.
func (w *world) unplug() { w.server.Close() }

func (w *world) plug() {
	w.t.Helper()
	listener, err := net.Listen("tcp", w.server.Listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.server = httptest.NewUnstartedServer(w.sim)
	w.server.Listener.Close()
	w.server.Listener = listener
	w.server.Start()
}

// control changes the provider's settings.
func (w *world) control(change func(*sim.Settings)) {
	w.t.Helper()
	set := w.sim.Settings()
	change(&set)
	if err := w.sim.Configure(set); err != nil {
		w.t.Fatal(err)
	}
}

// provider calls the provider beside the ledger.
func (w *world) provider(method, path, body string) reply {
	w.t.Helper()
	request, err := http.NewRequest(method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return reply{w.t, response.StatusCode, response.Header, content}
}

// says plays the buyer's bank on the payment of an order's first operation: complete or
// fail.
func (w *world) says(order reply, verb string) {
	w.t.Helper()
	payment := w.get(order.ordered()).is(200).text("operations.0.provider_payment")
	w.provider("POST", "/payments/"+payment+"/"+verb, "{}").is(200)
}

// charges counts how often the provider took money.
func (w *world) charges() int {
	w.t.Helper()
	report := string(w.provider("GET", "/report", "").is(200).body)
	return strings.Count(report, ",capture,") + strings.Count(report, ",charge,")
}
