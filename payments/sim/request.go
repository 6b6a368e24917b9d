package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/tierledger/tierledger/ledger"
	"github.com/tierledger/tierledger/payments"
)

// Limits of calls.
const (
	maxBody      = 64 << 10
	maxKey       = 255
	maxReference = 255
	maxAmount    = 1_000_000_000_000 // minor units; every sum stays within 63 bits
)

// request is the body of a call. Each kind reads its own fields.
type request struct {
	Reference string            `json:"reference"`
	Amount    ledger.Amount     `json:"amount"`
	Currency  ledger.Unit       `json:"currency"`
	Method    string            `json:"payment_method"`
	Capture   string            `json:"capture"`
	ReturnURL string            `json:"return_url"`
	Metadata  map[string]string `json:"metadata"`
}

// readCall reads and checks what a decision takes for granted.
func readCall(r *http.Request, kind payments.Kind) (key string, req request, no *refusal) {
	invalid := func(format string, args ...any) (string, request, *refusal) {
		return "", request{}, refuse(http.StatusBadRequest, "invalid_request", format, args...)
	}
	key = r.Header.Get("Idempotency-Key")
	if key == "" {
		return "", request{}, refuse(http.StatusBadRequest, "idempotency_key_required", "a change needs an Idempotency-Key")
	}
	if len(key) > maxKey {
		return invalid("Idempotency-Key: at most %d bytes", maxKey)
	}
	text, err := readBody(r)
	if err == nil {
		err = parseJSON(text, &req)
	}
	if err != nil {
		return invalid("%v", err)
	}
	if req.Reference == "" || len(req.Reference) > maxReference {
		return invalid("reference: 1 to %d bytes, the caller's id of the operation", maxReference)
	}
	if kind == payments.Void || kind == payments.Cancel {
		return key, req, nil
	}
	if req.Amount <= 0 || req.Amount > maxAmount {
		return invalid("amount: must be 1 to %d minor units", int64(maxAmount))
	}
	if _, ok := req.Currency.Exponent(); !ok {
		return invalid("currency: %q isn't an ISO 4217 code", string(req.Currency))
	}
	if kind != payments.Authorize {
		return key, req, nil
	}
	switch {
	case !slices.Contains(Methods(), req.Method):
		return invalid("payment_method: must be one of %s", strings.Join(Methods(), ", "))
	case req.Capture != manual && req.Capture != automatic:
		return invalid("capture: must be %s or %s", manual, automatic)
	case req.Method == methodTransfer && req.Capture != automatic:
		return invalid("capture: a transfer has no separate capture, it must be %s", automatic)
	}
	return key, req, nil
}

// digestOf tells requests apart.
func digestOf(path string, req *request) string {
	sum := sha256.Sum256(append([]byte(path+"\n"), encode(req)...))
	return hex.EncodeToString(sum[:16])
}

// readBody reads a body whole.
func readBody(r *http.Request) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("the body must have at most %d bytes: %w", maxBody, err)
	}
	return text, nil
}

// parseJSON reads one JSON object that has known fields only. Fields that it doesn't
// have stay as they are.
func parseJSON(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && d.More() {
		err = errors.New("there's more than one value")
	}
	if err != nil {
		return fmt.Errorf("the body must be a JSON object: %w", err)
	}
	return nil
}
