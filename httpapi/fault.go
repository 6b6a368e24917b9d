package httpapi

import "github.com/tierledger/tierledger/fault"

// Codes of this package, in the order in which they're judged.
var (
	ErrNotFound = &fault.Def{Kind: fault.NotFound, Code: "not_found",
		Title: "There's nothing at this path."}
	ErrMethodNotAllowed = &fault.Def{Kind: fault.Invalid, Code: "method_not_allowed",
		Title: "This path doesn't know the method."}
	ErrUnauthenticated = &fault.Def{Kind: fault.Unauthenticated, Code: "unauthenticated",
		Title: "The call needs a valid API key."}
	ErrForbidden = &fault.Def{Kind: fault.Forbidden, Code: "forbidden",
		Title: "The key's roles don't allow this call."}
	ErrIdempotencyKeyRequired = &fault.Def{Kind: fault.Invalid, Code: "idempotency_key_required",
		Title: "A call that changes something needs an Idempotency-Key."}
)

// Defs lists the codes of this package.
func Defs() []*fault.Def {
	return []*fault.Def{
		ErrNotFound, ErrMethodNotAllowed, ErrUnauthenticated, ErrForbidden, ErrIdempotencyKeyRequired,
	}
}
