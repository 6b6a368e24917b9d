package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tierledger/tierledger/fault"
	"github.com/tierledger/tierledger/holds"
	"github.com/tierledger/tierledger/ledger"
)

// The pools with which each baseline is fastest on two processors: with more
// connections, more of them only wait for the lock.
const (
	rowLockConns         = 16
	singleStatementConns = 4
	seatLockConns        = 16
)

// maxBody is the service's own limit.
const maxBody = 64 << 10

// baseline serves POST /v1/events/{event}/holds, with the work that the product
// does on a request: strict JSON, validation, id, digest, an answer of the same
// form. It holds tickets in one transaction a request.
type baseline struct {
	http.ServeMux
	pool    *pgxpool.Pool
	event   string // the one there is
	journal ledger.JournalID
	valid   func(holds.Line) error
	place   func(ctx context.Context, pool *pgxpool.Pool, c claim) (placed, error)
}

// claim is a validated request for a hold.
type claim struct {
	ledger.Command
	journal  ledger.JournalID
	customer string
	line     holds.Line
}

// placed is the answer to a claim.
type placed struct {
	data     []byte // the hold
	seq      ledger.Seq
	replayed bool
}

// openBaseline connects to the clones.
func openBaseline(ctx context.Context, system System, databaseURL string) (*baseline, error) {
	b := &baseline{valid: validQuantity, place: placeUnderLock}
	conns := int32(rowLockConns)
	switch system {
	case SingleStatement:
		b.place, conns = placeInOne, singleStatementConns
	case SeatLock:
		b.valid, b.place, conns = validSeats, placeSeats, seatLockConns
		b.HandleFunc("POST /v1/holds/{hold}/release", b.release)
	}
	var err error
	if b.pool, err = openClones(ctx, databaseURL, conns); err != nil {
		return nil, err
	}
	if err := b.pool.QueryRow(ctx, sqlOnlyEvent).Scan(&b.event, &b.journal); err != nil {
		b.pool.Close()
		return nil, fmt.Errorf("find the event: %w", err)
	}
	b.HandleFunc("POST /v1/events/{event}/holds", b.hold)
	return b, nil
}

// openClones makes a pool whose sessions see the clones instead of the ledger's
// tables, with the settings of the product's sessions. Plans are made once.
func openClones(ctx context.Context, databaseURL string, conns int32) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, errors.New("the database's URL isn't one") // the error may quote a password
	}
	config.MaxConns, config.MinIdleConns = conns, conns
	params := config.ConnConfig.RuntimeParams
	params["application_name"] = "tierledger bench"
	params["search_path"] = schema
	params["timezone"] = "UTC"
	params["jit"] = "off"
	params["enable_seqscan"] = "off"
	params["plan_cache_mode"] = "force_generic_plan"
	return pgxpool.NewWithConfig(ctx, config)
}

// hold answers one request.
func (b *baseline) hold(w http.ResponseWriter, r *http.Request) {
	p, err := b.try(r)
	respond(w, http.StatusCreated, p, err)
}

// respond answers with a hold or a refusal.
func respond(w http.ResponseWriter, status int, p placed, err error) {
	header := w.Header()
	requestID, _ := uuid.NewV7()
	header.Set("X-Request-Id", requestID.String())
	if err != nil {
		refuse(w, requestID, err)
		return
	}
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(p.data)))
	header.Set("ETag", `"`+strconv.FormatInt(int64(p.seq), 10)+`"`)
	if p.replayed {
		header.Set("Idempotency-Replayed", "true")
	}
	w.WriteHeader(status)
	_, _ = w.Write(p.data) // a client that went away is its own business
}

func (b *baseline) try(r *http.Request) (placed, error) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" || r.PathValue("event") != b.event {
		return placed{}, fault.ErrInvalidRequest.Because("no key, or no such event")
	}
	var request holds.Request
	decoder := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		return placed{}, fault.ErrInvalidRequest.Because("body").From(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return placed{}, fault.BadField("body", "more than one value")
	}
	if !ledger.ValidCustomer(request.Customer) || len(request.Items) != 1 {
		return placed{}, fault.BadField("items", "one line of one customer")
	}
	line := request.Items[0]
	if err := b.valid(line); err != nil {
		return placed{}, err
	}
	c, err := ledger.NewCommand(b.journal, principal, key, holds.KindPlaced, request, nil)
	if err != nil {
		return placed{}, err
	}
	return b.place(r.Context(), b.pool, claim{c, b.journal, request.Customer, line})
}

func validQuantity(line holds.Line) error {
	if line.Quantity < 1 || line.Quantity > holds.MaxQuantity {
		return holds.ErrInvalidQuantity.Because("%d", line.Quantity)
	}
	return nil
}

// refuse answers with a problem document.
func refuse(w http.ResponseWriter, requestID uuid.UUID, err error) {
	status, f := http.StatusConflict, fault.As(err)
	switch {
	case f == nil:
		fmt.Fprintln(os.Stderr, "baseline:", err)
		status, f = http.StatusInternalServerError, fault.ErrInternal.Because("")
	case f.Kind == fault.Invalid:
		status = http.StatusBadRequest
	case f.Kind == fault.NotFound:
		status = http.StatusNotFound
	case f.Kind == fault.Unprocessable:
		status = http.StatusUnprocessableEntity
	}
	text, err := json.Marshal(map[string]any{
		"type": "about:blank", "title": f.Title, "status": status, "detail": f.Detail, "code": f.Code,
		"request_id": requestID,
	})
	if err != nil {
		panic(err) // nothing here can't be JSON
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
