package sale

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tierledger/tierledger/internal/pgtest"
	"github.com/tierledger/tierledger/internal/service"
	"github.com/tierledger/tierledger/payments/sim"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// serve starts a real service and returns its URL.
func serve(t *testing.T) *url.URL {
	t.Helper()
	db := pgtest.New(t)
	config := service.Default()
	config.DatabaseURL, config.Listen, config.LoopbackAdmin = db.URL(), "127.0.0.1:0", true
	config.CommitConns, config.ReadConns = 2, 3 // there are many services at a time
	secrets, err := service.NewSecret()
	if err != nil {
		t.Fatal(err)
	}
	provider, err := sim.New(sim.Options{Secrets: secrets})
	if err != nil {
		t.Fatal(err)
	}
	config.PayWith(provider, secrets)
	s, err := service.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		provider.Close() // first: the service waits for answers that it holds back
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// play plays a small sale against a service whose answers pass through lie.
func play(ctx context.Context, service *url.URL, p Plan, lie func(*http.Response), watch func(Progress)) (Report, error) {
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(service)
			r.Out.Header.Del("Accept-Encoding") // so that lies can read what they change
		},
		ModifyResponse: func(r *http.Response) error { lie(r); return nil },
		ErrorLog:       log.New(io.Discard, "", 0), // some calls are cut short
	})
	defer proxy.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	p.URL = proxy.URL
	return Run(ctx, p, watch)
}

// plan is a small sale.
func plan(buyers, seats int) Plan {
	return Plan{Event: "e", Buyers: buyers, Quantity: buyers * 3 / 2, Seats: seats, Seed: 3}
}

func TestSale(t *testing.T) {
	t.Parallel()
	var told []Progress
	r, err := play(t.Context(), serve(t), plan(300, 0), func(*http.Response) {}, func(p Progress) { told = append(told, p) })
	if err != nil {
		t.Fatal(err)
	}
	if len(told) == 0 || told[len(told)-1] != r.Progress {
		t.Errorf("the last progress isn't the report's: %+v", told)
	}
	if !r.OK() {
		t.Errorf("surprises: %q", r.Surprises)
	}
	if r.Arrived != 300 || r.Left+r.Held+r.Sold != r.Capacity || r.Sold == 0 {
		t.Errorf("the numbers don't add up: %+v", r)
	}
	if r.Peak == 0 || r.Peak > r.Capacity || r.Released == 0 || r.Expired == 0 || r.Replayed == 0 || r.Served == 0 || r.P99 == 0 {
		t.Errorf("something didn't happen: %+v", r)
	}
	for _, code := range []string{"temporarily_held", "limit_exceeded", "idempotency_mismatch", "payment_declined"} {
		if r.Refusals[code] == 0 {
			t.Errorf("nobody was refused with %s: %v", code, r.Refusals)
		}
	}
	if r.Paid == 0 || r.Paid != r.Orders["captured"]+r.Orders["partially_refunded"]+r.Orders["refunded"] || r.Orders["cancelled"] == 0 {
		t.Errorf("%d paid, orders %v", r.Paid, r.Orders)
	}
	if r.Reconciled.Lines == 0 || r.Reconciled.Matched != r.Reconciled.Lines || r.Reconciled.Unexplained != 0 {
		t.Errorf("the provider's report: %+v", r.Reconciled)
	}
	if len(r.Accounts) == 0 || r.PayP99 == 0 {
		t.Errorf("accounts %v, payments answered in %v", r.Accounts, r.PayP99)
	}
}

// A service that lies is found out, whatever it lies about.
func TestSaleFindsLies(t *testing.T) {
	t.Parallel()
	findLies(t, 0, []lie{
		{func(r *http.Response) { r.Header.Del("Idempotency-Replayed") }, "not the first answer"},
		{when(isReplay, `"version":`, `"version":1`), "not the first answer"},
		{accepts("idempotency_mismatch"), "reused a key"},
		{accepts("limit_exceeded"), "asked for 7 tickets"},
		{when(isAvailability, `"available":`, `"available":1`), "the API says"},
		{when(isAvailability, `"held":`, `"held":1`), "tickets are still held"},
		{when(isRead, `"status":"expired"`, `"status":"held"`), "is held, its buyer says expired"},
		{when(isReport, ",capture,", ",chargeback,"), "the provider charged 0 times"},
		{doubled, "the provider charged 2 times"},
		{when(isReport, ",00000001-", ",00000002-"), "the ledger doesn't know it"},
		{when(isOrders, `"status":"captured"`, `"status":"cancelled"`), "its buyer saw it captured"},
		{when(isTrialBalance, `"debit":`, `"debit":1`), "the ledger has"},
		{when(isMatching, `"unexplained":0`, `"unexplained":3`), "3 lines of the provider's report"},
	})
}

// lie is what a service says that isn't so, and what is found of it.
type lie struct {
	lie   func(*http.Response)
	found string
}

// atOnce is how many sales are played at a time: where all are slow, who comes too late to
// pay buys nothing, and then there's nothing to be found out.
const atOnce = 3

// findLies plays a sale for each lie, with so many assigned seats.
func findLies(t *testing.T, seats int, lies []lie) {
	t.Helper()
	var plays sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for i, c := range lies {
		service := serve(t)
		plays.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			r, err := play(t.Context(), service, plan(80, seats), c.lie, nil)
			found := strings.Join(append(r.Surprises, fmt.Sprint(err)), "\n")
			if err == nil && r.OK() || !strings.Contains(found, c.found) {
				t.Errorf("lie %d: want %q, got %d surprises: %s", i, c.found, r.SurpriseCount, found)
			}
		})
	}
	plays.Wait()
}

func isReport(r *http.Response) bool { return r.Request.URL.Path == "/sim/report" }
func isMatching(r *http.Response) bool {
	return strings.HasPrefix(r.Request.URL.Path, "/v1/recon/reports/")
}
func isOrders(r *http.Response) bool { return r.Request.URL.Path == "/v1/orders" }
func isTrialBalance(r *http.Response) bool {
	return strings.HasSuffix(r.Request.URL.Path, "/trial-balance")
}

// doubled makes the provider's report tell every line twice.
func doubled(r *http.Response) {
	if isReport(r) {
		text := body(r)
		_, lines, _ := strings.Cut(text, "\n")
		setBody(r, text+lines)
	}
}

func isReplay(r *http.Response) bool { return r.Header.Get("Idempotency-Replayed") != "" }
func isRead(r *http.Response) bool   { return r.Request.Method == http.MethodGet }
func isAvailability(r *http.Response) bool {
	return strings.HasSuffix(r.Request.URL.Path, "/availability")
}

// when replaces a text in the answers that are such.
func when(such func(*http.Response) bool, from, to string) func(*http.Response) {
	return func(r *http.Response) {
		if such(r) {
			setBody(r, strings.ReplaceAll(body(r), from, to))
		}
	}
}

// accepts makes a refusal look accepted.
func accepts(code string) func(*http.Response) {
	return func(r *http.Response) {
		if r.StatusCode >= 400 && strings.Contains(body(r), code) {
			r.StatusCode = http.StatusCreated
		}
	}
}

func body(r *http.Response) string {
	text, _ := io.ReadAll(r.Body)
	setBody(r, string(text))
	return string(text)
}

func setBody(r *http.Response, text string) {
	r.Body = io.NopCloser(strings.NewReader(text))
	r.ContentLength = int64(len(text))
	r.Header.Set("Content-Length", fmt.Sprint(len(text)))
}
