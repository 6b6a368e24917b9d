package outbox

// Backoff is a pause after some failures, and Retry that of a consumer's.
var (
	Backoff = backoff
	Retry   = retry
)

// InboxStatements are those on inbox, and on what it reads.
var InboxStatements = map[string]string{
	"sqlOpenInbox": sqlOpenInbox, "sqlLockInbox": sqlLockInbox, "sqlInboxEntries": sqlInboxEntries,
	"sqlMoveInbox": sqlMoveInbox, "sqlFailInbox": sqlFailInbox, "sqlInboxBehind": sqlInboxBehind, "sqlInboxLag": sqlInboxLag,
}
