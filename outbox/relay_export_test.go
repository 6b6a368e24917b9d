package outbox

// Bounds of the relay, for tests that go up to them.
const (
	RelayWorkers = relayWorkers
	TurnBatches  = turnBatches
	MaxEvents    = maxEvents
	MaxBehind    = maxBehind
)

// RelayStatements are the relay's SQL, for the tests that prepare it.
var RelayStatements = map[string]string{
	"sqlBehind":      sqlBehind,
	"sqlClaim":       sqlClaim,
	"sqlNoWait":      sqlNoWait,
	"sqlMove":        sqlMove,
	"sqlNote":        sqlNote,
	"sqlTrouble":     sqlTrouble,
	"sqlLeave":       sqlLeave,
	"sqlUnpublished": sqlUnpublished,
	"sqlEntryIDs":    sqlEntryIDs,
	"sqlPatrol":      sqlPatrol,
	"sqlSuspect":     sqlSuspect,
	"sqlEnd":         sqlEnd,
	"sqlSuspectTail": sqlSuspectTail,
	"sqlBacklog":     sqlBacklog,
}
