package seats

import "github.com/tierledger/tierledger/fault"

// Codes of this package, in the order in which they're judged.
var (
	ErrSectionNotFound = &fault.Def{Kind: fault.NotFound, Code: "section_not_found",
		Title: "The event has no such section."}
	ErrSeatNotFound = &fault.Def{Kind: fault.NotFound, Code: "seat_not_found",
		Title: "The event has no such seat."}
	ErrSeatsRequired = &fault.Def{Kind: fault.Invalid, Code: "seats_required",
		Title: "The tier is sold by seat: name seats, or ask for the best available."}
	ErrSectionExists = &fault.Def{Kind: fault.Conflict, Code: "section_exists",
		Title: "The event has a section of this name already."}
	ErrSeatUnavailable = &fault.Def{Kind: fault.Conflict, Code: "seat_unavailable",
		Title: "At least one of the seats isn't free."}
	ErrNotBlocked = &fault.Def{Kind: fault.Conflict, Code: "not_blocked",
		Title: "At least one of the seats isn't blocked."}
	ErrNotTogether = &fault.Def{Kind: fault.Conflict, Code: "not_together",
		Title: "There are enough seats, but not side by side."}
	ErrGap = &fault.Def{Kind: fault.Gone, Code: "gap",
		Title: "The changes since that version can't be given: load the map anew."}
)

// Defs lists the codes of this package.
func Defs() []*fault.Def {
	return []*fault.Def{
		ErrSectionNotFound, ErrSeatNotFound, ErrSeatsRequired, ErrSectionExists, ErrSeatUnavailable,
		ErrNotBlocked, ErrNotTogether, ErrGap,
	}
}
