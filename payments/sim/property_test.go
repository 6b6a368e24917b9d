package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/tierledger/tierledger/buckets"
	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// memory carries a client's calls to a server without a network, and gives up when the
// client's deadline comes, as a network does: the server goes on.
func memory(s *Server) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		w := httptest.NewRecorder()
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.ServeHTTP(w, r)
		}()
		select {
		case <-done:
			return w.Result(), nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	})
}

// buyer is a merchant's side in the property: what it has asked for, and what it knows.
type buyer struct {
	*rapid.T
	client *payments.Client
	sim    *Server
	n      int
	asked  []call
	// known are payments by the provider's reference.
	known []string
	// decided is what an operation was answered with, for good.
	decided map[uuid.UUID]payments.Result
}

// call is something that was asked for, to be asked again.
type call struct {
	operation uuid.UUID
	do        func() (payments.Result, error)
}

func (b *buyer) operation() uuid.UUID {
	b.n++
	return ledger.NewID(3, fmt.Sprint(b.n))
}

// ask makes a call for the first time.
func (b *buyer) ask(operation uuid.UUID, do func() (payments.Result, error)) {
	b.asked = append(b.asked, call{operation, do})
	b.repeat(len(b.asked) - 1)
}

// repeat makes a call, again under its key, and holds the answer against what was
// answered before.
func (b *buyer) repeat(i int) {
	c := b.asked[i]
	r, err := c.do()
	switch r.Outcome {
	case payments.Unknown:
		if !errors.Is(err, payments.ErrUnknownOutcome) {
			b.Fatalf("unknown without saying so: %v", err)
		}
		return
	case payments.NotAttempted: // the breaker
		if !errors.Is(err, payments.ErrProviderUnavailable) {
			b.Fatalf("not attempted without saying so: %v", err)
		}
		return
	}
	if err != nil {
		b.Fatalf("%s: %v", r.Outcome, err)
	}
	if r.Kind == payments.Authorize && r.Payment.Reference != "" {
		b.known = append(b.known, r.Payment.Reference)
	}
	if r.Reference == "" {
		return // a refusal, which is judged anew each time
	}
	if before, ok := b.decided[c.operation]; ok && (before.Reference != r.Reference || before.Outcome != r.Outcome || before.Payment != r.Payment) {
		b.Fatalf("answered with %+v, and before with %+v", r, before)
	}
	b.decided[c.operation] = r
}

// authorize asks for a payment.
func (b *buyer) authorize(t *rapid.T) {
	a := payments.Authorization{
		Operation: b.operation(), Method: rapid.SampledFrom(Methods()).Draw(t, "method"),
		Amount: buckets.Money{
			Amount:   ledger.Amount(rapid.IntRange(1, 200).Draw(t, "amount")),
			Currency: rapid.SampledFrom([]ledger.Unit{"USD", "JPY", "KWD"}).Draw(t, "currency"),
		},
	}
	b.ask(a.Operation, func() (payments.Result, error) { return b.client.Authorize(context.Background(), a) })
}

// step asks for something to be done with a payment that's known.
func (b *buyer) step(do func(payments.Step) (payments.Result, error)) func(*rapid.T) {
	return func(t *rapid.T) {
		if len(b.known) == 0 {
			t.Skip("no payment yet")
		}
		s := payments.Step{
			Operation: b.operation(),
			Payment:   rapid.SampledFrom(b.known).Draw(t, "payment"),
			Amount:    buckets.Money{Amount: ledger.Amount(rapid.IntRange(1, 250).Draw(t, "amount"))},
		}
		b.sim.mu.Lock()
		s.Amount.Currency = b.sim.book.payments[s.Payment].Currency
		b.sim.mu.Unlock()
		b.ask(s.Operation, func() (payments.Result, error) { return do(s) })
	}
}

