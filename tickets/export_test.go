package tickets

// Statements are the package's SQL, for the tests that prepare and plan them.
var Statements = map[string]string{
	"sqlOpenBooks":      sqlOpenBooks,
	"sqlLockBooks":      sqlLockBooks,
	"sqlKeepBooks":      sqlKeepBooks,
	"sqlTicketsOfBooks": sqlTicketsOfBooks,
	"sqlKeepTickets":    sqlKeepTickets,
	"sqlTicket":         sqlTicket,
	"sqlTicketsOfOrder": sqlTicketsOfOrder,
}
