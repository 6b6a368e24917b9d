package pgtest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
	"github.com/tierledger/tierledger/payments/sim"
)

// Selling opens the stores as Stores does, with a simulated provider over loopback whose
// webhooks they get. Its URL is given too; a call that it doesn't answer within timeout
// has an unknown outcome.
func Selling(t testing.TB, db *DB, timeout time.Duration, observe func(ledger.Batch)) (s service.Stores, url string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	secrets, err := service.NewSecret()
	must(err)
	provider, err := sim.New(sim.Options{Seed: 1, Secrets: secrets})
	must(err)
	mux := http.NewServeMux()
	mux.Handle("/sim/", http.StripPrefix("/sim", provider))
	mux.HandleFunc("POST /hook", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = s.Orders.Receive(r.Context(), "sim", body, r.Header)
		}
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { provider.Close() })
	client, err := payments.NewClient(payments.Options{URL: server.URL + "/sim", Secrets: secrets, Timeout: timeout})
	must(err)
	t.Cleanup(client.Close)
	s = Stores(t, db, observe, client)
	must(provider.SetWebhookURL(server.URL + "/hook"))
	return s, server.URL + "/sim"
}
