package sim

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/tierledger/tierledger/internal/wait"
	"github.com/tierledger/tierledger/payments"
)

// routes are the paths of doc.go.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /payments", s.call(payments.Authorize, authorize))
	mux.HandleFunc("POST /payments/{id}/capture", s.call(payments.Capture, capture))
	mux.HandleFunc("POST /payments/{id}/void", s.call(payments.Void, void))
	mux.HandleFunc("POST /payments/{id}/cancel", s.call(payments.Cancel, cancel))
	mux.HandleFunc("POST /payments/{id}/refunds", s.call(payments.Refund, refund))
	mux.HandleFunc("POST /payments/{id}/complete", s.play(complete))
	mux.HandleFunc("POST /payments/{id}/fail", s.play(fail))
	mux.HandleFunc("POST /payments/{id}/dispute", s.play(dispute))
	mux.HandleFunc("GET /payments/{id}/bank", s.getBank)
	mux.HandleFunc("GET /payments/{id}", s.getPayment)
	mux.HandleFunc("GET /payments", s.findPayments)
	mux.HandleFunc("GET /operations/{reference}", s.findOperations)
	mux.HandleFunc("GET /report", s.getReport)
	mux.HandleFunc("GET /control", s.getControl)
	mux.HandleFunc("POST /control", s.postControl)
	return mux
}

// call serves a merchant's call: under a key, and with the faults of its method and of
// chance.
func (s *Server) call(kind payments.Kind, decide decision) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, req, no := readCall(r, kind)
		if no != nil {
			no.write(w)
			return
		}
		set, attempt := s.arrive(key)
		f := s.faultByChance(set.Rates, key, attempt)
		if kind == payments.Authorize {
			s.pause(milliseconds(set.AuthorizeLatency))
		}
		if by := s.faultOf(kind, key, r.PathValue("id"), &req); by != noFault {
			f = by
		}
		if f == slow {
			s.pause(milliseconds(set.SlowLatency))
		}
		if f.lost() {
			s.breakOff(w, r, f, set)
			return
		}
		a, replayed, no := s.execute(decide, r, &req, key, s.unlucky(set.Rates, kind, req.Reference))
		switch {
		case f.applied():
			s.breakOff(w, r, f, set)
		case no != nil:
			no.write(w)
		default:
			if replayed {
				w.Header().Set("Idempotency-Replayed", "true")
			}
			writeJSON(w, a.Status, encode(a.shown))
		}
	}
}

// arrive counts an attempt of a call, and gives the settings that it meets.
func (s *Server) arrive(key string) (Settings, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[key]++
	return s.settings, s.attempts[key]
}

// faultOf is the fault by the method of the call's payment.
func (s *Server) faultOf(kind payments.Kind, key, id string, r *request) fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	method := r.Method
	if p := s.book.payments[id]; p != nil {
		method = p.Method
	}
	return faultBy(kind, method, s.book.remembered(key, s.now()) == nil)
}

// execute answers a call from memory, or decides it and remembers the answer.
func (s *Server) execute(decide decision, r *http.Request, req *request, key, unlucky string) (a *answer, replayed bool, no *refusal) {
	digest := digestOf(r.URL.Path, req)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if old := s.book.remembered(key, now); old != nil {
		if old.Digest != digest {
			return nil, false, refuse(http.StatusUnprocessableEntity, "idempotency_mismatch",
				"the key was used for another request")
		}
		return old, true, nil
	}
	c, no := s.decide(decide, r, req, moment{now, unlucky, base(r)})
	if no != nil {
		return nil, false, no
	}
	c.Answer = &answer{Key: key, Digest: digest, Status: http.StatusCreated, At: now}
	if c.Operations[0].Status == payments.Declined {
		c.Answer.Status = http.StatusPaymentRequired
	}
	return c.Answer, false, s.keep(&c)
}

// decide finds the call's payment, if it names one, and judges. Called with the lock held.
func (s *Server) decide(decide decision, r *http.Request, req *request, m moment) (change, *refusal) {
	id := r.PathValue("id")
	if id == "" {
		return decide(s.book, payment{}, req, m)
	}
	p := s.book.payments[id]
	if p == nil {
		return change{}, noPayment(id)
	}
	if req.Currency != "" && req.Currency != p.Currency {
		return change{}, refuse(http.StatusBadRequest, "invalid_request", "currency: the payment is in %s", p.Currency)
	}
	return decide(s.book, *p, req, m)
}

// keep commits a change, or says that it couldn't.
func (s *Server) keep(c *change) *refusal {
	if err := s.commit(c); err != nil {
		return refuse(http.StatusInternalServerError, "internal", "the history can't be written: %v", err)
	}
	return nil
}

// play serves a call of the buyer's bank: no key, no faults.
func (s *Server) play(decide decision) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var req request
		form := strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
		text, err := readBody(r)
		if err == nil && len(text) > 0 && !form {
			err = parseJSON(text, &req)
		}
		if err != nil {
			refuse(http.StatusBadRequest, "invalid_request", "%v", err).write(w)
			return
		}
		c, no := s.playOut(decide, r, &req)
		switch {
		case no != nil:
			no.write(w)
		case form && c.Payment.ReturnURL != "":
			http.Redirect(w, r, c.Payment.ReturnURL, http.StatusSeeOther)
		case form:
			http.Redirect(w, r, moment{base: base(r)}.bank(&c.Payment), http.StatusSeeOther)
		default:
			writeJSON(w, http.StatusOK, encode(c.shown(0)))
		}
	}
}

func (s *Server) playOut(decide decision, r *http.Request, req *request) (change, *refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, no := s.decide(decide, r, req, moment{s.now(), "", base(r)})
	if no == nil {
		no = s.keep(&c)
	}
	return c, no
}

// breakOff ends a call without its answer: with 502 at once, or by holding it for longer
// than the caller waits.
func (s *Server) breakOff(w http.ResponseWriter, r *http.Request, f fault, set Settings) {
	if f == timeoutApplied || f == timeoutLost {
		ctx, cancel := context.WithTimeout(r.Context(), milliseconds(set.HoldAnswer))
		defer cancel()
		select {
		case <-ctx.Done():
		case <-s.life.Done():
		}
	}
	w.WriteHeader(http.StatusBadGateway)
}

// pause waits whether or not the caller still does: what was received is carried out.
func (s *Server) pause(d time.Duration) {
	if d > 0 {
		wait.For(s.life, d)
	}
}

// base is where this server's paths begin for the caller, whatever prefix was stripped.
func base(r *http.Request) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	return scheme + "://" + r.Host + strings.TrimSuffix(path, r.URL.Path)
}

func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // nothing of ours can't be JSON
	}
	return text
}
