package outbox

import "github.com/tierledger/tierledger/fault"

// Codes of dead letters and their replays, in the order in which they're judged.
var (
	ErrLetterNotFound = &fault.Def{Kind: fault.NotFound, Code: "dead_letter_not_found",
		Title: "There's no such dead letter."}
	ErrReplayNotFound = &fault.Def{Kind: fault.NotFound, Code: "replay_not_found",
		Title: "There's no such replay."}
	ErrLetterEnded = &fault.Def{Kind: fault.Conflict, Code: "letter_ended",
		Title: "The letter was replayed or discarded already."}
	ErrNotReplayable = &fault.Def{Kind: fault.Unprocessable, Code: "letter_not_replayable",
		Title: "The letter can only be discarded: there's nothing that could be done again."}
	ErrLetterTaken = &fault.Def{Kind: fault.Conflict, Code: "letter_taken",
		Title: "Another replay has the letter."}
	ErrNothingChosen = &fault.Def{Kind: fault.Conflict, Code: "nothing_chosen",
		Title: "No dead letter is as the request says."}
	ErrTooManyLetters = &fault.Def{Kind: fault.Unprocessable, Code: "too_many_letters",
		Title: "More letters are as the request says than one replay may have."}
	ErrReplayStatus = &fault.Def{Kind: fault.Conflict, Code: "wrong_replay_status",
		Title: "The replay isn't in a state for that."}
)

// Defs lists the codes of this package.
func Defs() []*fault.Def {
	return []*fault.Def{
		ErrLetterNotFound, ErrReplayNotFound, ErrLetterEnded, ErrNotReplayable, ErrLetterTaken,
		ErrNothingChosen, ErrTooManyLetters, ErrReplayStatus,
	}
}
