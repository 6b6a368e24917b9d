package payments

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Codes of a provider's refusal that don't mean that the operation wasn't done.
const (
	codeKeyReused = "idempotency_mismatch" // the key's first request was another one
)

// alreadyDone lists refusals of a step because it was done: perhaps by this very
// operation, whose answer was lost. Only a lookup tells.
var alreadyDone = map[Kind]string{
	Capture: "already_captured",
	Void:    "already_voided",
	Cancel:  "already_canceled",
}

// judge completes r by the provider's answer to its call.
func (r Result) judge(a answer) (Result, error) {
	switch {
	case a.status == http.StatusOK, a.status == http.StatusCreated, a.status == http.StatusPaymentRequired:
		return r.decided(a)
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden, a.status == http.StatusTooManyRequests:
		return r.notAttempted(fmt.Errorf("turned away with status %d", a.status), a.retryAfter)
	case a.status >= http.StatusBadRequest && a.status != http.StatusRequestTimeout:
		return r.refused(a)
	}
	return r.unknown(fmt.Errorf("status %d isn't an answer of this protocol", a.status))
}

// decided reads an answer that is the operation itself. An answer about another
// operation is no answer.
func (r Result) decided(a answer) (Result, error) {
	var o operation
	if err := o.parse(a.body); err != nil {
		return r.unknown(fmt.Errorf("status %d: %w", a.status, err))
	}
	told := o.result()
	switch {
	case told.Operation != r.Operation || told.Kind != r.Kind:
		return r.unknown(fmt.Errorf("answered with %s %q", o.Kind, o.Reference))
	case (told.Outcome == Declined) != (a.status == http.StatusPaymentRequired):
		return r.unknown(fmt.Errorf("status %d doesn't fit %s", a.status, told.Outcome))
	}
	return told, nil
}

// refused reads an answer that the call can't be carried out, so that nothing changed.
func (r Result) refused(a answer) (Result, error) {
	var p refusal
	if err := json.Unmarshal(a.body, &p); err != nil || p.Code == "" {
		return r.unknown(fmt.Errorf("status %d without a code", a.status))
	}
	if p.Payment != nil {
		r.Payment = p.Payment.view()
	}
	r.Reason = p.Code
	if p.Code == codeKeyReused || p.Code == alreadyDone[r.Kind] {
		return r.unknown(fmt.Errorf("refused: %s", p.Code))
	}
	r.Outcome = Declined
	return r, nil
}

// unknown is the end of a call that may have been carried out.
func (r Result) unknown(cause error) (Result, error) {
	r.Outcome = Unknown
	return r, ErrUnknownOutcome.Because("%s %s", r.Kind, r.Operation).From(cause)
}

// notAttempted is the end of a call that certainly wasn't carried out.
func (r Result) notAttempted(cause error, after time.Duration) (Result, error) {
	r.Outcome, r.Reason = NotAttempted, ErrProviderUnavailable.Code
	return r, ErrProviderUnavailable.Because("%s %s", r.Kind, r.Operation).After(after).From(cause)
}
