package seats

import "github.com/tierledger/tierledger/ledger"

// Unchecked is the row of a change that nobody checks: only the database can refuse it.
func Unchecked(c Change) ledger.Row { return unchecked{c} }

type unchecked struct{ Change }

func (u unchecked) Keep(s *ledger.State) { shelfOf(s).apply(&u.Change, s.Head()) }

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
