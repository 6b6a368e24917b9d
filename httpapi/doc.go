// Package httpapi serves the ledger over HTTP: it authenticates a call, reads it
// strictly, hands it to the package whose business it is, and writes the answer or
// a problem document. It decides nothing.
//
// # The way of a call
//
// A call gets its request id, is matched to a route, and its caller is checked
// against the roles of the route. Then the route's handler runs. What it returns,
// an answer or an error, is written in one place: handlers never see the response.
//
// A webhook has no key, and so no caller with roles: its provider's signature over the
// raw body is checked by package payments.
//
// # Order of refusals
//
// not_found and method_not_allowed, unauthenticated, forbidden, then
// invalid_request and idempotency_key_required for what's wrong with the call
// itself, then the codes of the operation. docs/errors.md lists them all in order.
//
// # What callers can rely on
//
//   - Every answer carries X-Request-Id; every error is a problem document (RFC 9457).
//   - 429 and 503 carry Retry-After.
//   - A repeat under the same Idempotency-Key gets the first answer, byte for byte; of a
//     declined payment, which is a problem document, all but the request id.
//   - What isn't understood is refused: unknown fields, parameters and values are
//     never ignored.
//   - openapi.yaml, served at /openapi.yaml, describes all of it; tests hold the
//     routes, the answers and the document to each other.
package httpapi
