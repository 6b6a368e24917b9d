package quota

import "github.com/tierledger/tierledger/fault"

// Codes of moves, in the order in which they're judged.
var (
	ErrMoveNotFound = &fault.Def{Kind: fault.NotFound, Code: "move_not_found",
		Title: "There's no such quota move."}
	ErrMoveDecided = &fault.Def{Kind: fault.Conflict, Code: "move_decided",
		Title: "The move was approved or rejected already."}
)

// Defs lists the codes of this package.
func Defs() []*fault.Def { return []*fault.Def{ErrMoveNotFound, ErrMoveDecided} }
