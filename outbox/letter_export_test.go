package outbox

import "time"

// LimitTurns changes how long a letter's turn may take.
func (s *Letters) LimitTurns(limit time.Duration) { s.limit = limit }

// LetterStatements are those on dead letters and replays.
var LetterStatements = map[string]string{
	"sqlBury": sqlBury, "sqlLetter": sqlLetter, "sqlLetters": sqlLetters, "sqlDeadLetters": sqlDeadLetters,
	"sqlChoose": sqlChoose, "sqlLeftOut": sqlLeftOut, "sqlNamedLetters": sqlNamedLetters, "sqlTake": sqlTake, "sqlFree": sqlFree,
	"sqlReplay": sqlReplay, "sqlLockReplay": sqlLockReplay, "sqlReplays": sqlReplays, "sqlInsertReplay": sqlInsertReplay,
	"sqlBeginReplay": sqlBeginReplay, "sqlChangeReplay": sqlChangeReplay, "sqlInsertStep": sqlInsertStep, "sqlStep": sqlStep,
	"sqlSteps": sqlSteps, "sqlDueReplay": sqlDueReplay, "sqlNextLetter": sqlNextLetter, "sqlTakenLetter": sqlTakenLetter, "sqlHoldInbox": sqlHoldInbox,
	"sqlEndLetter": sqlEndLetter, "sqlDieAgain": sqlDieAgain, "sqlCountLetter": sqlCountLetter, "sqlPauseReplay": sqlPauseReplay,
	"sqlCountDead": sqlCountDead, "sqlCountReplays": sqlCountReplays,
}
