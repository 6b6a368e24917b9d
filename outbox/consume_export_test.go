package outbox

// Backoff is the pause after some failures.
var Backoff = backoff

// InboxStatements are those on inbox, and on what it reads.
var InboxStatements = map[string]string{
	"sqlOpenInbox": sqlOpenInbox, "sqlLockInbox": sqlLockInbox, "sqlInboxEntries": sqlInboxEntries,
	"sqlMoveInbox": sqlMoveInbox, "sqlFailInbox": sqlFailInbox, "sqlInboxBehind": sqlInboxBehind, "sqlInboxLag": sqlInboxLag,
}
