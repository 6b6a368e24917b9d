package buckets

import (
	"time"

	"github.com/tierledger/tierledger/fault"
)

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

// Codes of lanes and allotments.
var (
	ErrAllotmentNotFound = &fault.Def{Kind: fault.NotFound, Code: "allotment_not_found",
		Title: "The event has no such allotment."}
	ErrAllotmentExists = &fault.Def{Kind: fault.Conflict, Code: "allotment_exists",
		Title: "The event has an allotment of this name already."}
	ErrAllotmentClosed = &fault.Def{Kind: fault.Conflict, Code: "allotment_closed",
		Title: "The allotment was closed or released; its tickets are everybody's."}
	ErrCodeExists = &fault.Def{Kind: fault.Conflict, Code: "code_exists",
		Title: "The event has this access code already."}
	ErrNotSplittable = &fault.Def{Kind: fault.Conflict, Code: "not_splittable",
		Title: "Tickets that are sold by seat stay in one journal; an event that has them isn't split."}
	ErrLaneNotFound = &fault.Def{Kind: fault.NotFound, Code: "lane_not_found",
		Title: "The event has no such lane."}
	ErrLaneChanging = &fault.Def{Kind: fault.Unavailable, Code: "lane_changing",
		Title: "The event is being split or merged at this moment; nothing was changed."}
)

// retryLanes is about as long as a change of lanes takes.
const retryLanes = time.Second

// Defs lists the codes of this package.
func Defs() []*fault.Def {
	return []*fault.Def{
		ErrEventNotFound, ErrEventExists, ErrTierNotFound, ErrTierExists,
		ErrVersionConflict, ErrBelowCommitted,
		ErrAllotmentNotFound, ErrAllotmentExists, ErrAllotmentClosed, ErrCodeExists, ErrNotSplittable, ErrLaneNotFound,
		ErrLaneChanging,
	}
}
