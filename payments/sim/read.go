package sim

import (
	"encoding/json"
	"html/template"
	"net/http"
	"time"

	"github.com/tierledger/tierledger/payments"
)

func writeJSON(w http.ResponseWriter, status int, body json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that's gone asks again
}

// write answers with a problem document (RFC 9457).
func (no *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(no.status)
	_, _ = w.Write(encode(struct {
		Type    string   `json:"type"`
		Title   string   `json:"title"`
		Status  int      `json:"status"`
		Detail  string   `json:"detail"`
		Code    string   `json:"code"`
		Payment *payment `json:"payment,omitempty"`
	}{"about:blank", http.StatusText(no.status), no.status, no.detail, no.code, no.payment}))
}

// found is the answer to a lookup: what's there, and when it was looked at.
type found[T any] struct {
	Data []T       `json:"data"`
	AsOf time.Time `json:"as_of"`
}

// findOperations serves GET /operations/{reference}.
func (s *Server) findOperations(w http.ResponseWriter, r *http.Request) {
	list, now := s.find(r.PathValue("reference"))
	writeJSON(w, http.StatusOK, encode(found[shown]{list, now}))
}

// findPayments serves GET /payments?reference=.
func (s *Server) findPayments(w http.ResponseWriter, r *http.Request) {
	reference := r.FormValue("reference")
	if reference == "" {
		refuse(http.StatusBadRequest, "invalid_request", "reference: required").write(w)
		return
	}
	operations, now := s.find(reference)
	list := []*payment{}
	for _, o := range operations {
		if o.Kind == payments.Authorize {
			list = append(list, o.Payment)
		}
	}
	writeJSON(w, http.StatusOK, encode(found[*payment]{list, now}))
}

// find looks up operations as far as the lag lets it.
func (s *Server) find(reference string) ([]shown, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	return s.book.byReference(reference, now.Add(-milliseconds(s.settings.LookupLag))), now
}

// getPayment serves GET /payments/{id}.
func (s *Server) getPayment(w http.ResponseWriter, r *http.Request) {
	p, no := s.payment(r.PathValue("id"))
	if no != nil {
		no.write(w)
		return
	}
	writeJSON(w, http.StatusOK, encode(p))
}

func (s *Server) payment(id string) (*payment, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.book.payments[id]
	if p == nil {
		return nil, noPayment(id)
	}
	return p, nil
}

func noPayment(id string) *refusal {
	return refuse(http.StatusNotFound, "payment_not_found", "there's no payment %s", id)
}

// getControl serves GET /control.
func (s *Server) getControl(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, encode(s.Settings()))
}

// postControl serves POST /control: the body's fields replace those in force.
func (s *Server) postControl(w http.ResponseWriter, r *http.Request) {
	text, err := readBody(r)
	if err == nil {
		err = s.update(func(set *Settings) error { return parseJSON(text, set) })
	}
	if err != nil {
		refuse(http.StatusBadRequest, "invalid_request", "%v", err).write(w)
		return
	}
	s.getControl(w, r)
}

var bankPage = template.Must(template.New("bank").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Simulated bank</title>
<body style="font:1.1rem system-ui;max-width:28rem;margin:4rem auto;padding:0 1rem">
<h1>Simulated bank</h1>
<p>Payment {{.ID}} of <strong>{{.Text}} {{.Currency}}</strong> is <em>{{.Status}}</em>. No real money moves.</p>
<form method="post"><button formaction="complete">Pay</button> <button formaction="fail">Refuse</button></form>
</body></html>
`))

// getBank serves GET /payments/{id}/bank: the page on which a buyer acts.
func (s *Server) getBank(w http.ResponseWriter, r *http.Request) {
	p, no := s.payment(r.PathValue("id"))
	if no != nil {
		no.write(w)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = bankPage.Execute(w, struct { // a browser that's gone asks again
		*payment
		Text string
	}{p, major(p.Amount, p.Currency)})
}