// play lets the bank act on any payment, and doesn't care whether it could.
func (b *buyer) play(verb string) func(*rapid.T) {
	return func(t *rapid.T) {
		if len(b.known) == 0 {
			t.Skip("no payment yet")
		}
		path := "/payments/" + rapid.SampledFrom(b.known).Draw(t, "payment") + "/" + verb
		w := httptest.NewRecorder()
		b.sim.ServeHTTP(w, httptest.NewRequest("POST", path, nil))
		if w.Code != http.StatusOK && w.Code != http.StatusConflict {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestProperty: whatever is asked in whatever order, with whatever faults, and repeated
// under the same keys while these are remembered, no payment is charged twice, nothing
// is captured beyond what was authorized or refunded beyond what was captured, the
// report agrees to the cent, and an answer once given is given again.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { inBubble(t, func() { property(r) }) })
}

// inBubble runs f where time passes only when everybody waits. What f panics with, as a
// property does to end a run, is carried out of the bubble.
func inBubble(t *testing.T, f func()) {
	var thrown any
	synctest.Test(t, func(*testing.T) {
		defer func() { thrown = recover() }()
		f()
	})
	if thrown != nil {
		panic(thrown)
	}
}

func property(t *rapid.T) {
	server, err := New(Options{Seed: rapid.Uint64().Draw(t, "seed")})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := payments.NewClient(payments.Options{URL: "http://provider.test", Timeout: time.Second, Transport: memory(server)})
	if err != nil {
		t.Fatal(err)
	}
	rate := rapid.Float64Range(0, 0.15)
	settings := DefaultSettings() // a slow call is slower than the client waits
	settings.Rates = Rates{
		TimeoutApplied: rate.Draw(t, "timeout_applied"), TimeoutLost: rate.Draw(t, "timeout_lost"),
		ErrorApplied: rate.Draw(t, "error_applied"), Error: rate.Draw(t, "error"), Slow: rate.Draw(t, "slow"),
		Decline: rate.Draw(t, "decline"), RequiresAction: rate.Draw(t, "requires_action"),
		CaptureFails: rate.Draw(t, "capture_fails"),
	}
	if err := server.Configure(settings); err != nil {
		t.Fatal(err)
	}
	b := &buyer{T: t, client: client, sim: server, decided: map[uuid.UUID]payments.Result{}}
	ctx := context.Background()
	t.Repeat(map[string]func(*rapid.T){
		"authorize": b.authorize,
		"capture":   b.step(func(s payments.Step) (payments.Result, error) { return client.Capture(ctx, s) }),
		"void":      b.step(func(s payments.Step) (payments.Result, error) { return client.Void(ctx, s) }),
		"refund":    b.step(func(s payments.Step) (payments.Result, error) { return client.Refund(ctx, s) }),
		"cancel":    b.step(func(s payments.Step) (payments.Result, error) { return client.CancelIntent(ctx, s) }),
		"complete":  b.play("complete"),
		"fail":      b.play("fail"),
		"dispute":   b.play("dispute"),
		"repeat": func(t *rapid.T) {
			if len(b.asked) == 0 {
				t.Skip("nothing asked yet")
			}
			b.repeat(rapid.IntRange(0, len(b.asked)-1).Draw(t, "call"))
		},
		"": func(t *rapid.T) {
			audit(t, server)
			b.once(t)
		},
	})
	// The provider is well again, and calls that were slow have ended.
	settings.Rates = Rates{}
	if err := server.Configure(settings); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Hour) // of the bubble's clock
	for i := range b.asked {
		b.repeat(i)
	}
	audit(t, server)
	b.once(t)
	b.found(t)
}

// found checks that a lookup finds exactly what was carried out.
func (b *buyer) found(t *rapid.T) {
	for _, c := range b.asked {
		b.sim.mu.Lock()
		done := len(b.sim.book.references[c.operation.String()]) > 0
		b.sim.mu.Unlock()
		f, err := b.client.Lookup(context.Background(), c.operation)
		if errors.Is(err, payments.ErrProviderUnavailable) {
			return // the breaker is open
		}
		if err != nil || f.Found != done {
			t.Fatalf("lookup of %s: %+v, %v; carried out: %v", c.operation, f, err, done)
		}
	}
}

// once checks that no operation of ours was carried out more than once, and that each
// is as it was answered.
func (b *buyer) once(t *rapid.T) {
	b.sim.mu.Lock()
	defer b.sim.mu.Unlock()
	for reference, ids := range b.sim.book.references {
		if len(ids) > 1 {
			t.Fatalf("%s was carried out %d times", reference, len(ids))
		}
	}
	for operation, r := range b.decided {
		ids := b.sim.book.references[operation.String()]
		if len(ids) != 1 || ids[0] != r.Reference {
			t.Fatalf("%s was answered as %s, and is %v", operation, r.Reference, ids)
		}
	}
}
