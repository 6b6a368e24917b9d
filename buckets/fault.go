package buckets

import "github.com/tierledger/tierledger/fault"

// Codes of this package, in the order in which they're judged.
var (
	ErrEventNotFound = &fault.Def{Kind: fault.NotFound, Code: "event_not_found",
		Title: "There's no such event."}
	ErrEventExists = &fault.Def{Kind: fault.Conflict, Code: "event_exists",
		Title: "An event of this name exists already."}
	ErrTierNotFound = &fault.Def{Kind: fault.NotFound, Code: "tier_not_found",
		Title: "The event has no such tier."}
	ErrTierExists = &fault.Def{Kind: fault.Conflict, Code: "tier_exists",
		Title: "The event has a tier of this name already."}
	ErrVersionConflict = &fault.Def{Kind: fault.Precondition, Code: "version_conflict",
		Title: "It has changed since the version that the request names."}
	ErrBelowCommitted = &fault.Def{Kind: fault.Conflict, Code: "below_committed",
		Title: "More tickets are committed than the new capacity would hold."}
)

// Defs lists the codes of this package.
func Defs() []*fault.Def {
	return []*fault.Def{
		ErrEventNotFound, ErrEventExists, ErrTierNotFound, ErrTierExists,
		ErrVersionConflict, ErrBelowCommitted,
	}
}
