package seats

// Statements are the package's SQL, for the test that prepares them and those that use
// them as a wrong process would.
var Statements = map[string]string{
	"sqlSections":      sqlSections,
	"sqlBatchSeats":    sqlBatchSeats,
	"sqlBatchRows":     sqlBatchRows,
	"sqlChangeSeats":   sqlChangeSeats,
	"sqlSummarize":     sqlSummarize,
	"sqlInsertChanges": sqlInsertChanges,
	"sqlSeat":          sqlSeat,
	"sqlHead":          sqlHead,
	"sqlChangesAfter":  sqlChangesAfter,
	"sqlRows":          sqlRows,
	"sqlInsertSection": sqlInsertSection,
	"sqlInsertRows":    sqlInsertRows,
	"sqlInsertSeats":   sqlInsertSeats,
}
