package cases

import (
	"github.com/google/uuid"

	"github.com/tierledger/tierledger/fault"
)

// Codes of cases, in the order in which they're judged.
var (
	ErrCaseNotFound = &fault.Def{Kind: fault.NotFound, Code: "case_not_found",
		Title: "There's no such case."}
	ErrCaseState = &fault.Def{Kind: fault.Conflict, Code: "case_state",
		Title: "The case isn't in a state in which this can be done."}
	ErrResolution = &fault.Def{Kind: fault.Conflict, Code: "resolution_not_possible",
		Title: "The case can't be resolved like this."}
)

// Defs lists the codes of this package.
func Defs() []*fault.Def {
	return []*fault.Def{ErrCaseNotFound, ErrCaseState, fault.ErrSamePerson, ErrResolution}
}

// NotFound is ErrCaseNotFound about a case.
func NotFound(id uuid.UUID) error {
	return ErrCaseNotFound.Because("%s", id).With("case_id", id)
}
