package holds

// Statements are the package's SQL, for the test that prepares them.
var Statements = map[string]string{
	"sqlAhead":           sqlAhead,
	"sqlBatchHolds":      sqlBatchHolds,
	"sqlDueSeats":        sqlDueSeats,
	"sqlSeatsOfHolds":    sqlSeatsOfHolds,
	"sqlInsertHolds":     sqlInsertHolds,
	"sqlUpdateHolds":     sqlUpdateHolds,
	"sqlNextDue":         sqlNextDue,
	"sqlHold":            sqlHold,
	"sqlAllHolds":        sqlAllHolds,
	"sqlHoldsOfCustomer": sqlHoldsOfCustomer,
	"sqlOpenHolds":       sqlOpenHolds,
	"sqlFirstDue":        sqlFirstDue,
}
